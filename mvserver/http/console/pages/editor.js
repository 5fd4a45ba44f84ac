// Statements, their results, and a live mode: a SELECT is run again whenever a view that it reads has changed.

import {failure, h, resultTable, route, shown, Table} from "../dom.js";
import {watch} from "../live.js";
import {follow, rows, sql} from "../session.js";
import {parts, qualified, split, unitsBefore} from "../statements.js";

const MOST_ROWS = 1000;
const MOST_VIEWS = 16; // of one stream of changes
const NOT_SOONER_MS = 500; // than this a SELECT is run again
const GOES_ON = "application/x-ndjson"; // in the hint of the error for rows that come as they happen

// What was written stays while the page is open, and nowhere else: a statement may have a password.
const kept = {text: "SELECT * FROM mv_catalog.views;", database: "postgres"};

export function editorLink(text, database) {
  const open = () => Object.assign(kept, {text: `${text};`, database});
  return h("a", {href: route("sql"), class: "button", click: open}, "Open in the SQL editor");
}

export async function editor(main, signal) {
  const text = h("textarea", {
    id: "statement", rows: "9", spellcheck: "false", autocapitalize: "off", autocomplete: "off", value: kept.text,
    "aria-describedby": "keys", "aria-keyshortcuts": "Control+Enter Meta+Enter",
  });
  const database = h("select", {id: "database"}, h("option", {}, kept.database));
  const live = h("input", {type: "checkbox", id: "live"});
  const run = h("button", {type: "submit", class: "first"}, "Run");
  const stop = h("button", {type: "button", disabled: true}, "Stop");
  const state = h("p", {role: "status", id: "outcome"});
  const results = h("div", {id: "results"});
  let running = null;
  signal.addEventListener("abort", () => running?.abort());
  stop.addEventListener("click", () => running?.abort());
  text.addEventListener("input", () => { kept.text = text.value; });
  database.addEventListener("change", () => { kept.database = database.value; });
  text.addEventListener("keydown", event => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });

  const start = async event => {
    event.preventDefault();
    running?.abort();
    const mine = running = new AbortController();
    stop.disabled = false;
    results.replaceChildren();
    const chosen = text.selectionEnd > text.selectionStart
      ? {from: text.selectionStart, text: text.value.slice(text.selectionStart, text.selectionEnd)}
      : {from: 0, text: text.value};
    const statements = split(chosen.text).map(each => ({...each, from: each.from + chosen.from}));
    const context = {database: database.value, signal: mine.signal, results, state};
    try {
      if (!statements.length) state.textContent = "There is no statement.";
      else if (live.checked) await runLive(statements, context);
      else await runAll(statements, context, text);
    } catch (error) {
      if (error.name === "AbortError") state.textContent = "Stopped.";
      else {
        state.textContent = "An error.";
        results.append(failure(error));
      }
    } finally {
      if (running === mine) stop.disabled = true;
    }
  };
  const form = h("form", {class: "editor", submit: start},
    h("label", {for: "statement"}, "SQL"), text,
    h("p", {id: "keys", class: "hint"}, "Ctrl+Enter runs what is selected, or all statements one after another."),
    h("div", {class: "row"}, run, stop, h("label", {}, live, " live"), h("label", {}, "database ", database)));
  main.append(h("h1", {}, "SQL"), form, state, results);
  const names = (await rows("LIST DATABASES", {signal})).map(each => each.name);
  database.replaceChildren(...names.map(name => h("option", {selected: name === kept.database}, name)));
}

async function runAll(statements, context, text) {
  for (const [at, statement] of statements.entries()) {
    const which = statements.length > 1 ? `${at + 1} of ${statements.length}: ` : "";
    context.state.textContent = `${which}running …`;
    try {
      await runOne(statement, context, which);
    } catch (error) {
      if (error.position) {
        const place = statement.from + unitsBefore(statement.text, error.position);
        text.setSelectionRange(place, place);
      }
      throw error;
    }
  }
}

async function runOne(statement, context, which) {
  const began = performance.now();
  const {database, signal, results, state} = context;
  try {
    const found = await sql(statement.text, {database, signal});
    results.append(...result(found));
    state.textContent = `${which}${found.command}, ${Math.round(performance.now() - began)} ms`;
  } catch (error) {
    if (error.code !== "0A000" || !error.hint?.includes(GOES_ON)) throw error;
    await runFollowing(statement, context);
  }
}

