"""A join as EXPLAIN prints it, below the SELECT that reads its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mvserver.compiler.capabilities.spark_text import identifier
from mvserver.compiler.lower_spark import lower as lower_spark
from mvserver.compiler.plans import ChangelogJoin, GroupJoin, IntervalJoin, JoinSide, Projection, TemporalJoin, UnionAll
from mvserver.compiler.render import render
from mvserver.compiler.windows import length

Below = Callable[[Projection], Sequence[str]]
"""The lines of what a plan reads."""


def join_lines(join: IntervalJoin | TemporalJoin | ChangelogJoin | UnionAll, below: Below) -> list[str]:
    """Indented by one level, as a scan is."""
    if isinstance(join, UnionAll):
        lines = ["  UNION ALL, by DuckDB", "    Event time: that of each row"]
    elif isinstance(join, IntervalJoin):
        lines = [f"  {join.kind.value} JOIN WITHIN {length(join.within_us // 1000)}, by DuckDB"]
        lines.append("    Event time: the later one of the two rows")
    elif isinstance(join, ChangelogJoin):
        lines = [f"  {join.kind.value} JOIN of the current rows, by DuckDB"]
        lines.append(f"    Key: {', '.join(column.name for column in join.key)}")
    elif isinstance(join, GroupJoin):
        lines = [f"  {join.kind.value} JOIN with the group as of the event time, by DuckDB"]
        lines.append("    Event time: that of the left row")
        lines += [f"    {each.name} {each.type} = {render(each.expression)}" for each in join.groups.outputs]
        lines += [f"    agg{i}: {call.function.value}" for i, call in enumerate(join.groups.aggregates)]
        lines += [] if join.groups.having is None else [f"    Having: {render(join.groups.having)}"]
    else:
        rows = "the version" if join.by_key else "all versions"
        lines = [f"  {join.kind.value} JOIN with {rows} valid at the event time, by DuckDB"]
        lines.append("    Event time: that of the left row")
    if join.residual is not None:
        lines.append(f"    Condition: {render(join.residual)}")
    numbered = [f"Query {number}" for number, _ in enumerate(join.sides, 1)]
    for word, side in zip(numbered if isinstance(join, UnionAll) else ("Left", "Right"), join.sides, strict=True):
        lines.append(f"    {word}:")
        lines += [f"    {line}" for line in _side_lines(side, below)]
    return lines


def _side_lines(side: JoinSide, below: Below) -> list[str]:
    keys = [f"    key{i}: {lower_spark(key, identifier)} {key.type}" for i, key in enumerate(side.keys)]
    columns = [
        f"    {output.name} {output.type} = {lower_spark(output.expression, identifier)}" for output in side.outputs
    ]
    return [
        *(["  Keys, by Spark:", *keys] if keys else []),
        *(["  Columns, by Spark:", *columns] if columns else []),
        *below(side.plan),
    ]
