"""What a server's catalog says of its tables: names, columns, keys, replica identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.postgresql.connections import Connection
from spark_sinks.postgresql.limits import NAME_BYTES_MAX

_DECIMAL_DIGITS_MAX = 38  # of the numbers that have a type of their own here

_SYSTEM = "n.nspname NOT IN ('pg_catalog', 'information_schema') AND NOT starts_with(n.nspname::text, 'pg_toast')"
# Tables and partitioned tables, and no partitions: these are read through the table that they are part of.
_IS_TABLE = "c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'"


@dataclass(frozen=True)
class SourceColumn:
    """``type`` is as format_type spells it. A generated column has no place in the stream of changes."""

    name: str
    number: int  # of no other column that the table has ever had
    type: str
    type_oid: int
    base_type_oid: int  # of a domain, what it is made of
    modifier: int
    not_null: bool
    generated: bool
    may_be_large: bool  # a large value is kept apart, and is not logged where an update leaves it as it was


@dataclass(frozen=True)
class SourceTable:
    """``identity`` is as in pg_class.relreplident; of a partitioned table, the weakest of its partitions. ``key`` are
    the columns by which the log tells rows apart; none where it cannot."""

    oid: int
    schema: str
    name: str
    kind: str
    rows: int  # an estimate; -1 where there is none
    identity: str
    key: tuple[str, ...]
    columns: tuple[SourceColumn, ...]

    @property
    def entity(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def published(self) -> tuple[SourceColumn, ...]:
        return tuple(column for column in self.columns if not column.generated)

    @property
    def qualified(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def rows_of(self) -> str:
        """As FROM and a publication name it. Tables that inherit from it have rows of their own; partitions are what a
        partitioned table has."""
        return self.qualified if self.kind == "p" else f"ONLY {self.qualified}"


def decimal_of(modifier: int) -> tuple[int, int] | None:
    """Precision and scale of a numeric column; None where no DECIMAL here has all its digits."""
    if modifier < 4:
        return None
    precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF  # a negative scale is a large one here
    return (precision, scale) if precision <= _DECIMAL_DIGITS_MAX and scale <= precision else None


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """For commands of the replication protocol, which take no parameters. Standard strings: no backslash escapes."""
    return "'" + text.replace("'", "''") + "'"


def split_name(entity: str) -> tuple[str, str]:
    """Schema and table of an entity's name; one without a dot is in public. 42602 for what is no such name."""
    schema, dot, table = entity.partition(".")
    if not dot:
        schema, table = "public", entity
    if not schema or not table or "\0" in entity or any(len(p.encode()) > NAME_BYTES_MAX for p in (schema, table)):
        raise SqlError(
            sqlstates.INVALID_NAME,
            f'invalid entity name "{entity}"',
            detail="In a store of type POSTGRESQL an entity is a table: schema.table, or a table of the schema public.",
        )
    return schema, table


def list_tables(connection: Connection) -> Sequence[tuple[str, str, int]]:
    """Schema, name and estimated rows of all that the user may read."""
    rows = connection.execute(
        "SELECT n.nspname, c.relname, c.reltuples::bigint FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE {_SYSTEM} AND {_IS_TABLE} AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1, 2"
    ).fetchall()
    return [(str(schema), str(name), int(estimate)) for schema, name, estimate in rows]


def find_table(connection: Connection, entity: str) -> SourceTable | None:
    schema, name = split_name(entity)
    found = connection.execute(
        "SELECT c.oid::bigint, c.relkind, c.reltuples::bigint, "
        "CASE c.relkind WHEN 'r' THEN c.relreplident ELSE "
        "  (SELECT CASE WHEN count(*) = 0 THEN c.relreplident WHEN bool_or(l.relreplident = 'n') THEN 'n' "
        "   WHEN count(DISTINCT l.relreplident) > 1 THEN 'm' ELSE min(l.relreplident::text)::\"char\" END "
        "   FROM pg_partition_tree(c.oid) p JOIN pg_class l ON l.oid = p.relid AND p.isleaf) END "
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE {_SYSTEM} AND {_IS_TABLE} AND n.nspname = %s AND c.relname = %s",
        (schema, name),
    ).fetchone()
    if found is None:
        return None
    oid, kind, rows, identity = found
    columns = connection.execute(
        "SELECT a.attname, a.attnum::bigint, format_type(a.atttypid, a.atttypmod), a.atttypid::bigint, "
        "  (WITH RECURSIVE base(id) AS (SELECT a.atttypid UNION SELECT t.typbasetype FROM pg_type t JOIN base b "
        "   ON t.oid = b.id WHERE t.typtype = 'd') SELECT t.oid::bigint FROM base b JOIN pg_type t ON t.oid = b.id "
        "   WHERE t.typtype <> 'd'), "
        "  CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END, a.attnotnull, a.attgenerated <> '', "
        "  a.attlen = -1 AND a.attstorage IN ('x', 'e') AND (a.atttypmod < 0 OR a.atttypmod > 2000) "
        "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
        "WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        (oid,),
    ).fetchall()
    keyed = connection.execute(
        "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
        "WHERE i.indrelid = %s AND CASE WHEN %s = 'i' THEN i.indisreplident ELSE i.indisprimary END ORDER BY a.attnum",
        (oid, str(identity)),
    ).fetchall()
    return SourceTable(
        int(oid), schema, name, str(kind), int(rows), str(identity),
        tuple(str(row[0]) for row in keyed),
        tuple(SourceColumn(str(n), int(at), str(t), int(o), int(b), int(m), bool(nn), bool(g), bool(large))
              for n, at, t, o, b, m, nn, g, large in columns),
    )  # fmt: skip


def bytes_of(connection: Connection, table: SourceTable) -> int:
    """Apart from the rest, since it waits for whoever has locked the table."""
    row = connection.execute("SELECT pg_total_relation_size(%s::oid)", (table.oid,)).fetchone()
    return 0 if row is None or row[0] is None else int(row[0])


def check_identity(store: str, table: SourceTable) -> None:
    """55000 where the log cannot say which row was changed: to publish such a table would make the updates of its own
    users fail."""
    if table.identity == "f" or (table.identity in "di" and table.key):
        return
    mixed = table.identity == "m"
    raise SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'entity "{table.entity}" of store "{store}" has no replica identity'
        if not mixed
        else f'the partitions of entity "{table.entity}" of store "{store}" differ in their replica identity',
        detail="The server would refuse updates and deletions of it as soon as its changes are read.",
        hint=f"Give it a primary key, or ALTER TABLE {table.qualified} REPLICA IDENTITY FULL.",
    )


def check_key(store: str, table: SourceTable) -> None:
    """55000 where rows are not told apart: a changelog has a row for each key."""
    if not table.key:
        raise SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            f'entity "{table.entity}" of store "{store}" has no primary key',
            detail="A changelog needs one.",
            hint="Give the table a primary key, or declare a stream over it.",
        )


def no_entity(store: str, entity: str) -> SqlError:
    return SqlError(sqlstates.UNDEFINED_OBJECT, f'entity "{entity}" does not exist in store "{store}"')
