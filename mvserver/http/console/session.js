// Who asks, and what is asked. Credentials are kept in memory, or for the tab where its user wants that; they are sent
// in a header and stand in no address. Everything goes through the server's ordinary HTTP interface.

const KEPT = "mvserver.console";
const MOST_BYTES = 32 * 1024 * 1024; // of a result
const BASE = new URL("v1/", new URL(".", location.href));

let authorization = null;
let refused = () => {};

export class Failure extends Error {
  constructor({code = "", message, detail = null, hint = null, position = null}, status = 0) {
    super(message);
    Object.assign(this, {code, detail, hint, position, status});
  }
}

export function basic(role, password) {
  return `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`${role}:${password}`)))}`;
}

export const bearer = token => `Bearer ${token}`;

// Asks the server who this is. Throws a Failure where it does not know.
export async function signIn(header, keep) {
  authorization = header;
  try {
    const {rows: [[role]]} = await sql("SELECT current_user");
    if (keep) sessionStorage.setItem(KEPT, header);
    return role;
  } catch (error) {
    authorization = null;
    if (error.status === 401) signOut(); // else the server may be away for a moment
    throw error;
  }
}

export const kept = () => sessionStorage.getItem(KEPT);

export function signOut() {
  authorization = null;
  sessionStorage.removeItem(KEPT);
}

export const onRefused = act => { refused = act; };

async function post(path, body, accept, signal) {
  let answer;
  try {
    answer = await fetch(new URL(path, BASE), {
      method: "POST", signal, cache: "no-store", credentials: "omit", redirect: "error",
      headers: {"Content-Type": "application/json", Accept: accept, Authorization: authorization ?? ""},
      body: JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure({message: "the server does not answer"});
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({message: `the server answers with status ${answer.status}`}));
  const error = new Failure(told, answer.status);
  if (answer.status === 401) refused(error);
  throw error;
}

async function whole(answer) {
  const pieces = [];
  let size = 0;
  const reader = answer.body.getReader();
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return new Blob(pieces).text();
    pieces.push(value);
    size += value.length;
    if (size > MOST_BYTES) {
      reader.cancel();
      throw new Failure({message: "the result has more than 32 MiB", hint: "Ask for less, as with LIMIT."});
    }
  }
}

// The columns, rows (as arrays), command and notices of one statement.
export async function sql(statement, {signal, ...rest} = {}) {
  const answer = await post("sql", {statement, ...rest}, "application/json; rows=array", signal);
  try {
    const found = JSON.parse(await whole(answer));
    return {columns: null, rows: [], ...found};
  } catch (error) {
    if (error.name === "AbortError" || error instanceof Failure) throw error;
    throw new Failure({message: "the answer was cut off by the server"});
  }
}

// The rows as objects.
export async function rows(statement, options) {
  const found = await sql(statement, options);
  return found.rows.map(row => Object.fromEntries(found.columns.map((column, at) => [column.name, row[at]])));
}

// Of a statement whose rows come as they happen: told of some rows at a time, as objects, until it ends.
export async function follow(statement, take, {signal, ...rest} = {}) {
  const answer = await post("sql", {statement, ...rest}, "application/x-ndjson", signal);
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let begun = "";
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      const lines = (begun + value).split("\n");
      begun = lines.pop();
      const found = lines.filter(Boolean).map(line => JSON.parse(line));
      if (found.length) take(found);
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure({message: "the answer was cut off by the server"});
  }
}

export async function ticket(views) {
  const answer = await post("tickets", {views}, "application/json");
  return (await answer.json()).ticket;
}

export function changesAddress(views, text, since) {
  const address = new URL("changes", BASE);
  for (const view of views) address.searchParams.append("view", view);
  address.searchParams.set("ticket", text);
  if (since) address.searchParams.set("since", since);
  return address;
}

// Why views do not follow their sources now; null where they do.
export async function problem() {
  const answer = await fetch(new URL("../readyz", BASE), {cache: "no-store", credentials: "omit"});
  return (await answer.json()).reason;
}
