"""Windows in FROM, and what they ask of the SELECT around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.compiler.capabilities.lookup import call_operator
from mvserver.compiler.changelogs import CHANGELOG
from mvserver.compiler.derived import has_marks, with_marks
from mvserver.compiler.expressions import ColumnReference, Expression, both, walk
from mvserver.compiler.plans import (
    PLAIN,
    TIMED,
    Aggregation,
    ContinuousPlan,
    Groups,
    GroupsSide,
    IntervalJoin,
    JoinSide,
    Projection,
    Scan,
)
from mvserver.compiler.scope import Scope, ScopeColumn, ScopeTable, Source
from mvserver.compiler.windows import WINDOW_END, WINDOW_START, Window, WindowKind, length
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.nodes import position_of
from mvserver.sql.windows import WindowText

START = ColumnReference(t.TIMESTAMP, WINDOW_START)
END = ColumnReference(t.TIMESTAMP, WINDOW_END)
COLUMNS = (ScopeColumn(WINDOW_START, START), ScopeColumn(WINDOW_END, END))


def over_window(source: Source, item: exp.Expression) -> Source:
    """The source in the window that an item of FROM was written in."""
    text = item.meta.get("window")
    if not isinstance(text, WindowText):
        return source
    _check_stream(source, text)
    (table,) = source.scope.tables
    taken = next((each.name for each in table.columns if each.name in (WINDOW_START, WINDOW_END)), None)
    if taken is not None:
        raise SqlError(
            sqlstates.DUPLICATE_COLUMN,
            f'the stream has a column "{taken}" already, which is what the window would add',
            hint="Declare a stream over the same entity without it."
            if table.records
            else "Give it another name in the query that the window is over.",
            position=text.position,
        )
    kind = WindowKind(text.kind)
    window = Window(kind, text.size_ms, text.size_ms if kind is WindowKind.TUMBLE else text.step_ms)
    _check_step(window, text.position)
    if kind is WindowKind.SESSION:
        window = replace(window, partition_by=_partition_by(table, text))
    scope = Scope((replace(table, columns=(*table.columns, *COLUMNS)),))
    return replace(source, scope=scope, scan=replace(with_marks(source.scan), window=window))


def _check_stream(source: Source, text: WindowText) -> None:
    """A window is over the records of streams, be it through a query that computes with them or joins them, or over
    the current rows of a changelog."""
    scan = source.scan
    if source.aggregation is not None:
        what = "windows over a query that aggregates"
        hint = "Write the window in that query, or aggregate its windows again."
    elif scan.window is not None:
        what, hint = "windows over a query that is over a window", "Write one window."
    elif scan.kind == CHANGELOG and (scan.derived is not None or scan.unnests):
        what = "windows over joined changelogs, groups and elements"
        hint = "Group by date_trunc of a time."
    elif scan.kind == CHANGELOG and text.kind != WindowKind.TUMBLE.value:
        what, hint = f"{text.kind.upper()} windows over a changelog", "TUMBLE is, for the rows that are there now."
    elif any(side.scan.derived is not None for side in _sides(scan)):
        what = "windows over several joins"
        hint = "Write the first one to a stream with CREATE STREAM ... AS, and join that."
    else:
        return
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"{what} are not supported",
        hint=hint,
        position=text.position,
    )


def _sides(scan: Scan) -> Sequence[JoinSide | GroupsSide]:
    return () if scan.derived is None else scan.derived.sides


def _partition_by(table: ScopeTable, text: WindowText) -> tuple[str, ...]:
    """The columns of the records that the sessions are told apart by."""
    found: list[str] = []
    for name, position in text.partition_by:
        column = table.column(name)
        if column is None:
            raise SqlError(sqlstates.UNDEFINED_COLUMN, f'column "{name}" does not exist', position=position)
        if not isinstance(column.expression, ColumnReference):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'PARTITION BY "{name}" is not supported: the query computes it',
                hint="Write the query to a stream with CREATE STREAM ... AS, and read that.",
                position=position,
            )
        found.append(column.expression.name)
    return tuple(dict.fromkeys(found))


def _check_step(window: Window, position: int | None) -> None:
    step = "ADVANCE BY" if window.kind is WindowKind.HOP else "STEP"
    if window.kind is WindowKind.HOP and window.step_ms > window.size_ms:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            "ADVANCE BY must not be longer than SIZE",
            detail="Records between two windows would belong to none.",
            position=position,
        )
    if window.kind is WindowKind.CUMULATE and window.size_ms % window.step_ms:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            "SIZE must be a multiple of STEP",
            hint="The last of the windows that begin together is SIZE long.",
            position=position,
        )
    if window.per_record_max > limits.WINDOWS_PER_RECORD_MAX:
        raise SqlError(
            sqlstates.PROGRAM_LIMIT_EXCEEDED,
            f"a record would belong to {window.per_record_max} windows; {limits.WINDOWS_PER_RECORD_MAX} are allowed",
            hint=f"Make {step} longer.",
            position=position,
        )


def finish(plan: ContinuousPlan, select: exp.Expression) -> ContinuousPlan:
    """The plan of the whole statement: its GROUP BY fits its window, a projection has only records that are in one,
    and EMIT FINAL is in it."""
    if isinstance(plan, Aggregation):
        plan = check_grouped(plan, select)
    elif plan.scan.window is not None:
        plan = replace(plan, where=_in_window(plan))
    if not select.meta.get("emit_final"):
        return plan
    if plan.scan.window is not None and plan.scan.kind == CHANGELOG:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "EMIT FINAL over a changelog is not supported",
            detail="Its rows may change at any time, so that no window is ever closed.",
            hint="Leave EMIT FINAL out, or read a stream.",
            position=position_of(select),
        )
    if isinstance(plan, Projection) and isinstance(plan.scan.derived, Groups):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "EMIT FINAL with functions over aggregates that Spark computes is not supported",
            hint="Leave EMIT FINAL out: the rows of a window then change until it is closed.",
            position=position_of(select),
        )
    if isinstance(plan, Projection) or plan.scan.window is None or plan.forgetting:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "EMIT FINAL needs an aggregation over a window",
            detail="Only what a closed window holds does not change any more.",
            hint="Read FROM TUMBLE(stream, SIZE n unit) and GROUP BY window_start, window_end.",
            position=position_of(select),
        )
    return replace(plan, emit_final=True)


def _in_window(plan: ContinuousPlan) -> Expression | None:
    """Without the records that belong to no window. For an aggregation over a stream the state leaves them out, and
    keeps them."""
    return both(call_operator("is not null", (START,)), plan.where)


def check_grouped(plan: Aggregation, select: exp.Expression) -> Aggregation:
    """The plan, whose GROUP BY fits its window."""
    window = plan.scan.window
    if window is None or plan.forgetting:
        return plan
    position = position_of(select.args.get("group")) or position_of(select)
    sets = plan.grouping_sets or (tuple(range(len(plan.keys))),)
    missing = [
        each.name
        for each in (START, END)
        if each not in plan.keys or any(plan.keys.index(each) not in members for members in sets)
    ]
    if missing:
        raise SqlError(
            sqlstates.GROUPING_ERROR,
            f"an aggregation over {window.kind.name} must be grouped by window_start and window_end",
            detail="Every grouping set must have them." if plan.grouping_sets else None,
            hint=f"Add {' and '.join(missing)} to GROUP BY.",
            position=position,
        )
    if plan.grouping_sets and window.kind is WindowKind.SESSION:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "grouping sets over SESSION are not supported",
            detail="Each of the sets would have sessions of its own.",
            hint="Create one view for each set of keys.",
            position=position,
        )
    if window.kind is WindowKind.SESSION:
        _check_session(plan, window, position)
    return replace(plan, where=_in_window(plan)) if plan.scan.kind == CHANGELOG else plan


def _check_session(plan: Aggregation, window: Window, position: int | None) -> None:
    others = [key for key in plan.keys if key not in (START, END)]
    own = {key.name for key in others if isinstance(key, ColumnReference)}
    if len(own) != len(others) or own != set(window.partition_by):
        by = ", ".join(window.partition_by) or "nothing else"
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "an aggregation over SESSION must be grouped by its PARTITION BY columns, window_start and window_end",
            detail=f"The sessions are of {by}.",
            hint="Write SESSION(stream PARTITION BY a, GAP n unit) with GROUP BY window_start, window_end, a.",
            position=position,
        )
    if any(part in (START, END) for root in _evaluated(plan) for part in walk(root)):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "the bounds of a session can only be grouped by and selected",
            detail="They are not known before the session is closed.",
            hint="Compute with them in the SELECT that reads the view.",
            position=position,
        )
    if any(call.distinct and call.function in PLAIN | TIMED for call in plan.aggregates):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "aggregates of DISTINCT values are not supported over SESSION",
            hint="Collect the values with ARRAY_AGG(DISTINCT x), or use TUMBLE, HOP or CUMULATE.",
            position=position,
        )


def _evaluated(plan: Aggregation) -> Iterator[Expression]:
    """What Spark computes for each record beside the keys."""
    if plan.where is not None:
        yield plan.where
    for call in plan.aggregates:
        yield from (part for part in (call.argument, call.filter) if part is not None)


def _waits(scan: Scan) -> bool:
    return isinstance(scan.derived, IntervalJoin)


def described(plan: ContinuousPlan) -> list[str]:
    """EXPLAIN's lines about time."""
    scan = plan.scan
    if scan.window is None and plan.retention_ms is None:
        return []
    if scan.window is not None and scan.kind == CHANGELOG:
        return [f"Window: {scan.window}", "Rows are in the window of their present time"]
    idle = f", partitions idle for {scan.idle_timeout_ms} ms left out" if scan.idle_timeout_ms is not None else ""
    watermark = f"event time - {scan.watermark_delay_ms} ms of each partition{idle}"
    if has_marks(scan):
        watermark = "that of the side that is behind, less WITHIN" if _waits(scan) else "that of the rows still to come"
    forgetting = isinstance(plan, Aggregation) and plan.forgetting
    lines = [
        *([f"Window: {scan.window}"] if scan.window is not None and not forgetting else []),
        f"Watermark: {watermark}",
    ]
    if scan.window is not None and forgetting:
        lines.append(f"A group is forgotten after {length(scan.window.size_ms)} without a record")
    elif isinstance(plan, Aggregation):
        shown = "once, when it is closed" if plan.emit_final else "with every change"
        lines.append(f"A window is shown {shown}; grace {plan.grace_ms} ms")
    if plan.retention_ms is not None:
        lines.append(f"Rows are kept until {plan.retention_ms} ms behind the watermark")
    return lines
