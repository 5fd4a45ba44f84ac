// Continuous queries: their state as it is, and plots of the last half hour.

import {facts, failure, h, route, Table} from "../dom.js";
import {count, duration, moment, rate, seconds} from "../format.js";
import {plot} from "../plots.js";
import {rows} from "../session.js";
import {quoted} from "../statements.js";
import {relationLink} from "./relations.js";
import {trail} from "./stores.js";

export const stateStyle = state => `state ${({RUNNING: "good", FAILED: "bad", STALLED: "bad"})[state] ?? "other"}`;

export async function queries(main, signal, samples) {
  const total = plot("Records read by all queries", rate, signal);
  const late = plot("Longest lag of a view", seconds, signal);
  const table = new Table({
    caption: "Continuous queries",
    columns: [
      {title: "Keeps or writes", text: row => row.sink ?? row.id, href: row => route("queries", row.id)},
      {title: "State", text: row => row.state, style: row => stateStyle(row.state)},
      {title: "Rate", numeric: true, text: row => rate(row.rows_in_per_second)},
      {title: "Lag", numeric: true, text: row => count(row.lag_records)},
      {title: "Lag, time", numeric: true, text: row => seconds(row.lag_seconds)},
      {title: "Freshness", numeric: true, text: row => duration(row.freshness_ms)},
      {title: "Rows", numeric: true, text: row => count(row.rows)},
      {title: "Rejected", numeric: true, text: row => count(row.rejected)},
      {title: "Late", numeric: true, text: row => count(row.late_rows)},
      {title: "Reads", text: row => row.source, style: () => "names"},
      {title: "Error", text: row => row.error, style: () => "words brief"}, // the query's page has all of it
    ],
    key: row => row.id,
    empty: "No query runs. CREATE MATERIALIZED VIEW makes one.",
    stacked: true,
  });
  main.append(h("h1", {}, "Queries"), table.element, h("div", {class: "plots"}, total.element, late.element));
  samples.each(() => {
    table.update(samples.queries);
    const histories = samples.queries.map(query => samples.history(query.id));
    const times = [...new Set(histories.flatMap(history => history.map(each => each.at)))].sort((a, b) => a - b);
    const at = new Map(times.map(time => [time, {rate: null, late: null}]));
    for (const each of histories.flat()) {
      const sum = at.get(each.at);
      if (each.rate !== null) sum.rate = (sum.rate ?? 0) + each.rate;
      if (each.late !== null) sum.late = Math.max(sum.late ?? 0, each.late);
    }
    total.update(times, times.map(time => at.get(time).rate));
    late.update(times, times.map(time => at.get(time).late));
  }, signal);
}

export async function query(main, signal, samples, id) {
  main.append(trail(["Queries", route("queries")]));
  const heading = h("h1", {}, "Query");
  const error = h("div");
  const state = h("div");
  const plots = [
    ["Records read", rate, each => each.rate], ["Lag in records", count, each => each.lag],
    ["Lag in time", seconds, each => each.late], ["Freshness", seconds, each => each.fresh],
  ].map(([title, show, value]) => ({made: plot(title, show, signal), value}));
  main.append(heading, error, state, h("div", {class: "plots"}, plots.map(({made}) => made.element)));
  samples.each(() => {
    const found = samples.queries.find(each => each.id === id);
    if (!found) {
      error.replaceChildren(failure({message: "there is no such query that you may see"}));
      return;
    }
    heading.textContent = found.sink ?? id;
    error.replaceChildren(...(found.error ? [failure({message: found.error})] : []));
    state.replaceChildren(facts([
      ["State", h("span", {class: stateStyle(found.state)}, found.state)],
      ["Kind", found.kind.replaceAll("_", " ")],
      ["Keeps or writes", linked(found.sink)],
      ["Reads", found.source], ["Note", found.note],
      ["Rate", rate(found.rows_in_per_second)], ["Lag", count(found.lag_records)],
      ["Lag in time", seconds(found.lag_seconds)], ["Freshness", duration(found.freshness_ms)],
      ["Rows", count(found.rows)], ["Records read", count(found.rows_in)],
      ["Rejected", count(found.rejected)], ["Late", count(found.late_rows)],
      ["Filled", found.filled_share === null ? null : `${Math.floor(found.filled_share * 100)} %`],
      ["Epoch", count(found.epoch)], ["Watermark", moment(found.watermark)],
      ["Last change", moment(found.last_change_at)], ["Last confirmed", moment(found.last_confirmed_at)],
      ["Position", found.position], ["End of its source", found.latest_position],
    ]));
    const history = samples.history(id);
    for (const {made, value} of plots) made.update(history.map(each => each.at), history.map(value));
  }, signal);
  const [described] = await rows(`DESCRIBE QUERY ${quoted(id)}`, {signal});
  main.append(h("h2", {}, "Statement"), h("pre", {tabindex: "0", role: "region", "aria-label": "Statement"}, described.query ?? ""));
}

const linked = name => {
  const href = name && relationLink(name);
  return href ? h("a", {href}, name) : name;
};
