"""UNNEST in a batch: the Spark stages that make several rows of a record, and what their columns are called then.

A record that gives no row stays in the batch as one that does not count: it may be a rejected one, or one that takes a
changelog's row away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mvserver.compiler import lower_spark
from mvserver.compiler.expressions import Expression
from mvserver.compiler.plans import Unnest
from mvserver.sql.types import Kind


@dataclass(frozen=True)
class UnnestedRows:
    """``columns`` are all that expressions may name, ``good`` tells the rows that count, ``ordinals`` number the rows
    of a record: 0 where a row is none of an element. ``record`` tells the records that are rows, with elements or
    not."""

    stages: tuple[tuple[str, ...], ...]
    columns: Mapping[str, str]
    good: str
    ordinals: tuple[str, ...]
    record: str


def unnest_rows(unnests: Sequence[Unnest], columns: Mapping[str, str], good: str) -> UnnestedRows:
    made = UnnestedRows((), columns, good, (), good)
    for number, unnest in enumerate(unnests):
        made = _with(made, unnest, f"u{number}_")
    return made


def _with(rows: UnnestedRows, unnest: Unnest, prefix: str) -> UnnestedRows:
    place, element = f"{prefix}p", f"{prefix}e"
    arrays = [_array(each, rows) for each in unnest.arrays]
    stages: tuple[tuple[str, ...], ...]
    if len(arrays) == 1:
        stages = ((f"posexplode_outer({arrays[0]}) AS ({place}, {element})",),)
        elements = [element]
    else:
        names = [f"{prefix}a{i}" for i in range(len(arrays))]
        # Where one array is NULL the others still count.
        whole = tuple(f"coalesce({array}, array()) AS {name}" for array, name in zip(arrays, names, strict=True))
        stages = (whole, (f"posexplode_outer(arrays_zip({', '.join(names)})) AS ({place}, {element})",))
        elements = [f"{element}.{name}" for name in names]
    added = {column.name: text for column, text in zip(unnest.elements, elements, strict=True)}
    return replace(
        rows,
        stages=(*rows.stages, *stages),
        columns={**rows.columns, **added, unnest.ordinality: f"cast({place} + 1 as bigint)"},
        good=rows.good if unnest.outer else f"({rows.good} AND {place} IS NOT NULL)",
        ordinals=(*rows.ordinals, f"cast(coalesce({place} + 1, 0) as bigint)"),
    )


def _array(array: Expression, rows: UnnestedRows) -> str:
    text = f"CASE WHEN {rows.good} THEN {lower_spark.lower(array, rows.columns.__getitem__)} END"
    return f"map_entries({text})" if array.type.kind is Kind.MAP else text
