"""An application under way: its name, and its virtual relations, which stand for their queries.

A virtual relation has no topic and no rows of its own. Where a later statement of the application reads it, its query
is written there as one of WITH: so each definition that the catalog keeps is whole by itself, and all of them read
their sources through the pipelines that they share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.quoting import quoted
from mvserver.sql import parse_one
from mvserver.sql.definitions import select_text
from mvserver.sql.lexer import WORD, tokenize
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.relations import (
    CreateChangelog,
    CreateChangelogAs,
    CreateMaterializedView,
    CreateStream,
    CreateStreamAs,
    CreateTableAs,
    CreateVirtual,
    InsertInto,
)

_CONTINUOUS = (CreateStreamAs, CreateChangelogAs, CreateTableAs, CreateMaterializedView, InsertInto)
_BELONGING = (CreateStream, CreateChangelog, *_CONTINUOUS)


@dataclass(frozen=True)
class Virtual:
    kind: str
    name: str
    select: str  # its query, whole


@dataclass(frozen=True)
class Application:
    """As it stands after a statement: a savepoint keeps it, and ROLLBACK TO brings it back."""

    name: str
    virtuals: Mapping[str, Virtual] = field(default_factory=dict)
    read: frozenset[str] = frozenset()

    def with_virtual(self, statement: CreateVirtual) -> Application:
        name = statement.name.parts[0]
        if name in self.virtuals:
            raise SqlError(
                sqlstates.DUPLICATE_TABLE,
                f'virtual relation "{name}" already exists',
                position=statement.name.position,
            )
        after, text = self._with_virtuals(select_text(statement), statement.select)
        return replace(after, virtuals={**self.virtuals, name: Virtual(statement.kind, name, text)})

    @staticmethod
    def refuse_other(statement: Statement) -> None:
        """What would change something and is no part of an application."""
        if not isinstance(statement, _BELONGING):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "an application has only statements that create relations and queries",
                hint="Run the others before BEGIN APPLICATION or after END APPLICATION.",
            )

    def whole(self, statement: Statement) -> tuple[Application, Statement]:
        """The statement as it is kept: with the queries of the virtual relations that it reads."""
        if not isinstance(statement, _CONTINUOUS):
            return self, statement
        select = select_text(statement)
        after, changed = self._with_virtuals(select, statement.select)
        if changed == select:
            return after, statement
        return after, parse_one(statement.text[: len(statement.text) - len(select)] + changed)

    def check_all_read(self) -> None:
        unread = [virtual for name, virtual in self.virtuals.items() if name not in self.read]
        if unread:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'virtual {unread[0].kind} "{unread[0].name}" is never read',
                hint="Leave it out, or create it without VIRTUAL.",
            )

    def _with_virtuals(self, text: str, select: exp.Expression) -> tuple[Application, str]:
        named = {
            str(table.this.this)
            for table in select.find_all(exp.Table)
            if table.args.get("db") is None and table.this is not None
        }
        written = {str(cte.args["alias"].this.this) for cte in select.find_all(exp.CTE)}
        wanted = [virtual for name, virtual in self.virtuals.items() if name in named and name not in written]
        if not wanted:
            return self, text
        after = replace(self, read=self.read | {virtual.name for virtual in wanted})
        queries = ", ".join(f"{quoted(virtual.name)} AS ({virtual.select})" for virtual in wanted)
        first = tokenize(text)[0]
        if first.kind is WORD and first.text == "with":
            return after, f"WITH {queries},{text[first.end :]}"
        return after, f"WITH {queries} {text}"
