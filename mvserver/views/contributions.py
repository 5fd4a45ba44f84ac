"""The contribution of each row of a changelog to a view: the arguments of its aggregates, kept to be taken back."""

from __future__ import annotations

from dataclasses import dataclass, field

from mvserver.compiler import lower_duckdb
from mvserver.compiler.plans import TIMED, Aggregate, AggregateCall


def argument_type(call: AggregateCall) -> str:
    """DuckDB's type of what an aggregate that keeps one of its arguments takes: FIRST_VALUE and LAST_VALUE a pair of
    event time and value, of which they keep the least or the greatest."""
    assert call.argument is not None  # noqa: S101 - only COUNT(*) has none
    kind = lower_duckdb.duckdb_type(call.argument.type)
    return f"STRUCT(t BIGINT, v {kind})" if call.function in TIMED else kind


@dataclass(frozen=True)
class Contribution:
    """A kept column: the argument of a call, NULL where its filter does not hold, or the row's event time."""

    call: AggregateCall
    is_time: bool = False

    @property
    def type(self) -> str:
        """DuckDB's."""
        if self.is_time:
            return "BIGINT"
        if self.call.argument is None:  # COUNT(*) FILTER (WHERE ...)
            return "INTEGER"
        kind = argument_type(self.call)
        return f"{kind}[]" if self.call.function is Aggregate.ARRAY_AGG else kind


@dataclass
class Contributions:
    """Gives equal ones one column."""

    keys: int  # how many columns of group keys come before them
    found: list[Contribution] = field(default_factory=list)

    def argument(self, call: AggregateCall) -> str:
        return self._column(Contribution(call))

    def values(self, call: AggregateCall, *, timed: bool) -> tuple[str, ...]:
        times = [self._column(Contribution(call, is_time=True))] if timed else []
        return (*times, self.argument(call))

    def _column(self, wanted: Contribution) -> str:
        index = next((i for i, each in enumerate(self.found) if _same(each, wanted)), None)
        if index is None:
            index = len(self.found)
            self.found.append(wanted)
        return f"c{self.keys + index}"


def _same(a: Contribution, b: Contribution) -> bool:
    if a.is_time or b.is_time:
        return a.is_time and b.is_time
    timed = (a.call.function in TIMED) == (b.call.function in TIMED)
    listed = (a.call.function is Aggregate.ARRAY_AGG) == (b.call.function is Aggregate.ARRAY_AGG)
    return timed and listed and a.call.argument == b.call.argument and a.call.filter == b.call.filter
