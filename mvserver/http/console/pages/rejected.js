// Records that could not be decoded, and records that came too late.

import {h, Table, when} from "../dom.js";
import {bytes, span} from "../format.js";
import {rows} from "../session.js";
import {relationLink} from "./relations.js";

const MOST = 200;
const EVERY_MS = 5000;

export async function rejected(main, signal) {
  const undecodable = new Table({
    caption: `Rejected: the last ${MOST} records that could not be decoded`,
    columns: [
      {title: "Relation", text: row => row.relation, href: row => relationLink(row.relation)},
      {title: "Reason", text: row => row.reason, style: () => "words"},
      {title: "Record", text: row => bytes(row.raw), nothing: "NULL", style: () => "raw"},
      when("Rejected", row => row.rejected_at),
      {title: "Position", text: row => row.position},
    ],
    key: row => JSON.stringify([row.relation, row.position, row.reason]),
    empty: "No record has been rejected.",
    stacked: true,
  });
  const late = new Table({
    caption: `Late: the last ${MOST} records that came after their window or join`,
    columns: [
      {title: "View", text: row => row.view, href: row => relationLink(row.view)},
      {title: "Relation", text: row => row.relation},
      when("Came", row => row.late_at),
      when("Event time", row => row.event_time),
      {title: "Window", text: row => span(row.window_start, row.window_end), style: () => "time"},
      when("Watermark", row => row.watermark),
      {title: "Position", text: row => row.position},
    ],
    key: (row, index) => JSON.stringify([row.view, row.position, row.window_start, row.late_at, index]),
    empty: "No record has come too late.",
    stacked: true,
  });
  main.append(h("h1", {}, "Rejected and late"), undecodable.element, late.element);
  const look = async () => {
    undecodable.update(await rows(
      `SELECT * FROM mv_catalog.rejected_rows ORDER BY rejected_at DESC, relation, position LIMIT ${MOST}`, {signal}));
    late.update(await rows(`SELECT * FROM mv_catalog.late_rows ORDER BY late_at DESC, view, position LIMIT ${MOST}`, {signal}));
  };
  await look();
  const timer = setInterval(() => { if (!document.hidden) look().catch(() => {}); }, EVERY_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
}
