"""Reads a SELECT STREAM or SELECT TABLE with all its clauses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mvserver import limits
from mvserver.lenses.cursor import Cursor
from mvserver.lenses.expressions import RESERVED, Expressions
from mvserver.lenses.lexer import TokenKind
from mvserver.lenses.problems import ProblemError, syntax, unsupported
from mvserver.lenses.program import (
    Duration,
    Expression,
    Join,
    Lateral,
    Projection,
    RowKind,
    Select,
    SourceName,
    Target,
    Wildcard,
    Window,
)

_UNITS = {"ms": "MILLISECONDS", "s": "SECONDS", "m": "MINUTES", "h": "HOURS", "d": "DAYS"}
_DURATION = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)", re.IGNORECASE)
_REFUSED = {
    "having": "Give the SELECT a name with WITH, and filter what reads it.",
    "order": "A stream has no end at which it could be sorted.",
    "limit": "A processor has no end. Use the first dialect's SELECT to look at rows.",
    "union": "Write one INSERT INTO the same target for each part.",
}
_BEFORE_SOURCES = frozenset({"from", "join"})


def select(cursor: Cursor) -> Select:
    """One SELECT; the cursor is then behind it."""
    return _SelectReader(cursor).read()


class _SelectReader:
    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._expressions = Expressions(cursor, _dashed_names(cursor))

    def read(self) -> Select:
        cursor = self._cursor
        place = cursor.current.place
        cursor.expect_word("select")
        if not (cursor.at_word("stream") or cursor.at_word("table")):
            raise cursor.unexpected("A streaming SELECT is SELECT STREAM or SELECT TABLE")
        kind = RowKind(cursor.advance().text.upper())
        projections = self._projections()
        cursor.expect_word("from")
        source = self._source()
        joins = self._joins()
        laterals = self._laterals()
        where = self._expressions.expression() if cursor.accept_word("where") else None
        window = self._window()
        group_by = self._group_by()
        if window is None and cursor.at_word("window"):
            raise cursor.unexpected("WINDOW BY stands before GROUP BY")
        if cursor.current.word in _REFUSED:
            word = cursor.current.word
            raise unsupported(cursor.current.place, f"{word.upper()} is not supported", _REFUSED[word])
        return Select(kind, projections, source, joins, laterals, where, window, group_by, place)

    # --- the select list --------------------------------------------------------------------------------------------
    def _projections(self) -> tuple[Projection | Wildcard, ...]:
        found = [self._projection()]
        while self._cursor.accept_operator(","):
            found.append(self._projection())
        if len(found) > limits.COLUMNS_MAX:
            raise syntax(found[-1].place, f"a SELECT has at most {limits.COLUMNS_MAX} projections")
        return tuple(found)

    def _projection(self) -> Projection | Wildcard:
        cursor, place = self._cursor, self._cursor.current.place
        if cursor.accept_operator("*"):
            return Wildcard((), place)
        written = self._written()
        if cursor.at_operator(".") and cursor.peek().text == "*":
            if not (parts := getattr(written.expression, "parts", None)):
                raise cursor.unexpected()
            cursor.advance()
            cursor.advance()
            return Wildcard(parts, place)
        if not cursor.accept_word("as"):
            return written
        return Projection(written.expression, self._target(), written.text, place)

    def _written(self) -> Projection:
        """An expression with its text."""
        place = self._cursor.current.place
        expression = self._expressions.expression()
        return Projection(expression, None, self._cursor.text[place.offset : self._cursor.last_end], place)

    def _target(self) -> Target:
        cursor, place = self._cursor, self._cursor.current.place
        quoted = cursor.current.kind is TokenKind.NAME
        parts = [self._label()]
        while cursor.accept_operator("."):
            parts.append(self._label())
        if not quoted and parts[0] in ("_key", "_value"):
            return Target(parts[0], tuple(parts[1:]), place)
        if not quoted and parts[0] == "_meta":
            raise unsupported(place, "the facet _meta cannot be written", "Use _key and _value.")
        return Target("_value", tuple(parts), place)

    def _label(self) -> str:
        token = self._cursor.current
        if token.kind in (TokenKind.NAME, TokenKind.WORD) and token.text:
            return self._cursor.advance().text
        raise self._cursor.unexpected("A name is expected")

    # --- FROM -------------------------------------------------------------------------------------------------------
    def _source(self) -> SourceName:
        cursor, place = self._cursor, self._cursor.current.place
        if cursor.at_operator("("):
            raise unsupported(
                place, "a sub-query in FROM is not supported", "Give it a name: WITH name AS (SELECT ...);"
            )
        joins_on = cursor.peek().text in ("-", ".") and cursor.current.touches(cursor.peek())
        if cursor.current.word in RESERVED and not joins_on:
            raise cursor.unexpected("The name of a topic or of a WITH is expected")
        name = cursor.topic("a topic or of a WITH")
        alias = None
        if cursor.accept_word("as"):
            alias = self._label()
        elif cursor.current.kind is TokenKind.WORD and cursor.current.word not in RESERVED:
            alias = cursor.advance().text
        event_time = self._expressions.selection() if cursor.accept_word("eventtime", "by") else None
        return SourceName(name, alias, event_time, place)

    def _joins(self) -> tuple[Join, ...]:
        joins: list[Join] = []
        cursor = self._cursor
        while True:
            place = cursor.current.place
            if cursor.at_operator(","):
                raise unsupported(place, "a list in FROM is not supported", "Write JOIN ... ON ...")
            side = self._side()
            if side is None:
                return tuple(joins)
            source = self._source()
            on, within = self._conditions()
            joins.append(Join(side, source, on, within, place))

    def _side(self) -> str | None:
        cursor = self._cursor
        side = "INNER"
        if cursor.current.word in ("inner", "left", "right", "full", "outer"):
            side = cursor.advance().text.upper()
            cursor.accept_word("outer")
            cursor.expect_word("join")
        elif not cursor.accept_word("join"):
            return None
        return "OUTER" if side == "FULL" else side

    def _conditions(self) -> tuple[Expression | None, Duration | None]:
        """ON and WITHIN, in either order."""
        cursor = self._cursor
        on: Expression | None = None
        within: Duration | None = None
        while True:
            if on is None and cursor.accept_word("on"):
                on = self._expressions.expression()
            elif within is None and cursor.accept_word("within"):
                within = self._duration()
            else:
                return on, within

    def _laterals(self) -> tuple[Lateral, ...]:
        laterals = []
        while self._cursor.at_word("lateral"):
            place = self._cursor.advance().place
            array = self._expressions.expression()
            self._cursor.expect_word("as")
            laterals.append(Lateral(array, self._label(), place))
        return tuple(laterals)

    # --- windows and groups -----------------------------------------------------------------------------------------
    def _window(self) -> Window | None:
        cursor, place = self._cursor, self._cursor.current.place
        if not cursor.accept_word("window", "by"):
            if cursor.at_word("grace"):
                raise cursor.unexpected("GRACE BY follows a window")
            return None
        kind = cursor.current.word.upper()
        if kind not in ("TUMBLE", "HOP", "SESSION"):
            raise cursor.unexpected("Windows are TUMBLE 5m, HOP 5m BY 1m and SESSION 1m")
        cursor.advance()
        size = self._duration()
        advance = None
        if kind == "HOP":
            cursor.expect_word("by")
            advance = self._duration()
        grace = self._duration() if cursor.accept_word("grace", "by") else None
        return Window(kind, size, advance, grace, place)

    def _duration(self) -> Duration:
        token = self._cursor.current
        found = _DURATION.fullmatch(token.text) if token.kind is TokenKind.DURATION else None
        if found is None or int(found[1]) == 0:
            raise self._wrong_duration()
        self._cursor.advance()
        return Duration(int(found[1]), _UNITS[found[2].lower()], token.place)

    def _wrong_duration(self) -> ProblemError:
        return self._cursor.unexpected("A duration is a number of ms, s, m, h or d without space, as 5m")

    def _group_by(self) -> tuple[Projection, ...]:
        if not self._cursor.accept_word("group", "by"):
            return ()
        found = [self._written()]
        while self._cursor.accept_operator(","):
            found.append(self._written())
        return tuple(found)


def _dashed_names(cursor: Cursor) -> Sequence[str]:
    """The names behind FROM and JOIN that have dashes or dots, found ahead of the projections that use them."""
    tokens, found = cursor.all_tokens(), []
    for index, token in enumerate(tokens):
        if token.word in _BEFORE_SOURCES and tokens[min(index + 1, len(tokens) - 1)].kind is TokenKind.WORD:
            ahead = Cursor(cursor.text, tokens[index + 1 :])
            name = ahead.topic("a topic")
            if not name.isidentifier():
                found.append(name)
    return found
