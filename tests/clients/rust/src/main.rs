//! What Rust's postgres (tokio-postgres inside) sees of a server: a line for each step. The test runs it on two
//! servers and compares.

use std::fmt::Debug;
use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::Type;
use postgres::{Client, Error, IsolationLevel, NoTls, Row, SimpleQueryMessage};

fn show(name: &str, value: impl Debug) {
    println!("{:?}\t{:?}", name, value);
}

fn failure(error: Error) -> (String, String, String) {
    let told = error.as_db_error().expect("an error of the server");
    (told.code().code().into(), told.severity().into(), told.message().into())
}

type Typed = (
    i32, Option<bool>, Option<i16>, Option<i64>, Option<f32>, Option<f64>, Option<String>, Option<Vec<u8>>,
);

fn typed(row: &Row) -> Typed {
    (
        row.get("id"), row.get("flag"), row.get("small"), row.get("big"), row.get("real4"), row.get("real8"),
        row.get("name"), row.get("bytes"),
    )
}

fn times(row: &Row) -> (Option<NaiveDate>, Option<NaiveTime>, Option<NaiveDateTime>, Option<DateTime<Utc>>) {
    (row.get("day"), row.get("clock"), row.get("moment"), row.get("instant"))
}

fn values(client: &mut Client) -> Result<(), Error> {
    let rows = client.query("SELECT * FROM typed ORDER BY id", &[])?;
    show("typed", rows.iter().map(typed).collect::<Vec<_>>());
    show("times", rows.iter().map(times).collect::<Vec<_>>());
    show("columns", rows[0].columns().iter().map(|c| (c.name().to_string(), c.type_().oid())).collect::<Vec<_>>());
    let document = serde_json::json!({"a": [1, null]});
    let row = client.query_one(
        "SELECT $1::int4, $2::int8, $3::float8, $4::text, $5::bool, $6::timestamptz, $7::bytea, $8::int4[], \
         $9::text[], $10::text, $11::jsonb, $12::uuid, $13::date",
        &[
            &-7i32, &(1i64 << 62), &1e-300f64, &"ü'\\", &true, &DateTime::from_timestamp(1_700_000_000, 6_000).unwrap(),
            &vec![0u8, 255], &vec![Some(1i32), None], &vec![Some("x,\"y"), None], &None::<&str>, &document,
            &uuid::Uuid::from_u128(77), &NaiveDate::from_ymd_opt(2024, 2, 29).unwrap(),
        ],
    )?;
    show("numbers", (row.get::<_, i32>(0), row.get::<_, i64>(1), row.get::<_, f64>(2)));
    show("texts", (row.get::<_, String>(3), row.get::<_, bool>(4), row.get::<_, DateTime<Utc>>(5)));
    show("arrays", (row.get::<_, Vec<u8>>(6), row.get::<_, Vec<Option<i32>>>(7), row.get::<_, Vec<Option<String>>>(8)));
    show("others", (row.get::<_, Option<String>>(9), row.get::<_, serde_json::Value>(10), row.get::<_, uuid::Uuid>(11)));
    show("day", row.get::<_, NaiveDate>(12));
    let found = client.query("SELECT visits FROM visits WHERE url = $1 AND visits > $2", &[&"./home", &3i64])?;
    show("inferred", found.iter().map(|r| r.get::<_, i64>(0)).collect::<Vec<_>>());
    let found = client.query("SELECT url FROM visits WHERE url = ANY($1) ORDER BY 1", &[&vec!["./home", "./cart"]])?;
    show("any", found.iter().map(|r| r.get::<_, String>(0)).collect::<Vec<_>>());
    Ok(())
}

fn statements(client: &mut Client) -> Result<(), Error> {
    let statement = client.prepare_typed("SELECT visits FROM visits WHERE url = $1", &[Type::TEXT])?;
    let mut found = Vec::new();
    for url in ["./home", "./shop", "none"] {
        found.push(client.query_opt(&statement, &[&url])?.map(|row| row.get::<_, i64>(0)));
    }
    show("prepared", (statement.params().len(), found));
    let mut heard = Vec::new();
    for message in client.simple_query("SELECT 1 AS a; SELECT url FROM visits WHERE visits > 20; SET application_name = 'r'")? {
        match message {
            SimpleQueryMessage::Row(row) => heard.push(format!("row {:?}", row.get(0))),
            SimpleQueryMessage::CommandComplete(count) => heard.push(format!("{count} rows")),
            SimpleQueryMessage::RowDescription(columns) => heard.push(columns[0].name().to_string()),
            _ => heard.push("other".into()),
        }
    }
    show("several", heard);
    let mut rows = client.query_raw("SELECT n FROM numbers", Vec::<i32>::new())?;
    let mut total = 0i64;
    while let Some(row) = rows.next()? {
        total += row.get::<_, i64>(0);
    }
    drop(rows);
    show("many rows", total);
    let mut text = String::new();
    let copied = client.copy_out("COPY (SELECT url, visits FROM visits ORDER BY url) TO STDOUT CSV")?.read_to_string(&mut text);
    show("copy", (copied.is_ok(), text));
    Ok(())
}

fn transactions(client: &mut Client) -> Result<(), Error> {
    let mut transaction = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start()?;
    show("level", transaction.query_one("SELECT current_setting('transaction_isolation')", &[])?.get::<_, String>(0));
    let mut nested = transaction.savepoint("s")?;
    show("no relation", failure(nested.query("SELECT * FROM nothing", &[]).unwrap_err()));
    show("failed block", failure(nested.query("SELECT 1", &[]).unwrap_err()));
    nested.rollback()?;
    let portal = transaction.bind("SELECT n FROM numbers WHERE n >= $1 ORDER BY n", &[&10i64])?;
    let mut parts = Vec::new();
    for most in [2, 3] {
        let rows = transaction.query_portal(&portal, most)?;
        parts.push(rows.iter().map(|row| row.get::<_, i64>(0)).collect::<Vec<_>>());
    }
    show("portal", parts);
    transaction.commit()?;
    show("division", failure(client.query("SELECT 1 / $1::int", &[&0i32]).unwrap_err()));
    show("syntax", failure(client.query("SELEC 1", &[]).unwrap_err()));
    Ok(())
}

fn stopping(client: &mut Client) -> Result<(), Error> {
    let token = client.cancel_token();
    let stopper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        token.cancel_query(NoTls)
    });
    let started = Instant::now();
    show("cancelled", failure(client.query("SELECT pg_sleep(20)", &[]).unwrap_err()));
    show("in time", started.elapsed() < Duration::from_millis(2300));
    stopper.join().expect("the thread ends")?;
    client.batch_execute("SET statement_timeout = 200")?;
    show("timed out", failure(client.query("SELECT pg_sleep(20)", &[]).unwrap_err()));
    client.batch_execute("RESET statement_timeout")?;
    show("after", client.query_one("SELECT 7", &[])?.get::<_, i32>(0));
    Ok(())
}

fn main() -> Result<(), Error> {
    let address = std::env::args().nth(1).expect("an address");
    let mut client = Client::connect(&address, NoTls)?;
    values(&mut client)?;
    statements(&mut client)?;
    transactions(&mut client)?;
    stopping(&mut client)?;
    client.close()
}
