// What node's pg sees of a server: one line of JSON for each step. The test runs it on two servers and compares.
"use strict";

const { Client, Pool, types } = require("pg");
const Cursor = require("pg-cursor");
const QueryStream = require("pg-query-stream");
const { to: copyTo } = require("pg-copy-streams");

const [host, port, user, database] = process.argv.slice(2);
const address = { host, port: Number(port), user, database };

function show(name, value) {
  const text = JSON.stringify(value, (_, v) => (Buffer.isBuffer(v) ? v.toString("hex") : v));
  console.log(JSON.stringify(name) + "\t" + text);
}

async function failing(client, text, values) {
  try {
    await client.query(text, values);
    return "no error";
  } catch (error) {
    return { code: error.code, message: error.message, severity: error.severity, position: error.position };
  }
}

async function values(client) {
  const typed = await client.query("SELECT * FROM typed ORDER BY id");
  show("typed", typed.rows);
  show("fields", typed.fields.map((f) => [f.name, f.dataTypeID, f.dataTypeSize, f.dataTypeModifier, f.format]));
  show("tag", [typed.command, typed.rowCount]);
  const binary = await client.query({ text: "SELECT 1::int4 AS a, 2.5::float8 AS b, true AS c", binary: true });
  show("binary", [binary.rows, binary.fields.map((f) => f.format)]);
  const arrays = await client.query({ text: "SELECT url, visits FROM visits ORDER BY url", rowMode: "array" });
  show("array rows", arrays.rows);
  const echoed = await client.query(
    "SELECT $1::int4 AS i, $2::text AS t, $3::bool AS b, $4::timestamptz AS ts, $5::json AS j, $6::int4[] AS a, " +
      "$7::text[] AS ta, $8::bytea AS by, $9::text AS n, $10::float8 AS f, $11::date AS d",
    [7, "ü'\\\"", true, new Date(Date.UTC(2024, 0, 2)), { a: [1, null] }, [1, null, 3], ['x,"y', null, "NULL"],
      Buffer.from([0, 255]), null, 1e-7, "2024-02-29"]
  );
  show("parameters", echoed.rows);
  show("inferred", (await client.query("SELECT visits FROM visits WHERE url = $1 AND visits > $2", ["./home", 3])).rows);
  show("any", (await client.query("SELECT url FROM visits WHERE url = ANY($1) ORDER BY 1", [["./home", "./cart"]])).rows);
}

async function prepared(client) {
  const found = [];
  for (const url of ["./home", "./shop", "none"]) {
    found.push((await client.query({ name: "by-url", text: "SELECT visits FROM visits WHERE url = $1", values: [url] })).rows);
  }
  show("prepared", found);
  const several = await client.query("SELECT 1 AS a; SELECT 2 AS b; SET application_name = 'node'");
  show("several", several.map((r) => [r.command, r.rows]));
  show("queued", (await Promise.all([1, 2, 3].map((n) => client.query("SELECT $1::int AS n", [n])))).map((r) => r.rows));
}

async function parts(client) {
  await client.query("BEGIN");
  const cursor = client.query(new Cursor("SELECT n FROM numbers WHERE n >= $1 ORDER BY n", [10]));
  show("cursor", [await cursor.read(2), await cursor.read(3)]);
  await cursor.close();
  await client.query("COMMIT");
  let total = 0;
  let count = 0;
  for await (const row of client.query(new QueryStream("SELECT n FROM numbers", [], { batchSize: 5000 }))) {
    total += Number(row.n);
    count += 1;
  }
  show("stream", [total, count]);
  const pieces = [];
  for await (const piece of client.query(copyTo("COPY (SELECT url, visits FROM visits ORDER BY url) TO STDOUT CSV"))) {
    pieces.push(piece);
  }
  show("copy", Buffer.concat(pieces).toString());
}

async function errors(client) {
  show("no relation", await failing(client, "SELECT * FROM nothing"));
  show("no column", await failing(client, "SELECT missing FROM visits WHERE url = $1", ["x"]));
  show("bad value", await failing(client, "SELECT $1::int4", ["x"]));
  show("division", await failing(client, "SELECT 1 / $1::int", [0]));
  await client.query("BEGIN");
  await failing(client, "SELECT * FROM nothing");
  show("failed block", await failing(client, "SELECT 1"));
  show("rollback", (await client.query("ROLLBACK")).command);
  const notices = [];
  client.on("notice", (notice) => notices.push([notice.severity, notice.code, notice.message]));
  await client.query("COMMIT");
  show("notices", notices);
  const started = Date.now();
  show("timed out", await failing(client, "SET statement_timeout = 300; SELECT pg_sleep(20)"));
  show("in time", Date.now() - started < 2300);
}

async function pooled() {
  const pool = new Pool({ ...address, max: 4 });
  const rows = await Promise.all([...Array(40).keys()].map((n) => pool.query("SELECT n FROM numbers WHERE n = $1", [n])));
  show("pool", rows.reduce((sum, result) => sum + Number(result.rows[0].n), 0));
  const slow = await pool.connect();
  const { rows: [{ pid }] } = await slow.query("SELECT pg_backend_pid() AS pid");
  show("pid", pid === slow.processID);
  slow.release();
  await pool.end();
}

async function main() {
  types.setTypeParser(1114, (text) => text); // without a zone, as text
  types.setTypeParser(1082, (text) => text);
  const client = new Client({ ...address, application_name: "probe" });
  await client.connect();
  for (const step of [values, prepared, parts, errors]) {
    await step(client);
  }
  await client.end();
  await pooled();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
