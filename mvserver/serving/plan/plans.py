"""From a bound query to its plan: columns as the wire has them, parameters, and the ways to answer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from catalog.model import Relation
from mvserver import interrupts, limits, sqlstates
from mvserver.dialect import binding
from mvserver.dialect.binding import Bound
from mvserver.dialect.derived_columns import is_plain, item_of
from mvserver.dialect.duck_text import written
from mvserver.dialect.functions import casts
from mvserver.dialect.functions.character_columns import SHOWN_COLUMNS
from mvserver.dialect.functions.volatile import changes
from mvserver.dialect.joins import sources_of
from mvserver.dialect.pull_query import PullQuery
from mvserver.dialect.signals import Signal
from mvserver.dialect.typing import duck_types
from mvserver.dialect.typing.duck_types import OutputType
from mvserver.errors import SqlError
from mvserver.front import Field
from mvserver.pgcatalog import pgtypes
from mvserver.pgcatalog.edge_macros import NOW_MACROS
from mvserver.pgcatalog.pgtypes import PgType
from mvserver.pgcatalog.session_functions import SessionFacts
from mvserver.serving.api import KeyRead, PlanRuns, PullPlan, Together
from mvserver.serving.fast import classify, few_rows, gathering
from mvserver.serving.fast.key_reads import key_read
from mvserver.serving.plan.binder import BoundTree
from mvserver.serving.plan.histories import read_as_of
from mvserver.serving.plan.name_resolution import Reads
from mvserver.serving.plan.origins import Origin, origins
from mvserver.serving.plan.system_types import as_declared
from mvserver.types import oids

_SYSTEM_PREFIXES = (
    "pg_", "has_", "format_type", "obj_", "col_", "_reg", "to_reg", "_is_visible", "_has_", "_seen", "shobj_",
    "row_sec",
)  # fmt: skip


def plan_of(query: PullQuery, reads: Reads, made: BoundTree) -> PullPlan:
    tree, direct, bound = made.tree, made.direct, made.bound
    facts, kind, given = query.facts, query.kind, query.oids
    outputs = [duck_types.output_type(kind_name) for kind_name in bound.types]
    if len(outputs) > limits.COLUMNS_MAX:
        raise SqlError(sqlstates.TOO_MANY_COLUMNS, f"target lists can have at most {limits.COLUMNS_MAX} entries")
    from_columns = origins(tree, len(outputs))
    outputs = _of_views(_declared(tree, outputs, query.documents), from_columns, reads.expanded)
    if reads.system:
        outputs = as_declared(tree, outputs)
    arrow = [duck_types.arrow_type(output.cast or name) for name, output in zip(bound.types, outputs, strict=True)]
    fields = tuple(
        Field(name, output.pg.oid, output.pg.size, output.pg.typmod if keeps else -1, *origin)
        for name, output, origin, keeps in zip(
            _names(tree, bound), outputs, from_columns, _keep_modifiers(tree, len(outputs)), strict=True
        )
    )
    count = max([*bound.parameters, len(given)], default=0) - 2 * len(reads.places)
    text, steady = _text(tree, outputs), _is_steady(tree, reads, facts)
    return PullPlan(
        sql=text,
        direct=None if direct is None else _text(direct, outputs),
        fields=fields,
        parameter_oids=tuple(_parameter_oid(number, given, bound) for number in range(1, count + 1)),
        view_ids=tuple(reads.views),
        generation=facts.snapshot.generation,
        catalog_only=bool(reads.system) and not reads.views,
        kind=kind,
        time_zone=query.time_zone,
        reads_system=bool(reads.system) or _uses_system_functions(tree),
        live_relations=tuple(sorted(reads.live)),
        streams=tuple(reads.streams),
        of_the_past=reads.of_the_past,
        places=tuple(reads.places),
        secured=bool(reads.secured),
        flat=_flat(tree),
        named=tuple(reads.named),
        arrow_types=tuple(arrow) if None not in arrow else (),
        plain_types=few_rows.plain_types(arrow) if None not in arrow else (),
        together=_together(direct, kind, outputs, arrow, count) if steady and not reads.of_the_past else None,
        key_read=_key_read(tree, kind, outputs, arrow, reads) if steady else None,
        runs=PlanRuns(few=kind in (classify.POINT, classify.RANGE)),
        sets=facts.sets,
        reads_now=_reads_now(tree),
        steady=steady and _is_shared(kind, reads) and not changes(text),
    )


def _flat(tree: exp.Expr) -> tuple[int, ...]:
    """The parameters that are cast to an array of scalars."""
    arrays, found = (exp.DType.ARRAY, exp.DType.LIST), set()
    for cast in tree.find_all(exp.Cast):
        inner = cast.to.expressions if cast.to.is_type(*arrays) else []
        nested = bool(inner) and isinstance(inner[0], exp.DataType) and inner[0].is_type(*arrays)
        if inner and not nested and isinstance(cast.this, exp.Parameter) and cast.this.name.isdigit():
            found.add(int(cast.this.name))
    return tuple(sorted(found))


def _is_steady(tree: exp.Expr, reads: Reads, facts: SessionFacts) -> bool:
    """Whether it means the same to all sessions that have its plan, at any moment."""
    return not (facts.sets or facts.volatile or reads.system or _uses_system_functions(tree) or _reads_now(tree))


def _is_shared(kind: str, reads: Reads) -> bool:
    """Whether equal queries share answers. Look-ups of one row of the present have ways of their own."""
    shared = kind in (classify.OTHER, classify.RANGE) or reads.of_the_past
    return bool(reads.views) and shared and not reads.streams


def _together(
    direct: exp.Expr | None, kind: str, outputs: Sequence[OutputType], arrow: Sequence[Any], parameters: int
) -> Together | None:
    if direct is None or kind != classify.POINT or not _are_plain(outputs, arrow):
        return None
    return gathering.together(direct, parameters)


def _key_read(
    tree: exp.Expr, kind: str, outputs: Sequence[OutputType], arrow: Sequence[Any], reads: Reads
) -> KeyRead | None:
    if kind not in (classify.POINT, classify.RANGE) or not _are_plain(outputs, arrow):
        return None
    (view,) = reads.views.values()
    found = read_as_of(tree, view, reads.as_of) if reads.of_the_past else key_read(tree, view)
    return found if found is not None and len(found.columns) == len(outputs) else None


def _are_plain(outputs: Sequence[OutputType], arrow: Sequence[Any]) -> bool:
    """Whether its values are numbers and texts, as DuckDB has them."""
    return not any(output.cast for output in outputs) and None not in arrow and bool(few_rows.plain_types(arrow))


def _text(tree: exp.Expr, outputs: Sequence[OutputType]) -> str:
    """The query as DuckDB runs it: its columns as types that the wire has."""
    sql = written(tree)
    if not any(output.cast for output in outputs):
        return sql
    columns = ", ".join(
        f"CAST(#{at} AS {output.cast})" if output.cast else f"#{at}" for at, output in enumerate(outputs, start=1)
    )
    return f"SELECT {columns} FROM ({sql}) AS _result"


def _keep_modifiers(tree: exp.Expr, count: int) -> Sequence[bool]:
    """A column and an explicit cast to numeric(p, s) have a type modifier, an expression of numbers has none."""
    if isinstance(tree, exp.SetOperation):
        sides = [_keep_modifiers(side.unnest(), count) for side in (tree.left, tree.right)]
        return [all(both) for both in zip(*sides, strict=True)]
    if isinstance(tree, exp.Values):
        return [False] * count
    items = tree.expressions if isinstance(tree, exp.Select) else []
    if len(items) != count or any(item.is_star for item in items):
        return [True] * count
    return [_is_declared(item.unalias(), 0) for item in items]


_DEPTH_MAX = 20  # of sub-queries through which a column is followed


def _is_declared(item: exp.Expr, depth: int) -> bool:
    if depth > _DEPTH_MAX:
        return True
    if isinstance(item, exp.Subquery):
        first = item.this.selects[:1] if isinstance(item.this, exp.Select) else []
        return not first or _is_declared(first[0].unalias(), depth + 1)
    if isinstance(item, exp.Nullif):
        return _is_declared(item.this, depth)
    if not isinstance(item, exp.Column):
        return bool(item.meta.get(casts.DECLARED) or casts.SHOWN_AS in item.meta)
    select = item.find_ancestor(exp.Select)
    if select is None:
        return True
    sources = [source for source in sources_of(select) if not item.table or item.table == source.alias_or_name]
    behind = [inner for inner in (item_of(source, item.name, select) for source in sources) if inner is not None]
    return all(is_plain(inner) or _is_declared(inner.unalias(), depth + 1) for inner in behind)  # several by USING


_OF_JSONB = {oids.JSON: oids.JSONB, oids.ARRAY_OF[oids.JSON]: oids.ARRAY_OF[oids.JSONB]}


def _declared(tree: exp.Expr, outputs: list[OutputType], documents: Sequence[bool]) -> list[OutputType]:
    """A column that is cast to a character type in the outermost select list is shown as of that type; so is jsonb."""
    if len(documents) == len(outputs):
        outputs = [
            replace(output, pg=PgType(_OF_JSONB[output.pg.oid])) if jsonb and output.pg.oid in _OF_JSONB else output
            for output, jsonb in zip(outputs, documents, strict=True)
        ]
    items = tree.expressions if isinstance(tree, exp.Select) else []
    declared = tree.meta.get(SHOWN_COLUMNS) or [item.unalias().meta.get(casts.SHOWN_AS) for item in items]
    if len(declared) != len(outputs):
        return outputs
    return [_shown(output, shown) for output, shown in zip(outputs, declared, strict=True)]


def _shown(output: OutputType, declared: tuple[int, int] | None) -> OutputType:
    if declared is None:
        return output
    if declared[0] in (oids.NUMERIC, oids.ARRAY_OF[oids.NUMERIC]):  # of what the wire makes numerics of
        return OutputType(PgType(*declared))
    texts = oids.ARRAY_OF[oids.TEXT] if declared[0] in oids.ELEMENT_OF else oids.TEXT
    return replace(output, pg=PgType(*declared)) if output.pg.oid == texts else output


def _of_views(outputs: list[OutputType], from_columns: Sequence[Origin], views: Sequence[Relation]) -> list[OutputType]:
    """The column of a view is shown as of the type that it has had since the view was made."""
    known = {view.oid: view for view in views}
    return [
        _of_view(output, known[relation], number) if relation in known else output
        for output, (relation, number) in zip(outputs, from_columns, strict=True)
    ]


def _of_view(output: OutputType, view: Relation, number: int) -> OutputType:
    return output.shown_as(pgtypes.of_column(view, view.columns[number - 1]))


def _names(tree: exp.Expr, bound: Bound) -> Sequence[str]:
    if isinstance(tree, exp.Values):
        return [f"column{number}" for number in range(1, len(bound.names) + 1)]
    return bound.names


def _parameter_oid(number: int, known: Sequence[int], bound: Bound) -> int:
    if number <= len(known) and known[number - 1]:
        return known[number - 1]
    return duck_types.parameter_oid(bound.parameters.get(number, binding.UNKNOWN))


def _reads_now(tree: exp.Expr) -> bool:
    return any(node.name.lower() in NOW_MACROS for node in interrupts.asking(tree.find_all(exp.Anonymous)))


def _uses_system_functions(tree: exp.Expr) -> bool:
    return any(
        node.name.lower().startswith(_SYSTEM_PREFIXES) for node in interrupts.asking(tree.find_all(exp.Anonymous))
    )


def plan_of_sleep(argument: exp.Expr) -> PullPlan:
    field = Field("pg_sleep", oids.TEXT)
    if isinstance(argument, exp.Literal):
        try:
            sleep_s = float(argument.name)
        except ValueError as error:
            raise SqlError(
                sqlstates.INVALID_TEXT_REPRESENTATION,
                f'invalid input syntax for type double precision: "{argument.name}"',
            ) from error
        return PullPlan("", (field,), (), (), kind=classify.SLEEP, sleep_s=sleep_s)
    if isinstance(argument, exp.Parameter):
        return PullPlan("", (field,), (oids.FLOAT8,), (), kind=classify.SLEEP)
    raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, "pg_sleep is supported with a number or a parameter only")


def signalling(plan: PullPlan, signals: Mapping[int, Signal]) -> PullPlan:
    """The plan whose columns at these places are sent to the processes that they name."""
    if not signals:
        return plan
    fields = tuple(
        Field(field.name, oids.BOOL, 1, -1) if place in signals else field for place, field in enumerate(plan.fields)
    )
    return replace(
        plan, fields=fields, signals=tuple(signals.items()), arrow_types=(), plain_types=(), runs=PlanRuns(few=False)
    )
