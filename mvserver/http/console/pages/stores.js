// Stores, their entities, and an entity's records as they are.

import {facts, h, route, shown, Table, when} from "../dom.js";
import {moment} from "../format.js";
import {follow, rows} from "../session.js";
import {parts, quoted} from "../statements.js";

const MOST_SHOWN = 500;

export async function stores(main, signal) {
  main.append(h("h1", {}, "Stores"));
  const table = new Table({
    caption: "Stores: where data moves",
    columns: [
      {title: "Name", text: row => row.name, href: row => route("stores", row.name)},
      {title: "Type", text: row => row.type},
      {title: "Owner", text: row => row.owner},
      when("Created", row => row.created_at),
    ],
    key: row => row.name,
    empty: "There is no store that you may use. CREATE STORE makes one.",
    stacked: true,
  });
  main.append(table.element);
  table.update(await rows("LIST STORES", {signal}));
}

export async function store(main, signal, name) {
  main.append(trail(["Stores", route("stores")]), h("h1", {}, name));
  const [described] = await rows(`DESCRIBE STORE ${quoted(name)}`, {signal});
  main.append(facts([
    ["Type", described.type], ["Addresses", described.uris], ["Owner", described.owner],
    ["Created", moment(described.created_at)],
    ...Object.entries(described.properties ?? {}).filter(([key]) => key !== "uris").map(([k, v]) => [k, shown(v)]),
  ]));
  const table = new Table({
    caption: "Entities: topics, streams or directories",
    columns: [
      {title: "Name", text: row => row.name, href: row => route("stores", name, row.name)},
      {title: "Details", text: row => details(row.details)},
    ],
    key: row => row.name,
    empty: "The store has no entities.",
    stacked: true,
  });
  main.append(table.element);
  table.update(await rows(`LIST ENTITIES IN STORE ${quoted(name)}`, {signal}));
}

const details = found => Object.entries(found ?? {}).map(([key, value]) => `${key} ${shown(value)}`).join(", ");

export function trail(...steps) {
  return h("nav", {"aria-label": "Where this is", class: "trail"},
    h("ol", {}, steps.map(([title, href]) => h("li", {}, h("a", {href}, title)))));
}

export async function entity(main, signal, storeName, name) {
  main.append(trail(["Stores", route("stores")], [storeName, route("stores", storeName)]), h("h1", {}, name));
  const statement = `ENTITY ${quoted(name)} IN STORE ${quoted(storeName)}`;
  main.append(printing(statement, signal));
  const [described] = await rows(`DESCRIBE ${statement}`, {signal});
  const relations = described.relations ?? [];
  main.append(
    h("h2", {}, "Details"),
    facts(Object.entries(described.details ?? {}).map(([key, value]) => [key, shown(value)])),
    h("h2", {}, "Relations over it"),
    relations.length
      ? h("ul", {}, relations.map(each => h("li", {}, h("a", {href: route("relations", ...parts(each))}, each))))
      : h("p", {class: "empty"}, "No relation is declared over this entity."),
  );
}

// PRINT ENTITY: records as they come, undecoded, until they are stopped.
function printing(statement, signal) {
  const beginning = h("input", {type: "checkbox", id: "from-beginning", checked: true});
  const most = h("input", {type: "number", id: "most", min: "1", max: "10000", value: "100"});
  const start = h("button", {type: "submit"}, "Print");
  const stop = h("button", {type: "button", disabled: true}, "Stop");
  const state = h("p", {role: "status"});
  const table = new Table({
    caption: "Records",
    columns: [
      {title: "Key", text: row => row.key, nothing: "NULL"},
      {title: "Value", text: row => row.value, nothing: "NULL", style: () => "raw"},
      {title: "Position", text: row => row.position},
      when("Time", row => row.timestamp),
    ],
    key: row => row.at,
    empty: "No record has been printed yet.",
    stacked: true,
  });
  table.update([]);
  let running = null;
  signal.addEventListener("abort", () => running?.abort());
  stop.addEventListener("click", () => running?.abort());

  const run = async event => {
    event.preventDefault();
    running?.abort();
    const mine = running = new AbortController();
    let taken = 0;
    let kept = [];
    table.update([]);
    start.disabled = true;
    stop.disabled = false;
    state.textContent = "Waiting for records …";
    // without LIMIT, with which the server would wait until there are as many
    const text = `PRINT ${statement}${beginning.checked ? " WITH ('from_beginning')" : ""}`;
    const enough = most.valueAsNumber;
    try {
      await follow(text, found => {
        found = found.slice(0, enough - taken);
        kept = [...kept, ...found.map(row => ({...row, at: taken++}))].slice(-MOST_SHOWN);
        table.update(kept);
        state.textContent = `${taken} records${taken > kept.length ? `, the last ${kept.length} are shown` : ""}; more may come.`;
        if (taken >= enough) mine.abort();
      }, {signal: mine.signal});
      state.textContent = `${taken} records.`;
    } catch (error) {
      state.textContent = error.name !== "AbortError" ? error.message
        : taken >= enough ? `${taken} records.` : `Stopped after ${taken} records.`;
    } finally {
      if (running === mine) {
        start.disabled = false;
        stop.disabled = true;
      }
    }
  };
  return h("section", {"aria-labelledby": "print"},
    h("h2", {id: "print"}, "Print records"),
    h("form", {class: "row", submit: run},
      h("label", {}, beginning, " from the beginning"),
      h("label", {}, "at most ", most, " records"), start, stop),
    state, table.element);
}

