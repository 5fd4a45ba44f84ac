"""What the demo says in SQL, with why: each step is a line for people and the statements behind it."""

from __future__ import annotations

from collections.abc import Mapping

TOPIC, STREAM, TABLE, BUCKET = "pageviews", "users", "accounts", "lakehouse"
ENRICHED, CUSTOMERS, VISITS, USERS = "pageviews_enriched", "customers", "visits", "users_now"
_SOON = "'commit.interval.millis' = 500"


def stores(places: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    return [
        (
            "Stores: where data moves",
            [
                f"CREATE STORE kinesis_store WITH ({places['kinesis']});",
                f"CREATE STORE kafka_store WITH ('type' = KAFKA, 'uris' = '{places['kafka']}');",
                f"CREATE STORE pg WITH ('type' = POSTGRESQL, 'uris' = '{places['postgresql']}', "
                "'postgres.username' = 'postgres', 'tls.disabled' = TRUE);",
                f"CREATE STORE bricks WITH ('type' = DATABRICKS, {places['databricks']},\n"
                f"    'databricks.cloud.s3.bucket' = '{BUCKET}', {places['s3']});",
                "CREATE STORE lake WITH ('type' = ICEBERG, 'uris' = 'sqlite:///catalog.db', "
                "'iceberg.warehouse' = 'lake');",
                "LIST STORES;",
            ],
        )
    ]


RELATIONS = [
    (
        "Relations: users change (a changelog in Kinesis), page views happen (a stream in Kafka)",
        [
            "CREATE CHANGELOG users (registertime BIGINT, userid VARCHAR, regionid VARCHAR, PRIMARY KEY(userid))\n"
            f"  WITH ('store' = 'kinesis_store', 'topic' = '{STREAM}', 'value.format' = 'json', "
            "'timestamp' = 'registertime');",
            "CREATE STREAM pageviews (viewtime BIGINT, userid VARCHAR, pageid VARCHAR)\n"
            f"  WITH ('store' = 'kafka_store', 'topic' = '{TOPIC}', 'value.format' = 'json', "
            "'timestamp' = 'viewtime');",
        ],
    ),
    (
        "A table of PostgreSQL, by change capture; its columns come from the database",
        [
            f"CREATE CHANGELOG accounts WITH ('store' = 'pg', 'topic' = 'public.{TABLE}');",
            "DESCRIBE RELATION COLUMNS accounts;",
        ],
    ),
]
QUERIES = [
    (
        "Query 1, a view of Kinesis: each user as he is now",
        [f"CREATE MATERIALIZED VIEW {USERS} AS SELECT userid, regionid FROM users;"],
    ),
    (
        "Query 2, Kafka and Kinesis to Kafka: each view with the region that its user had then",
        [
            f"CREATE STREAM {ENRICHED} WITH ('store' = 'kafka_store') AS\n"
            "  SELECT p.viewtime, p.userid, p.pageid, u.regionid FROM pageviews p JOIN users u "
            "ON p.userid = u.userid;",
        ],
    ),
    (
        "Query 3, a view over its output: how often each page was seen from each region",
        [
            f"CREATE MATERIALIZED VIEW {VISITS} AS\n"
            f"  SELECT regionid, pageid, count(*) AS views FROM {ENRICHED} GROUP BY regionid, pageid;"
        ],
    ),
    (
        "Query 4, one view over all three stores: who is a customer, where, with which plan, and how active",
        [
            f"CREATE MATERIALIZED VIEW {CUSTOMERS} AS\n"
            "  SELECT u.userid, u.regionid, a.plan, v.views FROM users u\n"
            "  JOIN accounts a ON a.userid = u.userid\n"
            "  JOIN (SELECT userid, count(*) AS views FROM pageviews GROUP BY userid) v ON v.userid = u.userid;",
        ],
    ),
    (
        "Queries 5 and 6, out to the lake: the customers as a Delta table, the visits as an Iceberg table",
        [
            f"CREATE TABLE delta_{CUSTOMERS} WITH ('store' = 'bricks', 'databricks.schema.name' = 'web', {_SOON}) AS\n"
            f"  SELECT userid, regionid, plan, views FROM {CUSTOMERS};",
            f"CREATE TABLE iceberg_{VISITS} WITH ('store' = 'lake', 'iceberg.namespace' = 'web', {_SOON}) AS\n"
            f"  SELECT regionid, pageid, views FROM {VISITS};",
        ],
    ),
]
MOST_ACTIVE = f"SELECT * FROM {CUSTOMERS} ORDER BY views DESC, userid LIMIT 3;"
MOST_SEEN = f"SELECT * FROM {VISITS} ORDER BY views DESC, regionid, pageid LIMIT 3;"
LOOKS = (
    MOST_ACTIVE,
    MOST_SEEN,
    "SELECT sink, source, state, rows_in FROM mv_catalog.queries ORDER BY sink;",
    "LIST ENTITIES IN STORE kafka_store;",
    "PRINT ENTITY main.web.delta_customers IN STORE bricks LIMIT 2;",
    "PRINT ENTITY web.iceberg_visits IN STORE lake LIMIT 2;",
)
ROWS = {
    USERS: f"SELECT userid, regionid FROM {USERS};",
    CUSTOMERS: f"SELECT userid, regionid, plan, views FROM {CUSTOMERS};",
    VISITS: f"SELECT regionid, pageid, views FROM {VISITS};",
}
