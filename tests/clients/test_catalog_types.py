"""The types of the system catalog's columns as a client is told them, beside a real PostgreSQL."""

from __future__ import annotations

import psycopg
import pytest

from mvserver.pgcatalog import static_data
from tests.clients.view_world import Connection, ours, outcome, theirs

__all__ = ["ours", "theirs"]

pytestmark = pytest.mark.postgres

# functions are shown by their names, types by their oids; of the others there is never one
_OTHERWISE = {
    "regproc", "regtype", "regtype[]", "anyarray", "pg_statistic[]", "pg_ndistinct", "pg_dependencies", "pg_mcv_list",
}  # fmt: skip
_OF_ANOTHER_VERSION = {  # of PostgreSQL than 15
    "pg_attribute.attstattarget", "pg_attribute.attndims", "pg_attribute.attinhcount", "pg_constraint.coninhcount",
    "pg_stat_wal.wal_bytes", "pg_statistic_ext.stxstattarget", "pg_subscription.substream",
}  # fmt: skip

ALIKE = (
    "SELECT relname, relkind, relpersistence, relacl, relpartbound FROM pg_class WHERE relname = 'visits'",
    "SELECT c.relname AS name, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relname = 'visits'",
    "SELECT indkey, indoption FROM pg_index WHERE indrelid = 'visits'::regclass",
    "SELECT i.* FROM (SELECT indkey AS k, indnatts FROM pg_index WHERE indrelid = 'visits'::regclass) AS i",
    "SELECT i.k, i.n FROM (SELECT indkey, indnatts FROM pg_index WHERE indrelid = 'visits'::regclass) AS i (k, n)",
    "WITH c AS (SELECT relname AS n, relkind FROM pg_class) SELECT n, relkind FROM c WHERE n = 'visits'",
    "SELECT proargtypes FROM pg_proc WHERE proname IN ('ascii', 'starts_with')",
    "SELECT indkey::text, indkey[0], indkey::int2[], array_to_string(indkey, ',') FROM pg_index "
    "WHERE indrelid = 'visits'::regclass",
    "SELECT typname, typtype, typcategory, typdelim FROM pg_type WHERE typname IN ('int4', 'text', '_text')",
    "SELECT relname || '' AS a, lower(relname) AS b, max(relname) AS c FROM pg_class WHERE relname = 'visits' "
    "GROUP BY relname",
    "SELECT table_name, table_type, is_insertable_into FROM information_schema.tables WHERE table_name = 'plain'",
    "SELECT column_name, is_nullable, ordinal_position FROM information_schema.columns WHERE table_name = 'plain'",
    "SELECT pid = 0 AS none, backend_xid FROM pg_stat_activity WHERE pid = pg_backend_pid()",
    "SELECT count(*), min(attidentity) FROM pg_attribute WHERE attrelid = 'visits'::regclass AND attnum > 0",
)


@pytest.mark.parametrize("text", ALIKE)
def test_types_and_values(text: str, ours: Connection, theirs: Connection) -> None:
    for connection in (ours, theirs):
        connection.execute("CREATE INDEX visits_url ON visits (url, visits DESC)")
        connection.execute("CREATE VIEW plain AS SELECT url, visits FROM visits")
    ours.execute("DROP INDEX visits_key")
    assert outcome(ours, text) == outcome(theirs, text)


def test_every_column_of_every_relation(ours: Connection, theirs: Connection) -> None:
    compared, other = 0, []
    for relation in static_data.relations():
        types = _types(theirs, relation)
        if types is None:
            continue  # PostgreSQL has it no longer
        found = _types(ours, relation)
        assert found is not None, relation.name
        for column in relation.columns:
            if column.name in types and column.pg_type not in _OTHERWISE:
                compared += 1
                if found[column.name] != types[column.name]:
                    other.append(f"{relation.name}.{column.name}")
    assert set(other) <= _OF_ANOTHER_VERSION
    assert compared > 1_800


def _types(connection: Connection, relation: static_data.StaticRelation) -> dict[str, tuple[int, int]] | None:
    try:
        cursor = connection.execute(f"SELECT * FROM {relation.schema}.{relation.name} LIMIT 0")
    except psycopg.errors.UndefinedTable:
        return None
    return {each.name: (each._ftype, each._fmod) for each in cursor.description or ()}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT indkey, indclass IS NULL AS without FROM pg_index WHERE indrelid = 'visits'::regclass",
        "SELECT proargtypes FROM pg_proc WHERE proname = 'starts_with'",
        "SELECT relname, relkind FROM pg_class WHERE relname = 'visits'",
        "SELECT pid = 0 AS none, client_addr FROM pg_stat_activity WHERE false",
    ],
)
def test_binary_forms(text: str, ours: Connection, theirs: Connection) -> None:
    """The same bytes."""
    found = []
    ours.execute("DROP INDEX visits_key")
    for connection in (ours, theirs):
        connection.execute("CREATE INDEX visits_again ON visits (visits, url)")
        result = connection.pgconn.exec_params(text.encode(), [], result_format=1)
        assert result.error_message == b""
        found.append([[result.get_value(row, at) for at in range(result.nfields)] for row in range(result.ntuples)])
    assert found[0] == found[1]