function result({columns, rows: found, command, notices}) {
  const told = notices.map(each => h("p", {class: "notice"}, `${each.severity}: ${each.message}`,
    each.detail ? ` ${each.detail}` : "", each.hint ? ` Hint: ${each.hint}` : ""));
  if (!columns) return [...told, h("p", {}, command)];
  const cut = found.length > MOST_ROWS ? ` (the first ${MOST_ROWS} are shown)` : "";
  return [...told, resultTable(`${command}${cut}`, columns, found.slice(0, MOST_ROWS)).element];
}

// Rows that come as they happen, until they are stopped: the last ones are shown.
async function runFollowing(statement, {database, signal, results, state}) {
  let table = null;
  let held = [];
  let taken = 0;
  state.textContent = "waiting for rows …";
  await follow(statement.text, found => {
    if (!table) {
      table = new Table({
        caption: "Rows as they come",
        columns: Object.keys(found[0]).map(name => ({title: name, text: ({row}) => shown(row[name]), nothing: "NULL"})),
        key: each => each.at,
      });
      results.append(table.element);
    }
    held = [...held, ...found.map(row => ({row, at: taken++}))].slice(-MOST_ROWS);
    table.update(held);
    state.textContent = `${taken} rows so far`;
  }, {database, signal});
  state.textContent = `${taken} rows`;
}

// The materialized views whose names stand in a text, also behind the views in it. One too many costs a read; the
// server decides what may be read.
export function viewsIn(text, views, dependencies) {
  const words = new Set((text.match(/"(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*/gu) ?? [])
    .map(word => word.startsWith('"') ? word.slice(1, -1).replaceAll('""', '"') : word.toLowerCase()));
  const below = new Map();
  for (const {object, kind, depends_on: other} of dependencies)
    if (kind === "view") below.set(object, [...(below.get(object) ?? []), other]);
  const named = [...new Set([...views, ...below.keys()])].filter(name => words.has(parts(name).at(-1)));
  const found = new Set();
  for (const seen = new Set(named), left = [...named]; left.length;) {
    const name = left.pop();
    if (views.includes(name)) found.add(name);
    for (const other of below.get(name) ?? [])
      if (!seen.has(other)) { seen.add(other); left.push(other); }
  }
  return [...found];
}

async function runLive(statements, {database, signal, results, state}) {
  if (statements.length > 1 || !/^\W*(SELECT|WITH|TABLE)\b/i.test(statements[0].text)) {
    state.textContent = "Live mode takes one SELECT.";
    return;
  }
  const text = statements[0].text;
  const views = (await rows("SELECT view FROM mv_catalog.views", {signal})).map(each => each.view);
  const dependencies = await rows("SELECT object, kind, depends_on FROM mv_catalog.dependencies", {signal});
  const read = viewsIn(text, views, dependencies);
  if (!read.length || read.length > MOST_VIEWS) {
    state.textContent = read.length ? `Live mode takes ${MOST_VIEWS} views.` : "The statement names no materialized view.";
    return;
  }
  await new Promise((resolve, reject) => {
    let asked = false;
    let busy = false;
    let times = 0;
    let table = null;
    let shapeBefore = "";
    const look = async () => {
      asked = true;
      if (busy) return;
      busy = true;
      try {
        while (asked && !signal.aborted) {
          asked = false;
          const began = performance.now();
          const found = await sql(text, {database, signal});
          const shape = JSON.stringify(found.columns);
          const shownRows = found.rows.slice(0, MOST_ROWS);
          if (shape === shapeBefore) table.update(shownRows); // in place: focus and scrolling stay
          else {
            const made = resultTable("Rows, live", found.columns, shownRows);
            if (table) table.element.replaceWith(made.element);
            else results.append(made.element);
            [table, shapeBefore] = [made, shape];
          }
          times += 1;
          table.caption = `${found.command}, live: read ${times} times, at ${new Date().toLocaleTimeString("en-GB")}`;
          const words = `live: ${read.join(", ")}`;
          if (state.textContent !== words) state.textContent = words; // it is read out when it changes
          await new Promise(next => setTimeout(next, Math.max(0, NOT_SOONER_MS - (performance.now() - began))));
        }
      } catch (error) {
        reject(error);
      } finally {
        busy = false;
      }
    };
    signal.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
    const names = read.map(name => qualified(...parts(name)));
    watch(names, {heard: look, told: words => { state.textContent = words; }, failed: reject}, signal);
  });
}
