// Sources, queries, and what they keep and write, as a graph and as a table.

import {h, route, Table} from "../dom.js";
import {HEIGHT, layout, WIDTH} from "../graph.js";
import {rows} from "../session.js";
import {parts} from "../statements.js";
import {relationLink} from "./relations.js";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = 14; // of a text in its box
const TITLE = 13; // pixels, as the style sheet has them
const UNDER = 11;
const PASSED_OVER = new Set(["store", "schema registry", "index"]);

export async function lineage(main, signal, samples) {
  main.append(h("h1", {}, "Lineage"));
  const place = h("div");
  const table = new Table({
    caption: "What depends on what",
    columns: [
      {title: "Object", text: row => row.object,
        href: row => row.kind === "query" ? route("queries", row.object) : relationLink(row.object)},
      {title: "Kind", text: row => row.kind},
      {title: "Depends on", text: row => row.depends_on, href: row => relationLink(row.depends_on)},
      {title: "Kind", text: row => row.depends_on_kind},
    ],
    empty: "Nothing depends on anything that you may see.",
    stacked: true,
  });
  main.append(place, table.element);
  const found = await rows("SELECT * FROM mv_catalog.dependencies ORDER BY object, depends_on", {signal});
  table.update(found);
  let drawn = "";
  samples.each(() => {
    const graph = graphOf(found, samples.queries);
    const text = JSON.stringify(graph);
    if (text !== drawn && !place.contains(document.activeElement)) {
      drawn = text;
      place.replaceChildren(drawing(graph));
    }
  }, signal);
}

// The nodes by id, and pairs of ids in the direction in which records flow.
export function graphOf(dependencies, queries) {
  const nodes = new Map();
  const edges = new Map();
  const add = (id, kind, name, more = "") => { if (!nodes.has(id)) nodes.set(id, {id, kind, name, more}); };
  const join = (from, to) => edges.set(JSON.stringify([from, to]), [from, to]);
  const kept = new Map(queries.filter(query => query.kind === "materialized_view").map(each => [each.sink, each]));
  const byId = new Map(queries.map(query => [query.id, query]));
  const stores = new Map(dependencies.filter(each => each.depends_on_kind === "store")
    .map(each => [each.object, each.depends_on]));
  const relation = (name, kind) => add(name, kind, name, stores.has(name) ? `in ${stores.get(name)}` : "");
  for (const {object, kind, depends_on: other, depends_on_kind: otherKind} of dependencies) {
    if (PASSED_OVER.has(kind)) continue;
    const query = kind === "query" ? byId.get(object) : kept.get(object);
    if (kind !== "query") relation(object, kind);
    if (query || kind === "query") add(query?.id ?? object, "query", query?.sink ?? object, query?.state ?? "");
    if (kind !== "query" && query) join(query.id, object);
    if (PASSED_OVER.has(otherKind)) continue;
    relation(other, otherKind);
    if (!query) join(other, object);
    else if (kind === "query" && query.sink === other) join(query.id, other);
    else join(other, query.id);
  }
  return {nodes: [...nodes.values()], edges: [...edges.values()]};
}

function svg(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawing({nodes, edges}) {
  if (!nodes.length) return h("p", {class: "empty"}, "There is nothing to draw yet.");
  const {places, lines, width, height} = layout(nodes.map(node => node.id), edges);
  const arrow = svg("marker", {id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto"},
    svg("path", {d: "M0 0 8 4 0 8z", class: "arrow"}));
  const paths = lines.map(({points}) => svg("path", {class: "edge", d: curve(points), "marker-end": "url(#arrow)"}));
  const boxes = nodes.map(node => box(node, places.get(node.id)));
  const made = svg("svg", {width: width + 4, height: height + 4, viewBox: `-2 -2 ${width + 4} ${height + 4}`, role: "group",
    "aria-label": "Lineage: records flow from left to right"},
  svg("defs", {}, arrow), svg("g", {"aria-hidden": "true"}, ...paths), ...boxes);
  return h("div", {class: "scroll graph", role: "region", "aria-label": "Lineage graph", tabindex: "0"}, made);
}

function curve([[x, y], ...rest]) {
  let d = `M${x} ${y}`;
  for (const [nextX, nextY] of rest) {
    const bend = (x + nextX) / 2;
    d += `C${bend} ${y} ${bend} ${nextY} ${nextX} ${nextY}`;
    [x, y] = [nextX, nextY];
  }
  return d;
}

function box({id, kind, name, more}, {x, y}) {
  const isQuery = kind === "query";
  const title = isQuery ? "query" : parts(name)[2] || name;
  const under = isQuery ? more : [kind, more].filter(Boolean).join(" ");
  const state = isQuery ? ({RUNNING: "good", FAILED: "bad", STALLED: "bad"})[more] ?? "other" : "";
  const href = isQuery ? route("queries", id) : relationLink(name);
  const [seen, seenUnder] = [cut(title, TITLE), cut(under, UNDER)];
  const label = `${seen} ${seenUnder}, ${name}`; // begins with what is seen
  const content = [
    svg("title", {}, name),
    svg("rect", {width: WIDTH, height: HEIGHT, rx: isQuery ? HEIGHT / 2 : 5}),
    svg("text", {x: MARGIN, y: 19}, seen), " ",
    svg("text", {x: MARGIN, y: 36, class: "under"}, seenUnder),
  ];
  const attributes = {class: `node ${isQuery ? "query" : "relation"} ${state}`, transform: `translate(${x} ${y})`, "aria-label": label};
  return href ? svg("a", {...attributes, href}, ...content) : svg("g", {...attributes, role: "img"}, ...content);
}

const measure = document.createElement("canvas").getContext("2d");

// As much of a text as fits into a box.
function cut(text, size) {
  measure.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  const fits = words => measure.measureText(words).width <= WIDTH - 2 * MARGIN;
  if (fits(text)) return text;
  const letters = [...text];
  while (letters.length && !fits(`${letters.join("")}…`)) letters.pop();
  return `${letters.join("")}…`;
}
