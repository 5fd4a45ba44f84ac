"""Plans as text, for EXPLAIN: the very objects that run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mvserver.compiler.aggregates import WITHIN_GROUP
from mvserver.compiler.capabilities.spark_text import identifier, literal
from mvserver.compiler.changelogs import over_changelog
from mvserver.compiler.explain_joins import join_lines
from mvserver.compiler.expressions import Expression, Literal
from mvserver.compiler.in_duckdb import in_duckdb
from mvserver.compiler.lower_spark import lower as lower_spark
from mvserver.compiler.nested import goes_along
from mvserver.compiler.plans import AggregateCall, Aggregation, ContinuousPlan, Groups, Output, Scan, Unnest
from mvserver.compiler.render import render
from mvserver.compiler.windowed import described
from mvserver.sql.types import VARCHAR

Show = Callable[[Expression], str]


def explain(plan: ContinuousPlan) -> list[str]:
    """Lines of text, indented by two blanks a level; what comes last is read first."""
    shown = _shown(plan)
    if isinstance(plan, Aggregation):
        return [
            "Aggregation (upsert by key)",
            *_section("Output, finished by DuckDB", [_output(output, render) for output in plan.outputs]),
            *_section("Having, by DuckDB", [render(plan.having)] if plan.having is not None else []),
            *_section(f"Keys, by {_engine(plan)}", [f"key{i}: {shown(k)} {k.type}" for i, k in enumerate(plan.keys)]),
            *_section("Grouping sets", [f"set{i}: {_keys_of(each)}" for i, each in enumerate(plan.grouping_sets)]),
            *_section("Aggregates", [f"agg{i}: {_aggregate(call, shown)}" for i, call in enumerate(plan.aggregates)]),
            *_below(plan),
        ]
    return [
        f"Projection ({'upsert by primary key' if over_changelog(plan) else 'append'})",
        *_section(f"Output, by {_engine(plan)}", [_output(output, shown) for output in plan.outputs]),
        *_below(plan),
    ]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"  {title}:", *(f"    {line}" for line in lines)] if lines else []


def _below(plan: ContinuousPlan) -> list[str]:
    scan, where = plan.scan, plan.where
    lines = _section(f"Filter, by {_engine(plan)}", [_shown(plan)(where)]) if where is not None else []
    if isinstance(scan.derived, Groups):
        when = "in the same transaction" if goes_along(plan) else "a batch later"
        lines.append(f"  Changes of its groups, by DuckDB, {when}:")
        return [*lines, *(f"    {line}" for line in explain(scan.derived.plan))]
    if scan.derived is not None:
        return [*lines, *(f"  {_unnest(unnest)}" for unnest in scan.unnests), *join_lines(scan.derived, _below)]
    event_time = f"column {scan.timestamp} ({scan.timestamp_format})" if scan.timestamp else "the record's own"
    columns = ", ".join(
        f"{column.name} {column.type}{' NOT NULL' if column.not_null else ''}" for column in scan.columns
    )
    return [
        *lines,
        f"  Scan of {scan.relation} ({scan.value_format})",
        f"    Starting position: {scan.starting_position}",
        f"    Event time: {event_time}",
        *(f"    {line}" for line in described(plan)),
        *(f"    {_unnest(unnest)}" for unnest in scan.unnests),
        f"    Undecodable records: {scan.error_handling.value}",
        f"    Columns: {columns}",
        *([f"    Primary key: {_primary_key(scan)}"] if scan.primary_key else []),
    ]


def _unnest(unnest: Unnest) -> str:
    arrays = ", ".join(_spark(array) for array in unnest.arrays)
    elements = ", ".join(f"{identifier(each.name)} {each.type}" for each in unnest.elements)
    return f"{'Outer unnest' if unnest.outer else 'Unnest'} of {arrays} as {elements}"


def _keys_of(grouping_set: Sequence[int]) -> str:
    return f"({', '.join(f'key{i}' for i in grouping_set)})"


def _primary_key(scan: Scan) -> str:
    deleted = "" if scan.key_format is None else f", in the record's key as {scan.key_format}"
    return f"{', '.join(scan.primary_key)}{deleted}"


def _spark(node: Expression) -> str:
    return lower_spark(node, identifier)


def _engine(plan: ContinuousPlan) -> str:
    """Who evaluates what the query computes of a row of its scan."""
    return "DuckDB" if in_duckdb(plan) else "Spark"


def _shown(plan: ContinuousPlan) -> Show:
    return render if in_duckdb(plan) else _spark


def _output(output: Output, shown: Show) -> str:
    return f"{output.name} {output.type} = {shown(output.expression)}"


def _aggregate(call: AggregateCall, shown: Show) -> str:
    where = f" FILTER (WHERE {shown(call.filter)})" if call.filter is not None else ""
    return f"{_spelled(call, shown)}{where} {call.type}"


def _spelled(call: AggregateCall, shown: Show) -> str:
    if call.argument is None:
        return "count(*)"
    name, argument = call.function.value, shown(call.argument)
    if call.function in WITHIN_GROUP:
        fraction = "" if call.fraction is None else str(call.fraction)
        return f"{name}({fraction}) WITHIN GROUP (ORDER BY {argument}{' DESC' if call.descending else ''})"
    separator = "" if call.separator is None else f", {literal(Literal(VARCHAR, call.separator))}"
    return f"{name}({'DISTINCT ' if call.distinct else ''}{argument}{separator})"
