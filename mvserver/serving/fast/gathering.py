"""Look-ups of several clients that come at the same time, answered by one statement of DuckDB's.

Planning a look-up costs DuckDB ten times what reading its row does, and it plans each statement anew. So look-ups by
the same plan that wait for the event loop together become one, with a list of their keys in place of each one's key;
its rows carry their keys and go to those who asked for them. Each still sees one committed state, of a moment after it
was asked. Whatever goes wrong is left to each by itself: it then runs alone and says so.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
from sqlglot import exp

from mvserver.dialect.duck_text import last_written
from mvserver.front import PlainRows, Result
from mvserver.serving.api import UNPROVED_S, Asked, PullPlan, Together
from mvserver.serving.engine.snapshot import DuckSnapshot, whole

_SIZES = (2, 4, 8, 16, 32)
_SIZES_OF_PAIRS = _SIZES[:3]  # by two columns the statement finds the rows of all combinations of their values
_KEYS = (int, str)  # what equals in Python where it does in DuckDB
_ALONE = 16


def together(direct: exp.Expr, parameters: int) -> Together | None:
    """The statements of a look-up (bound, over one view's state) for several keys; None where it is of another shape.

    Each parameter must be compared with a column, once, for equality.
    """
    if not isinstance(direct, exp.Select) or not parameters:
        return None
    if any(direct.args.get(key) for key in ("distinct", "group", "having", "order", "limit", "offset", "qualify")):
        return None
    columns = [_column_of(node, direct) for node in direct.find_all(exp.Parameter)]
    numbers = [int(node.name) for node in direct.find_all(exp.Parameter) if node.name.isdigit()]
    if None in columns or len(columns) > 2 or sorted(numbers) != list(range(1, parameters + 1)):
        return None
    sizes = _SIZES if parameters == 1 else _SIZES_OF_PAIRS
    return Together(parameters, {size: _text(direct, size) for size in sizes})


def _column_of(parameter: exp.Parameter, tree: exp.Expr) -> exp.Column | None:
    term = parameter.parent
    node = term.parent if isinstance(term, exp.EQ) else None
    while isinstance(node, exp.And | exp.Paren):
        node = node.parent
    if not isinstance(term, exp.EQ) or not isinstance(node, exp.Where) or node.parent is not tree:
        return None
    column = term.right if term.left is parameter else term.left
    return column if isinstance(column, exp.Column) else None


def _text(direct: exp.Select, size: int) -> str:
    """With ``$1`` to ``$size`` for the first parameter, those after them for the second."""
    made = direct.copy()
    columns: dict[int, exp.Expr] = {}
    for parameter in list(made.find_all(exp.Parameter)):
        number = int(parameter.name)
        column = _column_of(parameter, made)
        assert column is not None and parameter.parent is not None  # noqa: S101, PT018 - a copy of what had one
        columns[number] = column.copy()
        first = (number - 1) * size + 1
        keys = [exp.Parameter(this=exp.Literal.number(at)) for at in range(first, first + size)]
        parameter.parent.replace(exp.In(this=column.copy(), expressions=keys))
    made.set("expressions", [*(columns[number] for number in sorted(columns)), *made.expressions])
    return last_written(made)


class GatheredLookUps:
    """Implements ``serving.api.Gathering``."""

    def __init__(self, snapshot: Callable[[], DuckSnapshot]) -> None:
        """``snapshot`` makes the one that they are read by, when the first two have met."""
        self._make = snapshot
        self._snapshot: DuckSnapshot | None = None
        self._waiting: OrderedDict[int, list[Asked]] = OrderedDict()  # by plan
        self._alone = 0  # so many more are not worth waiting for others

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def ask(self, plan: PullPlan, parameters: Sequence[Any]) -> Asked | None:
        """To be answered by the next ``answer``; None for one that runs by itself."""
        if plan.together is None or plan.runs.replaced or not all(type(value) in _KEYS for value in parameters):
            return None
        if self._alone:
            self._alone -= 1
            return None
        asked = Asked(plan, tuple(parameters))
        self._waiting.setdefault(id(plan), []).append(asked)
        return asked

    def answer(self) -> None:
        """All that have asked; one that is left without ``rows`` runs by itself."""
        groups, self._waiting = list(self._waiting.values()), OrderedDict()
        if len(groups) == 1 and len(groups[0]) == 1:
            self._alone = _ALONE
        for group in groups:
            texts = (group[0].plan.together or Together(0, {})).texts
            most = max(texts, default=1)
            for at in range(0, len(group), most):
                self._answer(group[at : at + most], texts)

    def _answer(self, group: list[Asked], texts: dict[int, str]) -> None:
        if len(group) < 2:
            return
        plan = group[0].plan
        keys = list(dict.fromkeys(asked.parameters for asked in group))
        size = next(size for size in texts if size >= len(keys))
        keys += [keys[-1]] * (size - len(keys))
        try:
            self._snapshot = self._snapshot or self._make()
            values = [value for column in zip(*keys, strict=True) for value in column]
            rows = self._snapshot.rows_at_once(plan, texts[size], values)
        except duckdb.Error:
            rows = None  # one of them may be at fault, or the state was made anew: each finds out by itself
        if rows is None:
            plan.runs.slowest_s = UNPROVED_S  # and not on the event loop
            return
        width = len(keys[0])
        found: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        for row in rows:
            found.setdefault(row[:width], []).append(row[width:])
        for asked in group:  # no row may mean that values equal in DuckDB and not in Python: that one runs by itself
            rows_of_key = found.get(asked.parameters)
            asked.rows = None if rows_of_key is None else PlainRows(rows_of_key, plan.arrow_types)

    def result(self, asked: Asked) -> Result | None:
        return None if asked.rows is None else whole(asked.plan, asked.rows)

    def interrupt(self) -> None:
        if self._snapshot is not None:
            self._snapshot.interrupt()

    def close(self) -> None:
        if self._snapshot is not None:
            self._snapshot.close()
