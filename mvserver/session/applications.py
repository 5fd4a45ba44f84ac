"""An application under way: its name, and its virtual relations, which stand for their queries.

A virtual relation has no topic and no rows of its own. Where a later statement of the application reads it, its query
is written there as one of WITH: so each definition that the catalog keeps is whole by itself, and all of them read
their sources through the pipelines that they share.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql import parse_one
from mvserver.sql import statements as s
from mvserver.sql.lexer import TokenKind, tokenize

_CONTINUOUS = (s.CreateStreamAs, s.CreateChangelogAs, s.CreateMaterializedView, s.InsertInto)
_ALLOWED = (s.CreateStream, s.CreateChangelog, *_CONTINUOUS)


@dataclass(frozen=True)
class Virtual:
    kind: str
    name: str
    select: str  # its query, whole


@dataclass
class Application:
    name: str
    virtuals: dict[str, Virtual] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    def add(self, statement: s.CreateVirtual) -> None:
        name = statement.name.parts[0]
        if name in self.virtuals:
            raise SqlError(
                sqlstates.DUPLICATE_TABLE,
                f'virtual relation "{name}" already exists',
                position=statement.name.position,
            )
        text = self._with_virtuals(_select_text(statement.text, ("as",), inclusive=False), statement.select)
        self.virtuals[name] = Virtual(statement.kind, name, text)

    def whole(self, statement: s.Statement) -> s.Statement:
        """The statement as it is kept: with the queries of the virtual relations that it reads."""
        if not isinstance(statement, _ALLOWED):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "an application has only statements that create relations and queries",
                hint="Run the others before BEGIN APPLICATION or after END APPLICATION.",
            )
        if not isinstance(statement, _CONTINUOUS):
            return statement
        words = ("select", "with") if isinstance(statement, s.InsertInto) else ("as",)
        select = _select_text(statement.text, words, inclusive=isinstance(statement, s.InsertInto))
        changed = self._with_virtuals(select, statement.select)
        if changed == select:
            return statement
        return parse_one(statement.text[: len(statement.text) - len(select)] + changed)

    def check_all_read(self) -> None:
        unread = [virtual for name, virtual in self.virtuals.items() if name not in self.read]
        if unread:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'virtual {unread[0].kind} "{unread[0].name}" is never read',
                hint="Leave it out, or create it without VIRTUAL.",
            )

    def _with_virtuals(self, text: str, select: exp.Expression) -> str:
        named = {
            str(table.this.this)
            for table in select.find_all(exp.Table)
            if table.args.get("db") is None and table.this is not None
        }
        written = {str(cte.args["alias"].this.this) for cte in select.find_all(exp.CTE)}
        wanted = [virtual for name, virtual in self.virtuals.items() if name in named and name not in written]
        if not wanted:
            return text
        self.read |= {virtual.name for virtual in wanted}
        queries = ", ".join(f"{_quoted(virtual.name)} AS ({virtual.select})" for virtual in wanted)
        first = tokenize(text)[0]
        if first.kind is TokenKind.WORD and first.text == "with":
            return f"WITH {queries},{text[first.end :]}"
        return f"WITH {queries} {text}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _select_text(text: str, words: tuple[str, ...], *, inclusive: bool) -> str:
    """From the first of the words outside brackets; ``inclusive``: with it."""
    depth = 0
    for token in tokenize(text):
        if token.kind is TokenKind.OPERATOR and token.text in ("(", "["):
            depth += 1
        elif token.kind is TokenKind.OPERATOR and token.text in (")", "]"):
            depth -= 1
        elif depth == 0 and token.kind is TokenKind.WORD and token.text in words:
            return text[token.start if inclusive else token.end :].strip()
    raise SqlError(sqlstates.INTERNAL_ERROR, "the statement has no SELECT", detail=text)
