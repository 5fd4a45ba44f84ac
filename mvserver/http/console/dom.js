// Elements and tables. Whatever comes from the server becomes text, never markup.

import {moment} from "./format.js";

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "textContent"]);

export function h(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") made.addEventListener(key, value);
    else if (PROPERTIES.has(key)) made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter(each => each !== undefined && each !== null && each !== false));
  return made;
}

// The address of a page of the console.
export const route = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

export function failure(error) {
  const parts = [h("p", {}, h("strong", {}, error.code ? `${error.code}: ` : ""), error.message)];
  if (error.detail) parts.push(h("p", {}, error.detail));
  if (error.hint) parts.push(h("p", {}, `Hint: ${error.hint}`));
  return h("div", {class: "failure", role: "alert"}, parts);
}

// Names and their values, as a list of definitions; what is not there is left out.
export function facts(pairs) {
  return h("dl", {class: "facts"}, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

// A table whose rows are changed in place, so that the keyboard's focus stays where it is. A column has a title,
// text(row), and may have href(row), style(row) (names of classes) and numeric. key(row, index) tells rows apart.
// "stacked": on a narrow page each row is a block with a line for each column that has something; the roles say that it
// is still a table then.
export class Table {
  #columns;
  #key;
  #rows = new Map();
  #body = h("tbody", {role: "rowgroup"});
  #caption;
  #empty;

  constructor({caption, columns, key = (row, index) => index, empty = "There is nothing here.", stacked = false}) {
    this.#columns = columns;
    this.#key = key;
    this.#caption = h("caption", {}, caption);
    this.#empty = h("p", {class: "empty", hidden: true}, empty);
    const head = columns.map(column =>
      h("th", {scope: "col", role: "columnheader", class: column.numeric && "numeric"}, column.title));
    const table = h("table", {role: "table", class: stacked && "stacked"}, this.#caption,
      h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, head)), this.#body);
    this.element = h("div", {},
      h("div", {class: "scroll", role: "region", "aria-label": caption, tabindex: "0"}, table), this.#empty);
  }

  set caption(words) {
    this.#caption.textContent = words;
  }

  update(rows) {
    const kept = new Map();
    rows.forEach((row, index) => {
      const key = this.#key(row, index);
      const line = this.#rows.get(key) ?? h("tr", {role: "row"},
        this.#columns.map(c => h("td", {role: "cell", class: c.numeric && "numeric", "data-title": c.title})));
      this.#columns.forEach((column, at) => fill(line.cells[at], column, row));
      kept.set(key, line);
    });
    for (const [key, line] of this.#rows) if (!kept.has(key)) line.remove();
    let at = 0;
    for (const line of kept.values()) {
      if (this.#body.rows[at] !== line) this.#body.insertBefore(line, this.#body.rows[at] ?? null);
      at += 1;
    }
    this.#rows = kept;
    this.#empty.hidden = rows.length > 0;
  }

  // Shows that rows have just changed.
  mark(keys) {
    for (const key of keys) {
      const line = this.#rows.get(key);
      if (line) {
        line.classList.remove("changed");
        requestAnimationFrame(() => line.classList.add("changed"));
      }
    }
  }
}

function fill(cell, column, row) {
  const given = column.text(row);
  const nothing = given === null || given === undefined;
  const text = nothing ? (column.nothing ?? "") : String(given);
  const href = nothing ? undefined : column.href?.(row);
  const style = [column.style?.(row), nothing && column.nothing ? "null" : null].filter(Boolean).join(" ");
  cell.classList.toggle("bare", nothing || text === "");
  let holder = cell.firstElementChild;
  if (!holder || (holder.localName === "a") !== Boolean(href)) {
    holder = h(href ? "a" : "span");
    cell.replaceChildren(holder);
  }
  if (holder.textContent !== text) holder.textContent = text;
  if (href && holder.getAttribute("href") !== href) holder.setAttribute("href", href);
  if (holder.className !== style) holder.className = style;
}

// A column of instants.
export const when = (title, value) => ({title, text: row => moment(value(row)), style: () => "time"});

// A table of a result of which only the columns' names and types are known.
export function resultTable(caption, columns, rows) {
  const table = new Table({
    caption,
    columns: columns.map((column, at) => ({
      title: column.name,
      numeric: /^(smallint|integer|bigint|real|double precision|numeric|oid)/.test(column.type ?? ""),
      text: row => shown(row[at]),
      nothing: "NULL",
    })),
    empty: "There are no rows.",
  });
  table.update(rows);
  return table;
}

// A value of a JSON answer as text; null stays null.
export function shown(value) {
  return value !== null && typeof value === "object" ? JSON.stringify(value) : value;
}
