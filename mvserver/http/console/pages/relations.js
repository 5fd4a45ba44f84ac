// Databases, schemas and relations; a relation with its columns, its definition and its rows.

import {facts, failure, h, resultTable, route, shown, Table, when} from "../dom.js";
import {moment} from "../format.js";
import {LiveRows, watch} from "../live.js";
import {rows, sql} from "../session.js";
import {parts, qualified, quoted} from "../statements.js";
import {editorLink} from "./editor.js";
import {trail} from "./stores.js";

const MOST_SHOWN = 500;
const READABLE = ["materialized view", "view"];

export async function relations(main, signal) {
  main.append(h("h1", {}, "Relations"));
  const filter = h("input", {type: "search", id: "filter"});
  main.append(h("p", {}, h("label", {}, "Names with ", filter)));
  const tables = [];
  const show = () => {
    const wanted = filter.value.toLowerCase();
    for (const {table, found} of tables) table.update(found.filter(row => row.name.toLowerCase().includes(wanted)));
  };
  filter.addEventListener("input", show);
  for (const {name: database} of await rows("LIST DATABASES", {signal})) {
    main.append(h("h2", {}, `Database ${database}`));
    for (const {name: schema} of await rows(`LIST SCHEMAS IN DATABASE ${quoted(database)}`, {signal})) {
      const table = new Table({
        caption: `Schema ${schema} of ${database}`,
        columns: [
          {title: "Name", text: row => row.name, href: row => route("relations", database, schema, row.name)},
          {title: "Type", text: row => row.type},
          {title: "Store", text: row => row.store, href: row => route("stores", row.store)},
          {title: "Entity", text: row => row.entity, href: row => row.store && route("stores", row.store, row.entity)},
          {title: "Owner", text: row => row.owner},
          when("Created", row => row.created_at),
        ],
        key: row => row.name,
        empty: "There is no relation that you may read.",
        stacked: true,
      });
      main.append(table.element);
      tables.push({table, found: await rows(`LIST RELATIONS IN SCHEMA ${qualified(database, schema)}`, {signal})});
      show();
    }
  }
}

export async function relation(main, signal, database, schema, name) {
  main.append(trail(["Relations", route("relations")]), h("h1", {}, name));
  const full = qualified(database, schema, name);
  const [described] = await rows(`DESCRIBE RELATION ${full}`, {signal});
  const queries = described.queries ?? [];
  const readable = READABLE.includes(described.type);
  const [{comment}] = await rows("SELECT obj_description(to_regclass($1)) AS comment",
    {database, signal, parameters: [qualified(schema, name)]});
  if (comment) main.append(h("p", {}, comment));
  const address = route("stores", described.store ?? "", described.entity ?? "");
  main.append(facts([
    ["Type", described.type], ["Name", `${database}.${schema}.${name}`],
    ["Entity", described.store && described.entity
      ? h("a", {href: address}, `${described.store} / ${described.entity}`) : null],
    ["Owner", described.owner], ["Created", moment(described.created_at)],
    ["Queries", queries.length ? h("span", {}, queries.map(id => h("a", {href: route("queries", id)}, id))) : null],
    ...Object.entries(described.properties ?? {}).map(([key, value]) => [key, shown(value)]),
  ]));
  const key = described.primary_key ?? [];
  const columns = new Table({
    caption: "Columns",
    columns: [
      {title: "Name", text: row => row.name},
      {title: "Type", text: row => row.type},
      {title: "May be NULL", text: row => row.nullable ? "yes" : "no"},
      {title: "Key", text: row => key.includes(row.name) ? "yes" : ""},
    ],
  });
  columns.update(described.columns ?? []);
  main.append(columns.element);
  if (described.definition)
    main.append(h("h2", {}, "Definition"), h("pre", {tabindex: "0", role: "region", "aria-label": "Definition"}, described.definition));
  if (!readable) return;
  const text = `SELECT * FROM ${qualified(schema, name)} LIMIT 100`;
  main.append(h("h2", {}, "Rows"));
  const controls = h("p", {class: "row"}, editorLink(text, database));
  const place = h("div");
  main.append(controls, place);
  if (described.type === READABLE[0]) controls.prepend(watching(place, full, signal));
  place.append(await firstRows(text, database, signal));
}

async function firstRows(text, database, signal) {
  try {
    const found = await sql(text, {database, signal, settings: {statement_timeout: "20s"}});
    return resultTable("The first 100 rows", found.columns, found.rows).element;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return failure(error);
  }
}

// A button that shows the rows as they change.
function watching(place, full, signal) {
  let running = null;
  const stop = () => running?.abort();
  signal.addEventListener("abort", stop);
  const button = h("button", {type: "button", "aria-pressed": "false", click: () => {
    if (running && !running.signal.aborted) {
      stop();
      button.setAttribute("aria-pressed", "false");
      return;
    }
    running = new AbortController();
    button.setAttribute("aria-pressed", "true");
    place.replaceChildren(liveTable(full, running.signal));
  }}, "Watch live");
  return button;
}

function liveTable(full, signal) {
  const state = h("p", {role: "status"}, "connecting …");
  const place = h("div");
  const held = new LiveRows();
  let table = null;
  let drawn = false;
  let changed = new Set();
  let told = "connecting …";
  const draw = () => {
    drawn = false;
    if (signal.aborted || !table) return;
    const shownRows = held.first(MOST_SHOWN);
    table.update(shownRows);
    table.mark(changed);
    changed = new Set();
    const size = held.size;
    const words = size > shownRows.length ? `${size} rows, the first ${shownRows.length} are shown` : `${size} rows`;
    const now = `${told}: ${words}`;
    if (state.textContent !== now) state.textContent = now;
  };
  const soon = () => {
    if (!drawn) {
      drawn = true;
      setTimeout(draw, 100);
    }
  };
  watch([full], {
    heard(kind, data) {
      for (const name of held.take(kind, data)) changed.add(name);
      if (kind === "snapshot") {
        table = new Table({
          caption: "Rows, live",
          columns: held.columns.map(column => ({
            title: column.name, text: ({row}) => shown(row[column.name]), nothing: "NULL",
            numeric: /^(smallint|integer|bigint|real|double precision|numeric)/.test(column.type),
          })),
          key: ({name}) => name,
          empty: "There are no rows.",
        });
        place.replaceChildren(table.element);
      }
      soon();
    },
    told(words) { told = words; state.textContent = words; soon(); },
    failed(error) { place.replaceChildren(failure(error)); state.textContent = "not live any more"; table = null; },
  }, signal);
  signal.addEventListener("abort", () => { state.textContent = "stopped; these were the rows"; });
  return h("div", {}, state, place);
}

export const relationLink = name => {
  const found = parts(name);
  return found[2] ? route("relations", ...found) : null; // a store's name, or a query's id
};
