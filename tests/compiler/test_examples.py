"""Every example of the capability table, computed by Spark from our lowering, against PostgreSQL's answer."""

from __future__ import annotations

from typing import Any

import pytest

from mvserver.compiler.capabilities import all_capabilities
from mvserver.compiler.capabilities.cast_examples import CAST_EXAMPLES
from mvserver.compiler.failures import translate
from mvserver.compiler.lower_spark import lower
from mvserver.errors import SqlError
from mvserver.sql.worked_examples import Example
from tests.compiler.harness import bound_text

EXAMPLES = [
    *((entry.name, each) for entry in all_capabilities() for each in entry.examples),
    *(("cast", each) for each in CAST_EXAMPLES),
]
VALUES = [(name, each) for name, each in EXAMPLES if each.error is None]
FAILURES = [(name, each) for name, each in EXAMPLES if each.error is not None]


def _no_column(name: str) -> str:
    raise AssertionError(f"an example names a column: {name}")


def lowered(example: Example) -> str:
    return lower(bound_text(example.sql), _no_column)


def test_every_entry_has_two_examples_and_there_are_at_least_130() -> None:
    entries = [entry for entry in all_capabilities() if not entry.internal]
    assert len({entry.name for entry in entries}) >= 130
    assert [entry.name for entry in entries if len(entry.examples) < 2] == []


def test_every_overload_has_its_own_id() -> None:
    ids = [each.id for entry in all_capabilities() for each in entry.overloads]
    assert len(ids) == len(set(ids))


@pytest.mark.spark
def test_examples_give_what_postgresql_gives(spark: Any) -> None:
    texts = [lowered(example) for _, example in VALUES]
    row = spark.sql("SELECT " + ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))).collect()[0]
    wrong = [
        f"{name}: {example.sql} gave {value!r}, not {example.expected!r}"
        for (name, example), value in zip(VALUES, row, strict=True)
        if value != example.expected
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "example"), FAILURES, ids=lambda value: value if isinstance(value, str) else value.sql
)
def test_examples_that_fail_do_so_with_their_sqlstate(spark: Any, name: str, example: Example) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    with pytest.raises((SqlError, PySparkException, Py4JJavaError)) as caught:
        spark.sql(f"SELECT {lowered(example)}").collect()
    error = caught.value
    if not isinstance(error, SqlError):
        error = translate(error.getCondition() if isinstance(error, PySparkException) else None, str(error)) or error
    assert isinstance(error, SqlError), f"{name}: {error}"
    assert error.sqlstate == example.error
