"""Continuous queries, and SELECTs of every kind."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from mvserver.errors import SqlError
from mvserver.sql.lexer import PARAMETER, tokenize
from mvserver.sql.statements.base import Kind, ObjectName, Statement

NO_TREE = exp.Select()


@dataclass(frozen=True)
class ListQueries(Statement, kind=Kind.INSPECTION):
    pass


@dataclass(frozen=True)
class DescribeQuery(Statement, kind=Kind.INSPECTION):
    id: str


@dataclass(frozen=True)
class TerminateQuery(Statement, kind=Kind.CONTINUOUS):
    id: str


@dataclass(frozen=True)
class RestartQuery(Statement, kind=Kind.CONTINUOUS):
    id: str
    skip_rejected: bool = False
    with_snapshot: bool = False  # anew, with all that its source has now


@dataclass(frozen=True)
class DescribeStatement(Statement, kind=Kind.INSPECTION):
    """DeltaStream's dry run: columns ``type`` and ``info`` (JSON)."""

    statement: Statement


@dataclass(frozen=True)
class Measured:
    """What EXPLAIN ANALYZE has seen of a SELECT."""

    planning_ms: float
    first_ms: float  # until its first rows
    total_ms: float
    rows: int


@dataclass(frozen=True)
class Explain(Statement, kind=Kind.INSPECTION):
    """PostgreSQL's EXPLAIN; ``statement`` is anything, a pull query included. The session has run what is
    ``measured``."""

    statement: Statement
    options: tuple[tuple[str, str], ...] = ()
    measured: Measured | None = None


@dataclass(frozen=True)
class Pull(Statement, kind=Kind.PULL):
    """A SELECT, VALUES or TABLE that reads views and catalog relations and ends by itself. Where a clause is about
    rows as they come, ``continuous`` says which; then it is a push query's text, and ``select`` is ``NO_TREE``. So it
    is where a large statement is kept: whoever needs the tree parses the text again."""

    select: exp.Expression
    continuous: SqlError | None = None

    @property
    def has_parameters(self) -> bool:
        return any(token.kind is PARAMETER for token in tokenize(self.text))

    @property
    def has_tree(self) -> bool:
        return self.select is not NO_TREE


@dataclass(frozen=True)
class PushQuery(Statement, kind=Kind.PUSH):
    """A SELECT over a stream: rows as they come, until ``limit`` or until its client ends it. ``select`` is the tree of
    a continuous query."""

    select: exp.Expression
    limit: int | None = None


@dataclass(frozen=True)
class Subscribe(Statement, kind=Kind.PUSH):
    """The changes of a view as they come: behind its rows (``snapshot``), behind a token, or from now on."""

    name: ObjectName
    snapshot: bool = False
    since: str | None = None


@dataclass(frozen=True)
class BoundedRead(Statement, kind=Kind.PUSH):
    """A stream or changelog read to its present end, for a pull query on it. ``select`` is as a push query's."""

    select: exp.Expression
    limit: int | None = None
