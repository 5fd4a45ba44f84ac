"""Answers one kind of look-up or range from the finished rows of a view, as they are at the moment."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, Protocol

from mvserver import limits
from mvserver.front import KeptRows
from mvserver.serving.api import KeyRead, Members, PullPlan
from mvserver.serving.fast.finished_view import FinishedView, Row


class Rows(Protocol):
    def get(self, key: Any) -> Row | None:
        """The row of the key."""


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: bool(a == b), "<": lambda a, b: bool(a < b), "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b), ">=": lambda a, b: bool(a >= b),
}  # fmt: skip


def reader(view: FinishedView, plan: PullPlan, read: KeyRead) -> Reader | KeysReader | None:
    """None where the view has not what the plan asks for: it may have been made anew since."""
    if read.key != view.names[: len(view.key_types)] or not set(read.columns) <= set(view.names):
        return None
    columns = tuple(view.names.index(name) for name in read.columns)
    if tuple(view.types[at] for at in columns) != plan.arrow_types:
        return None
    kind = KeysReader if read.members else Reader
    return kind(view, columns, plan.arrow_types, read)


class Reader:
    def __init__(self, view: FinishedView, columns: tuple[int, ...], types: tuple[Any, ...], read: KeyRead) -> None:
        comparisons, width = read.comparisons, len(view.key_types)
        self._view = view
        self._types = types
        self._columns = columns
        self._operands = tuple((c.parameter - 1, c.constant, view.key_types[c.column]) for c in comparisons)
        equal: dict[int, int] = {}
        for at, comparison in enumerate(comparisons):
            if comparison.operator == "=":
                equal.setdefault(comparison.column, at)
        whole = len(equal) == width
        self._whole = tuple(equal[column] for column in range(width)) if whole else ()
        self._ranged = next(iter(equal), comparisons[0].column)
        self._bounds = [(at, c.operator) for at, c in enumerate(comparisons) if c.column == self._ranged]
        used = set(self._whole) if whole else {at for at, _ in self._bounds}
        self._others = [(at, c.column, _TESTS[c.operator]) for at, c in enumerate(comparisons) if at not in used]

    def find(self, parameters: Sequence[Any], there: Rows) -> KeptRows | None:
        """Of the view's rows, or of those that were ``there``. None where DuckDB has to be asked."""
        values = []
        for at, constant, kind in self._operands:
            value = constant if at < 0 else parameters[at]
            if type(value) is not kind:
                return None
            values.append(value)
        view, whole = self._view, self._whole
        keys: list[Any]
        rows: list[Any]
        if whole:
            key = values[whole[0]] if len(whole) == 1 else tuple([values[at] for at in whole])
            row = there.get(key)
            keys, rows = ([], []) if row is None else ([key], [row])
        else:
            ordered = view.order(self._ranged)
            if ordered is None:
                return None
            first, last = self._slice(ordered[0], values)
            if last - first > limits.FEW_ROWS_MAX:
                return None
            keys = ordered[1][first:last]
            rows = [there.get(key) for key in keys]
        if self._others and keys:
            keys, rows = self._passing(keys, rows, values)
        return KeptRows(keys, rows, self._columns, self._types, view)

    def _slice(self, values: list[Any], bounds: list[Any]) -> tuple[int, int]:
        first, last = 0, len(values)
        for at, operator in self._bounds:
            bound = bounds[at]
            if operator in ("=", ">="):
                first = max(first, bisect_left(values, bound))
            elif operator == ">":
                first = max(first, bisect_right(values, bound))
            if operator in ("=", "<="):
                last = min(last, bisect_right(values, bound))
            elif operator == "<":
                last = min(last, bisect_left(values, bound))
        return first, max(first, last)

    def _passing(self, keys: list[Any], rows: list[Any], values: list[Any]) -> tuple[list[Any], list[Any]]:
        """Those that the other comparisons hold for, too. Rows begin with their keys, which may hold a NULL."""
        passing = [
            (key, row)
            for key, row in zip(keys, rows, strict=True)
            if row is not None
            and all(row[column] is not None and test(row[column], values[at]) for at, column, test in self._others)
        ]
        return [key for key, _ in passing], [row for _, row in passing]


class KeysReader:
    """Of the rows of some keys: each column of the key has one value or some."""

    def __init__(self, view: FinishedView, columns: tuple[int, ...], types: tuple[Any, ...], read: KeyRead) -> None:
        self._view = view
        self._types = types
        self._columns = columns
        one = {c.column: Members(c.column, _given(c.constant), _given(c.parameter or None)) for c in read.comparisons}
        self._members = [members for _, members in sorted({**one, **{m.column: m for m in read.members}}.items())]

    def find(self, parameters: Sequence[Any], there: Rows) -> KeptRows | None:
        """Of the view's rows, or of those that were ``there``. None where DuckDB has to be asked."""
        view = self._view
        found = [_values(members, parameters, view.key_types[members.column]) for members in self._members]
        values = [each for each in found if each is not None]
        if len(values) < len(found) or prod(map(len, values)) > limits.FEW_ROWS_MAX:
            return None
        keys = list(values[0]) if len(values) == 1 else list(product(*values))
        found_rows = [(key, row) for key in keys if (row := there.get(key)) is not None]
        return KeptRows(
            [key for key, _ in found_rows], [row for _, row in found_rows], self._columns, self._types, view
        )


def _given(value: Any) -> tuple[Any, ...]:
    return () if value is None else (value,)


def _values(members: Members, parameters: Sequence[Any], kind: type) -> dict[Any, None] | None:
    """Each once, in their order; a NULL equals nothing. None where one is not of the key's type."""
    found = [*members.constants, *(parameters[number - 1] for number in members.parameters)]
    if members.array:
        array = parameters[members.array - 1]
        if not isinstance(array, list | tuple) or len(array) > limits.FEW_ROWS_MAX:
            return None
        found += array
    values = [value for value in found if value is not None]
    return dict.fromkeys(values) if all(type(value) is kind for value in values) else None
