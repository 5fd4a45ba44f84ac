"""Answers one kind of look-up or range from the finished rows of a view, as they are at the moment."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from mvserver import limits
from mvserver.front import KeptRows
from mvserver.serving.api import KeyRead, PullPlan
from mvserver.serving.fast.finished_view import FinishedView

_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: bool(a == b), "<": lambda a, b: bool(a < b), "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b), ">=": lambda a, b: bool(a >= b),
}  # fmt: skip


def reader(view: FinishedView, plan: PullPlan, read: KeyRead) -> Reader | None:
    """None where the view has not what the plan asks for: it may have been made anew since."""
    if read.key != view.names[: len(view.key_types)] or not set(read.columns) <= set(view.names):
        return None
    columns = tuple(view.names.index(name) for name in read.columns)
    if tuple(view.types[at] for at in columns) != plan.arrow_types:
        return None
    return Reader(view, columns, plan.arrow_types, read)


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

    def find(self, parameters: Sequence[Any]) -> KeptRows | None:
        """None where DuckDB has to be asked."""
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
            row = view.rows.get(key)
            keys, rows = ([], []) if row is None else ([key], [row])
        else:
            ordered = view.order(self._ranged)
            if ordered is None:
                return None
            first, last = self._slice(ordered[0], values)
            if last - first > limits.FEW_ROWS_MAX:
                return None
            keys = ordered[1][first:last]
            rows = [view.rows.get(key) for key in keys]
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
