"""The interval join: two buffers of rows that may still find a partner, and the statements that find it.

Each side of the join is fed by its own source, in that source's order, whatever the other side has come to. A row waits
until the mark of the *other* side has passed its time by the interval; whoever comes to that other side later, by its
own mark, is too late for it. So which rows meet does not depend on how the sources were cut into batches nor on which
side ran ahead: a pair is found when the later of its rows is committed, and a row that met nobody is given once, with
NULLs, when the other side's mark has passed it.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.changes.logs import NEVER
from spark_sinks.duckdb.joins import join_sides
from spark_sinks.duckdb.joins.join_sides import (
    INCOMING,
    Batch,
    MarkedSides,
    Side,
    alone,
    and_residual,
    left_and_right,
    side_of,
)
from spark_sinks.duckdb.record_columns import SEGMENT
from spark_sinks.duckdb.state import windows
from spark_sinks.duckdb.state.windows import LateRows


@dataclass(frozen=True)
class IntervalTables(MarkedSides):
    """``residual`` is as :func:`join_sides.and_residual` takes it."""

    within_us: int
    residual: str | None = None

    def create_statements(self) -> list[str]:
        beside = ("t BIGINT", "w BIGINT", "r TIMESTAMPTZ", "matched BOOLEAN")
        return join_sides.create_statements(self, beside, beside)

    def feed_statements(self, index: int, batch: Batch) -> list[str]:
        side, other = side_of(self, index), side_of(self, 1 - index)
        kept = ", ".join((*side.keys, *side.columns, "t", "w", "r"))
        hopeless = f"SELECT {self._alone(index)} FROM {INCOMING} s WHERE NOT ({side.can_match})"
        return [
            f"CREATE OR REPLACE TEMP TABLE {INCOMING} AS {join_sides.timed(self, index, batch, SEGMENT)}",
            *windows.late_statements(batch.query_id, self._late(side)),
            *logs.append_statements(self.log, [self._pairs(index)]),
            *([self._mark_matched(index)] if other.preserved else []),
            *(logs.append_statements(self.log, [hopeless]) if side.preserved else []),
            f"INSERT INTO {side.qualified} SELECT {kept}, {self._has_partner(index)} FROM {INCOMING} n "
            f"WHERE {side.can_match}",
            *join_sides.mark_statements(self, index),
            *([] if other.idle_us is None else [join_sides.await_statement(self, 1 - index)]),
            f"DROP TABLE {INCOMING}",
            *self.close_statements(),
            *logs.trim_statements(self.log),
        ]

    def close_statements(self) -> list[str]:
        statements: list[str] = []
        for index in (0, 1):
            side = side_of(self, index)
            # A column compared with one query: DuckDB then reads only the row groups that may have such rows.
            passed = f"t < (SELECT {self._reached(1 - index)} - {self.within_us})"
            if side.preserved:
                rows = f"SELECT {self._alone(index)} FROM {side.qualified} s WHERE NOT matched AND {passed}"
                statements += logs.append_statements(self.log, [rows])
            statements.append(f"DELETE FROM {side.qualified} WHERE {passed}")
        return [*statements, *self.low_statements()]

    def low_statements(self) -> list[str]:
        """A new row may meet one that is earlier by the interval, and no earlier one is kept: so neither a pair nor a
        row that met nobody comes behind this."""
        return logs.low_statements(self.log, f"least({self._reached(0)}, {self._reached(1)}) - {self.within_us}")

    def awaited(self, index: int) -> str:
        """A side that is idle is as far as the other one was when it was last known to have nothing."""
        both = ", ".join(join_sides.greatest_mark(self, each) for each in (index, 1 - index))
        idle = f"(SELECT bool_and(idle) FROM {join_sides.qualified_marks(self)} WHERE side = {index})"
        others = f"CASE WHEN {idle} THEN greatest({both}) + {side_of(self, index).delay_us} END"
        return f"coalesce({super().awaited(index)}, {others})"

    def _reached(self, index: int) -> str:
        return join_sides.reached(self, index)

    def _marked(self, *names: str) -> list[str]:
        """What a joined row's windows must not have ended before, for it to count; a pair always does."""
        if not self.log.marked:
            return []
        marks = ", ".join(f"nullif({name}.w, {NEVER})" for name in names)
        return [f"greatest({marks}, NULL) - {self.within_us}"]

    def _alone(self, index: int) -> str:
        return ", ".join([alone(self, index, "s"), *self._marked("s")])

    def _late(self, side: Side) -> LateRows:
        """Rows of the batch that can meet nobody: their partition's mark has passed all that they might have met."""
        within = self.within_us
        return LateRows(
            INCOMING,
            f"{side.can_match} AND t + {2 * within} < w",
            partition="part",
            event="t",
            start=f"make_timestamp(t - {within})",
            end=f"make_timestamp(t + {within})",
            mark="w",
        )

    def _meet(self, index: int) -> str:
        """Whether a row n of the batch's side and a row o of the other side's buffer are a pair."""
        within = self.within_us
        equal = [f"n.{key} = o.{key}" for key in side_of(self, index).keys]
        near = [f"o.t BETWEEN n.t - {within} AND n.t + {within}", f"n.w <= o.t + {within}", f"o.w <= n.t + {within}"]
        return " AND ".join([*equal, *near]) + and_residual(self.residual, *left_and_right(index, "n", "o"))

    def _pairs(self, index: int) -> str:
        left, right = left_and_right(index, "n", "o")
        values = [f"{left}.{c}" for c in self.left.columns] + [f"{right}.{c}" for c in self.right.columns]
        columns = ["greatest(n.r, o.r)", *values, "make_timestamptz(greatest(n.t, o.t))", *self._marked("n", "o")]
        other = side_of(self, 1 - index)
        return f"SELECT {', '.join(columns)} FROM {INCOMING} n JOIN {other.qualified} o ON {self._meet(index)}"

    def _mark_matched(self, index: int) -> str:
        return (
            f"UPDATE {side_of(self, 1 - index).qualified} o SET matched = true WHERE NOT matched "
            f"AND EXISTS (SELECT 1 FROM {INCOMING} n WHERE {self._meet(index)})"
        )

    def _has_partner(self, index: int) -> str:
        if not side_of(self, index).preserved:
            return "false"
        return f"EXISTS (SELECT 1 FROM {side_of(self, 1 - index).qualified} o WHERE {self._meet(index)})"
