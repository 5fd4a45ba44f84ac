"""Records decoded by Spark as the server decodes them, and whether the trial decoder agrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def decoded(
    spark: Any,
    records: Sequence[bytes | None],
    kinds: dict[str, str],
    value_format: str,
    *,
    not_null: str = "",
    quick: bool = False,
) -> list[tuple[Any, ...]]:
    """(reason, column ...) of each record; with ``quick`` what the trial says of it goes before. A record that the
    trial takes must have the same values by it."""
    import pyarrow as pa

    from mvserver.sql.types import parse_type
    from mvserver.streaming.batch.evaluate import _normal
    from mvserver.streaming.spark.record_functions import register
    from mvserver.streaming.spark.types import spark_type
    from spark_sinks.decode import DecodeColumn, decode

    columns = [DecodeColumn(n, spark_type(parse_type(k)), str(parse_type(k)), n == not_null) for n, k in kinds.items()]
    raw = spark.createDataFrame(pa.table({"n": list(range(len(records))), "value": pa.array(records, pa.binary())}))

    def rows_of(*, trial: bool) -> list[list[Any]]:
        program, frame = decode(value_format, columns, "value", "d_", trial=trial), raw
        register(spark, program.functions)
        for stage in program.stages:
            frame = frame.selectExpr("*", *stage)
        references = [f"{reference} AS o{i}" for i, (_, reference) in enumerate(program.columns)]
        first = f"{program.good} AS good" if trial else f"{program.reason} AS reason"
        table = _normal(frame.selectExpr("n", first, *references).toArrow()).sort_by("n")
        return [list(row.values())[1:] for row in table.to_pylist()]

    whole = rows_of(trial=False)
    if value_format != "json":
        return [tuple(row) for row in whole]
    trials = rows_of(trial=True)
    for record, (good, *values), (reason, *wanted) in zip(records, trials, whole, strict=True):
        assert not good or (reason is None and repr(values) == repr(wanted)), (record, values, reason, wanted)
    return [(good, *row) if quick else tuple(row) for (good, *_), row in zip(trials, whole, strict=True)]
