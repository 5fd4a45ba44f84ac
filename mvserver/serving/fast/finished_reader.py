"""Answers one kind of look-up or range from the finished rows of a view, as they are at the moment."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, Protocol

import pyarrow as pa

from mvserver import limits
from mvserver.front import KeptRows
from mvserver.serving.api import Further, KeyRead, Members, PullPlan
from mvserver.serving.fast.finished_view import FinishedView, Row


class Rows(Protocol):
    def get(self, key: Any) -> Row | None:
        """The row of the key."""


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
    further = []
    for each in read.further:
        at = view.names.index(each.column) if each.column in view.names else -1
        kind = None if at < 0 else _compared_as(view.types[at])
        if kind is None:
            return None
        further.append((at, each, kind))
    return Reader(view, columns, plan.arrow_types, read, further)


def _compared_as(kind: Any) -> type | None:
    """The type of Python whose values it compares as DuckDB does."""
    if pa.types.is_integer(kind):
        return int
    return str if pa.types.is_string(kind) else None


class Reader:
    """Rows whose key columns have one value or some are found by these values, in the view or in an index; else they
    are a range of the order of one column. Further comparisons, also of columns that are not of the key, are made row
    by row."""

    def __init__(
        self,
        view: FinishedView,
        columns: tuple[int, ...],
        types: tuple[Any, ...],
        read: KeyRead,
        further: Sequence[tuple[int, Further, type]] = (),
    ) -> None:
        """``further`` come with the place of their column in a row, and its type."""
        comparisons = read.comparisons
        self._view = view
        self._types = types
        self._columns = columns
        self._operands = (
            *((c.parameter - 1, c.constant, view.key_types[c.column]) for c in comparisons),
            *((f.parameter - 1, f.constant, kind) for _, f, kind in further),
        )
        self._members = tuple((members, view.key_types[members.column]) for members in read.members)
        equal: dict[int, int] = {}  # by column: the operand, or -1 - the list of members
        for at, members in enumerate(read.members):
            equal.setdefault(members.column, -1 - at)
        for at, comparison in enumerate(comparisons):
            if comparison.operator == "=":
                equal.setdefault(comparison.column, at)
        self._equal = tuple(equal[column] for column in sorted(equal))
        self._indexed = None if len(equal) == len(view.key_types) else tuple(sorted(equal))
        self._one = not read.members  # value for each of them
        self._ranged = comparisons[0].column if comparisons else 0
        self._bounds = [(at, c.operator) for at, c in enumerate(comparisons) if c.column == self._ranged]
        used = set(self._equal) if equal else {at for at, _ in self._bounds}
        self._others = [(at, c.column, _TESTS[c.operator]) for at, c in enumerate(comparisons) if at not in used]
        self._others += [
            (at, column, _TESTS[f.operator]) for at, (column, f, _) in enumerate(further, start=len(comparisons))
        ]
        self._other_members = [(at, m.column) for at, m in enumerate(read.members) if -1 - at not in used]

    def find(self, parameters: Sequence[Any], there: Rows) -> KeptRows | None:
        """Of the view's rows, or of those that were ``there``. None where DuckDB has to be asked."""
        values = []
        for at, constant, kind in self._operands:
            value = constant if at < 0 else parameters[at]
            if type(value) is not kind:
                return None
            values.append(value)
        lists = [_values(members, parameters, kind) for members, kind in self._members]
        if None in lists:
            return None
        keys = self._by_values(values, lists) if self._equal else self._by_range(values)
        if keys is None:
            return None
        rows: list[Any] = [there.get(key) for key in keys]
        if None in rows or self._others or self._other_members:
            keys, rows = self._passing(keys, rows, values, lists)
        return KeptRows(keys, rows, self._columns, self._types, self._view)

    def _by_values(self, values: list[Any], lists: list[Any]) -> list[Any] | None:
        """The keys, also some that the view has not."""
        equal = self._equal
        found: list[Any]
        if self._one:
            found = [values[equal[0]] if len(equal) == 1 else tuple([values[at] for at in equal])]
        else:
            several = [lists[-1 - at] if at < 0 else (values[at],) for at in equal]
            if prod(map(len, several)) > limits.FEW_ROWS_MAX:
                return None
            found = list(several[0]) if len(several) == 1 else list(product(*several))
        return found if self._indexed is None else self._of_index(self._indexed, found)

    def _of_index(self, columns: tuple[int, ...], found: list[Any]) -> list[Any] | None:
        index = self._view.index(columns)
        if index is None:
            return None
        keys: list[Any] = []
        for value in found:
            kept = index.get(value)
            if kept is None:
                continue
            several = type(kept) is set
            if len(keys) + (len(kept) if several else 1) > limits.FEW_ROWS_MAX:
                return None
            # copied at one go: a commit may change it meanwhile, which the view's token tells
            keys += list(kept) if several else (kept,)
        return keys

    def _by_range(self, values: list[Any]) -> list[Any] | None:
        ordered = self._view.order(self._ranged)
        if ordered is None:
            return None
        first, last = self._slice(ordered[0], values)
        return None if last - first > limits.FEW_ROWS_MAX else ordered[1][first:last]

    def _slice(self, values: list[Any], bounds: list[Any]) -> tuple[int, int]:
        first, last = 0, len(values)
        for at, operator in self._bounds:
            bound = bounds[at]
            if operator == ">=":
                first = max(first, bisect_left(values, bound))
            elif operator == ">":
                first = max(first, bisect_right(values, bound))
            elif operator == "<=":
                last = min(last, bisect_right(values, bound))
            else:
                last = min(last, bisect_left(values, bound))
        return first, max(first, last)

    def _passing(
        self, keys: list[Any], rows: list[Any], values: list[Any], lists: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Those that are there and that the other comparisons hold for, too. Rows begin with their keys, which may
        hold a NULL."""
        passing = [
            (key, row)
            for key, row in zip(keys, rows, strict=True)
            if row is not None
            and all(row[column] is not None and test(row[column], values[at]) for at, column, test in self._others)
            and all(row[column] in lists[at] for at, column in self._other_members)
        ]
        return [key for key, _ in passing], [row for _, row in passing]


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
