"""The present time and chance: values that no record has, drawn once for each row that a query writes.

A call is a reference to a column that is made when a row is evaluated, before anything else is computed of it. So all
places of the query that mean one call see one value, however often the optimizer or a rewrite repeats them: there is
one moment for a row, and one value for each call of chance.

Where rows are kept, a record that is read again must give what it gave before. So such calls stand only where rows are
written once and forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from mvserver import sqlstates
from mvserver.compiler.capabilities import drawn
from mvserver.compiler.expressions import Cast, Drawn, Expression, Literal, walk
from mvserver.compiler.plans import ContinuousPlan, GroupJoin, Projection, record_expressions
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.names import DRAWN_INTEGER
from mvserver.sql.types import SqlType

_NOW = Drawn(t.TIMESTAMP_LTZ, "now() of the row", f"timestamp_micros({drawn.MOMENT}())")
_MOMENTS: Mapping[str, SqlType] = {
    **dict.fromkeys(
        (
            "now", "current_timestamp", "transaction_timestamp", "statement_timestamp", "clock_timestamp",
            "current_row_timestamp",
        ),
        t.TIMESTAMP_LTZ,
    ),
    "current_date": t.DATE,
    "localtime": t.TIME,
    "localtimestamp": t.TIMESTAMP,
}  # fmt: skip
"""By name, what of the row's moment a call gives. Clocks show UTC."""
_KEYWORDS = frozenset({"current_timestamp", "current_date", "localtime", "localtimestamp"})
"""Those that are written without parentheses."""
_CHANCES: Mapping[str, tuple[SqlType, str]] = {
    "random": (t.DOUBLE, f"{drawn.FRACTION}()"),
    "rand": (t.DOUBLE, f"{drawn.FRACTION}()"),
    "gen_random_uuid": (t.VARCHAR, f"{drawn.UUID}()"),
    "uuid": (t.VARCHAR, f"{drawn.UUID}()"),
}
NAMES = frozenset({*_MOMENTS, *_CHANCES, DRAWN_INTEGER})


@dataclass
class _Calls:
    """Those of one compilation. ``written`` says whether its rows are written and not kept."""

    written: bool
    positions: dict[Drawn, tuple[str, int | None]] = field(default_factory=dict)
    chances: int = 0


_calls: ContextVar[_Calls | None] = ContextVar("unsettled_calls", default=None)


@contextmanager
def drawing(*, written: bool) -> Iterator[None]:
    """What is compiled meanwhile may have rows with such values, if they are ``written`` and not kept."""
    token = _calls.set(_Calls(written))
    try:
        yield
    finally:
        _calls.reset(token)


def drawn_call(name: str, arguments: Sequence[Expression], position: int | None, *, of_rows: bool) -> Expression | None:
    """A call of the present time or of chance; None where it is none. ``of_rows``: whether it stands in the select list
    or WHERE of a SELECT without groups."""
    place = arguments[0].value if len(arguments) == 1 and isinstance(arguments[0], Literal) else None
    if name not in NAMES or (type(place) is not int if name == DRAWN_INTEGER else arguments):
        return None
    known = _calls.get()
    if known is None or not of_rows:
        raise _refused(_spelled(name), position)
    if name in _MOMENTS:
        known.positions.setdefault(_NOW, (_spelled(name), position))
        return _NOW if _MOMENTS[name] == _NOW.type else Cast(_MOMENTS[name], _NOW)
    if name == DRAWN_INTEGER:
        # where the call is written; a rewrite may repeat it
        made = Drawn(t.INTEGER, f"random integer of the row, {place!r}", f"{drawn.INTEGER}()")
    else:
        known.chances += 1
        type_, text = _CHANCES[name]
        made = Drawn(type_, f"{name}() of the row, {known.chances}", text)
    known.positions.setdefault(made, (_spelled(name), position))
    return made


def _spelled(name: str) -> str:
    if name == DRAWN_INTEGER:
        return "function RANDINT()"
    return name if name in _KEYWORDS else f"function {name}()"


def check_drawn(plan: ContinuousPlan) -> None:
    """0A000 where a row that has such a value is grouped, joined, unnested or kept by its key. What no row has, though
    a sub-query computes it, is let be. A sub-query's column of one has its name in the scan, too."""
    known, scan = _calls.get(), plan.scan
    if known is None or not known.positions:
        return
    is_plain = isinstance(plan, Projection) and scan.derived is None and scan.kind == "stream"
    wrong = set(_in_arrays(plan) if is_plain and known.written else _everywhere(plan))
    columns = {column.name for column in scan.columns}
    for call, (spelled, position) in known.positions.items():
        if call in wrong or call.name in columns:
            raise _refused(spelled, position)


def _in_arrays(plan: ContinuousPlan) -> Iterator[Drawn]:
    return _drawn_in(array for unnest in plan.scan.unnests for array in unnest.arrays)


def _everywhere(plan: ContinuousPlan) -> Iterator[Drawn]:
    """In the plan, and in all that its rows are made of."""
    yield from _in_arrays(plan)
    yield from _drawn_in(record_expressions(plan))
    derived = plan.scan.derived
    if derived is None:
        return
    for side in derived.sides:
        yield from _everywhere(side.plan)
    if derived.residual is not None:
        yield from _drawn_in([derived.residual])
    if isinstance(derived, GroupJoin):
        yield from _everywhere(derived.groups)


def _drawn_in(expressions: Iterable[Expression]) -> Iterator[Drawn]:
    return (node for expression in expressions for node in walk(expression) if isinstance(node, Drawn))


def _refused(spelled: str, position: int | None) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"{spelled} is not supported in a continuous query that keeps, groups or joins rows",
        detail="A record that is read again would give another row than the one that is kept.",
        hint="The present time and chance may be in the select list and WHERE of CREATE STREAM ... AS and INSERT INTO "
        "a stream or a table without a key, over one stream and without groups. Else use a column of the record, or "
        "rowtime().",
        position=position,
    )


def drawn_by(plan: ContinuousPlan) -> tuple[Drawn, ...]:
    """What is drawn for each row of a plan."""
    return tuple(dict.fromkeys(_drawn_in(record_expressions(plan))))
