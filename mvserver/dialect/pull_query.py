"""A pull query on its way to DuckDB's words: the tree that the passes rewrite, and what they have found in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

import duckdb
from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect import binding
from mvserver.dialect.binding import Bound
from mvserver.dialect.duck_text import written
from mvserver.dialect.growth import Growth
from mvserver.dialect.signals import Signal
from mvserver.dialect.typing.typed_rewrites import TypedRewriting
from mvserver.errors import SqlError
from mvserver.pgcatalog.session_functions import SessionFacts

_MAY_BE_ADDED = (
    sqlstates.UNDEFINED_FUNCTION, sqlstates.DATATYPE_MISMATCH, sqlstates.FEATURE_NOT_SUPPORTED, sqlstates.CANNOT_COERCE,
)  # fmt: skip
_ROUNDS_MAX = 4
"""Types of what is put in other words depend on what was put so within it: one kind of rewriting after the other."""


@dataclass(eq=False)
class PullQuery:
    """``tree`` is changed in place by each pass."""

    tree: exp.Expr
    facts: SessionFacts
    reads_system: bool  # relations of the system catalog
    reads_views: bool
    oids: Sequence[int]  # of the parameters, as far as the client has said them
    own_types: Mapping[int, str]  # DuckDB's names of those of these types that users have made
    time_zone: str
    kind: str
    text: str | None = None  # its statement's, where that is known
    signalled: Mapping[int, Signal] = field(default_factory=dict)  # columns whose processes are sent a signal
    documents: Sequence[bool] = ()  # which columns are of type jsonb; empty where that is not known
    growth: Growth = field(init=False)

    def __post_init__(self) -> None:
        self.growth = Growth(self.tree)

    @contextmanager
    def rooted(self) -> Iterator[exp.Paren]:
        """The tree under a root, so that its topmost node may be replaced too."""
        root = exp.Paren(this=self.tree)
        yield root
        self.tree = cast(exp.Expr, root.this.pop())


class TypedPullQuery:
    """The same with a cursor to bind it by. A binding lasts until a pass says that it has changed the tree."""

    def __init__(self, query: PullQuery, cursor: duckdb.DuckDBPyConnection, go_on: Callable[[], None]) -> None:
        """``go_on`` raises where nobody waits for the query any more."""
        self.query = query
        self.tree = query.tree
        self.cursor = cursor
        self.go_on = go_on
        self.with_enums = False  # any operand may be of an enum type
        self._bound: Bound | None = None
        self._complete = True
        self._parameters: Mapping[int, str] = {}  # types by number, by the last binding

    @property
    def bound(self) -> Bound:
        """Names and types as the tree is now; SqlError for what does not bind."""
        if self._bound is None:
            self.take(self.completed(self.tree) if self._complete else self._bind(self.tree))
        assert self._bound is not None  # noqa: S101 - just taken
        return self._bound

    def take(self, bound: Bound) -> None:
        """A binding of the present tree that a pass has made."""
        self._bound, self._parameters = bound, bound.parameters

    def changed(self, *, complete: bool = False) -> None:
        """The tree means something else now. ``complete``: the next binding adds what DuckDB does not bind, as the one
        does before which there was none with types."""
        untyped = self._bound is None or not self._bound.types
        self._bound, self._complete = None, complete or (untyped and self._complete)

    def rewriting(self) -> TypedRewriting:
        return TypedRewriting(self.cursor, self.tree, self._parameters, self.query.time_zone)

    def _bind(self, tree: exp.Expr) -> Bound:
        self.go_on()
        return binding.bind(self.cursor, written(tree))

    def completed(self, tree: exp.Expr, bind: Callable[[exp.Expr], Bound] | None = None) -> Bound:
        """A binding of the query, or of a copy of it, with what DuckDB does not bind put in other words, in place."""
        bind = bind or self._bind
        for _ in range(_ROUNDS_MAX):
            try:
                return bind(tree)
            except SqlError as error:
                if error.sqlstate not in _MAY_BE_ADDED:
                    raise
                if not TypedRewriting(self.cursor, tree, self._parameters, self.query.time_zone).add_missing(error):
                    raise
        return bind(tree)
