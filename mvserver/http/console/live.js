// What becomes of materialized views, by server-sent events. The address has a ticket, which lasts a minute: when it is
// over, the page takes another one and goes on behind the last event.

import {changesAddress, Failure, ticket} from "./session.js";

const AGAIN_MS = 1000;

// "heard" gets (kind, data) of each event, "told" gets the state in words. Ends with the signal.
export function watch(views, {heard, told, failed}, signal) {
  let source = null;
  let position = null;
  let timer = 0;
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    source?.close();
  });

  const again = () => { if (!signal.aborted) timer = setTimeout(connect, AGAIN_MS); };

  async function connect() {
    try {
      const text = await ticket(views);
      if (!signal.aborted) listen(new EventSource(changesAddress(views, text, position)));
    } catch (error) {
      if (signal.aborted) return;
      if (error.status && error.status < 500) failed(error);
      else { told(`${error.message}; trying again`); again(); }
    }
  }

  function listen(made) {
    source = made;
    source.onopen = () => told("live");
    source.onerror = () => {
      told("connecting again …");
      if (made.readyState === EventSource.CLOSED) again();
    };
    for (const kind of ["snapshot", "change", "reset", "end"])
      made.addEventListener(kind, event => {
        const data = JSON.parse(event.data);
        if (kind === "reset") position = null;
        if (event.lastEventId) position = event.lastEventId;
        if (kind === "end") {
          made.close();
          failed(new Failure(data));
        } else heard(kind, data);
      });
  }

  connect();
}

// The rows of one view. Rows without a key are counted, since two may be the same.
export class LiveRows {
  columns = [];
  #key = [];
  #rows = new Map();

  // Takes an event; gives the keys of the rows that have changed.
  take(kind, data) {
    if (kind === "snapshot") {
      this.columns = data.columns;
      this.#key = data.key;
      this.#rows = new Map();
      data.rows.forEach(row => this.#add(row));
      return [];
    }
    if (kind !== "change") return [];
    const changed = [];
    for (const {op, row} of data.changes) {
      if (op === "-D" || op === "-U") this.#remove(row);
      else changed.push(this.#add(row));
    }
    return changed;
  }

  #name(row) {
    const names = this.#key.length ? this.#key : this.columns.map(column => column.name);
    return JSON.stringify(names.map(name => row[name]));
  }

  #add(row) {
    const name = this.#name(row);
    this.#rows.set(name, {name, row, times: this.#key.length ? 1 : (this.#rows.get(name)?.times ?? 0) + 1});
    return name;
  }

  #remove(row) {
    const name = this.#name(row);
    const held = this.#rows.get(name);
    if (held && held.times > 1) held.times -= 1;
    else this.#rows.delete(name);
  }

  get size() {
    let size = 0;
    for (const {times} of this.#rows.values()) size += times;
    return size;
  }

  // The first rows, each with its name.
  first(most) {
    const found = [];
    for (const {name, row, times} of this.#rows.values())
      for (let at = 0; at < times; at += 1) {
        if (found.length >= most) return found;
        found.push({name: at ? `${name}#${at}` : name, row});
      }
    return found;
  }
}
