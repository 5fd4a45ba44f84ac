"""Streams and changelogs in a pull query: each becomes a table of the rows that were read from it, for this one run.

Which columns are read is found in the text: every name that occurs in it, which may be one too many and never one too
few. A LIMIT goes to the source where nothing else decides which rows are given.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from sqlglot import exp

from catalog.model import Relation
from mvserver import interrupts, sqlstates
from mvserver.compiler.lower_duckdb import duckdb_type
from mvserver.errors import SqlError
from mvserver.quoting import constant, quoted
from mvserver.serving.api import StreamRead
from mvserver.sql.statements.base import Properties, Value
from mvserver.sql.types import parse_type

_DECIDING = ("joins", "laterals", "where", "group", "having", "order", "distinct", "windows", "qualify", "with_")


class StreamTables:
    """Of one query."""

    def __init__(self, tree: exp.Expr) -> None:
        self.reads: list[StreamRead] = []
        self._tree = tree
        self._names = {str(each.this).lower() for each in interrupts.asking(tree.find_all(exp.Identifier))}
        self._all = any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))
        self._all = self._all or any(join.method == "NATURAL" for join in tree.find_all(exp.Join))

    def query(self, table: exp.Table, relation: Relation, path: Sequence[str], alias: str) -> exp.Expr:
        """What stands for the stream, typed as a view of it would be."""
        columns = [c for c in relation.columns if self._all or c.name.lower() in self._names]
        if any(column.name.lower() == alias.lower() for column in self._tree.find_all(exp.Column)):
            columns = list(relation.columns)  # the whole row may be meant
        columns = columns or list(relation.columns[:1])
        name = ".".join(map(quoted, path))
        listed = ", ".join(quoted(column.name) for column in columns)
        read = StreamRead(
            name=f"mv_stream_{len(self.reads)}",
            select=f"SELECT {listed} FROM {name}{_with(table.meta.get('properties'))}",
            columns=tuple((column.name, duckdb_type(parse_type(column.type))) for column in columns),
            limit=self._limit(table) if relation.kind == "stream" else None,  # a changelog's rows are known at its end
        )
        known = next((each for each in self.reads if each.select == read.select and each.limit == read.limit), None)
        if known is None:
            self.reads.append(read)
        typed = [
            exp.alias_(exp.cast(exp.column(each, quoted=True), kind, dialect="duckdb"), each, quoted=True)
            for each, kind in read.columns
        ]
        return exp.select(*typed).from_(exp.to_table((known or read).name, dialect="duckdb"))

    def _limit(self, table: exp.Table) -> int | None:
        """The rows that the query can show, where these are the first that are read."""
        select = self._tree
        if not isinstance(select, exp.Select) or select.args["from_"].this is not table:
            return None
        if any(select.args.get(clause) for clause in _DECIDING) or table.args.get("joins"):
            return None
        if not all(isinstance(item.unalias(), exp.Star | exp.Column | exp.Literal) for item in select.expressions):
            return None  # an aggregate, say, or a function that gives several rows or none
        wanted = [select.args.get("limit"), select.args.get("offset")]
        counts = [node.expression for node in wanted if isinstance(node, exp.Limit | exp.Offset)]
        if wanted[0] is None or not all(isinstance(count, exp.Literal) and count.is_int for count in counts):
            return None
        return sum(int(count.name) for count in counts)


def register_empty(cursor: duckdb.DuckDBPyConnection, reads: Sequence[StreamRead]) -> None:
    """For binding: the tables without rows."""
    for read in reads:
        columns = ", ".join(f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in read.columns)
        cursor.register(read.name, cursor.sql(f"SELECT {columns} LIMIT 0").to_arrow_table())


def _with(properties: Properties | None) -> str:
    if not properties:
        return ""
    return f" WITH ({', '.join(f'{constant(key)} = {_value(key, value)}' for key, value in properties.items())})"


def _value(key: str, value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return constant(value)
    if isinstance(value, int | float):
        return str(value)
    raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'property "{key}" needs a value')
