"""Random expressions over awkward rows: Spark, and DuckDB where it is trusted with them, give what PostgreSQL gives.

MV_ORACLE_EXPRESSIONS says how many, MV_ORACLE_SEED repeats a run. Where PostgreSQL refuses a value, so must we;
where we are stricter than PostgreSQL, the value is an error and never another value.
"""

from __future__ import annotations

import math
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from mvserver.compiler import lower_duckdb, lower_spark
from mvserver.compiler.duckdb_types import duckdb_type
from mvserver.compiler.expressions import Cast, Expression, by_place
from mvserver.compiler.plans import ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.errors import SqlError
from mvserver.serving.engine.database import Database
from mvserver.sql import types as t
from mvserver.sql.types import Kind, parse_type
from tests.compiler.harness import bound
from tests.oracle.expressions import COLUMNS, ExpressionWriter, rows
from tests.services.spark import as_the_server_starts_it, session_of

pytestmark = pytest.mark.postgres

SEED = 20_261_127
EACH_CHANGE = 150
EXPRESSIONS = int(os.environ.get("MV_ORACLE_EXPRESSIONS", EACH_CHANGE))
IN_ONE_JOB = 40
REFUSED_ASKED = 1  # of the rows that PostgreSQL refuses, for each expression

SHAPE = RelationShape(
    "1", "a.b.given", "stream", tuple(ScanColumn(name, parse_type(type_)) for name, type_ in COLUMNS.items())
)
_ATTEMPT = """
CREATE FUNCTION pg_temp.attempt(expression text, row_id integer, OUT value text, OUT failed text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('SELECT (%s)::text FROM given WHERE id = $1', expression) INTO value USING row_id;
EXCEPTION WHEN OTHERS THEN failed := SQLSTATE;
END $$
"""


@dataclass(frozen=True)
class Asked:
    """An expression with PostgreSQL's values by row, and its refusals."""

    text: str
    node: Expression
    values: dict[int, Any]
    refused: dict[int, str]

    @property
    def kind(self) -> Kind:
        return self.node.type.kind


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with session_of(lambda: as_the_server_starts_it(tmp_path_factory.mktemp("spark"))) as session:
        session.conf.set("spark.sql.codegen.wholeStage", "false")
        session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        yield session


@dataclass(frozen=True)
class Questions:
    given: Sequence[tuple[Any, ...]]
    asked: Sequence[Asked]


@pytest.fixture(scope="module")
def questions(postgres_server: Any) -> Questions:
    drawn = random.SystemRandom().getrandbits(32) if EXPRESSIONS > EACH_CHANGE else SEED
    seed = int(os.environ.get("MV_ORACLE_SEED", drawn))
    print(f"seed {seed} (MV_ORACLE_SEED), {EXPRESSIONS} expressions")
    rng = random.Random(seed)
    given = rows(rng)
    writer = ExpressionWriter(rng)
    refused: Counter[str] = Counter()
    asked: list[Asked] = []
    with psycopg.connect(postgres_server.dsn) as postgres:
        _load(postgres, given)
        for _ in range(EXPRESSIONS):
            found = _asked(postgres, writer.next(), len(given))
            if isinstance(found, str):
                refused[found] += 1
            else:
                asked.append(found)
        postgres.rollback()
    print(f"{len(asked)} asked; refused while they were planned: {refused.most_common(12)}")
    assert len(asked) >= 0.7 * EXPRESSIONS
    return Questions(given, asked)


@pytest.mark.night
@pytest.mark.spark
def test_spark_gives_what_postgresql_gives(spark: Any, questions: Questions) -> None:
    stricter: Counter[str] = Counter()
    assert _all(_wrong_in_spark(spark, questions.asked, questions.given, stricter), stricter) == []


def test_duckdb_gives_what_postgresql_gives_where_it_is_trusted(questions: Questions) -> None:
    stricter: Counter[str] = Counter()
    assert _all(_wrong_in_duckdb(questions.asked, questions.given, stricter), stricter) == []


def _all(wrong: Iterator[str], stricter: Counter[str]) -> list[str]:
    """Each told as it is found: what comes first is known, however a run ends."""
    found = []
    for told in wrong:
        print(told)
        found.append(told)
    print("stricter than PostgreSQL:", *stricter.most_common(), sep="\n    ")
    return found


# --- PostgreSQL -----------------------------------------------------------------------------------------------------
def _load(connection: Any, given: Sequence[tuple[Any, ...]]) -> None:
    connection.execute("SET LOCAL TimeZone = 'UTC'")
    connection.execute("SET LOCAL lc_messages = 'C'")
    columns = ", ".join(f"{name} {type_}{_COLLATED.get(type_, '')}" for name, type_ in COLUMNS.items())
    connection.execute(f"CREATE TEMP TABLE given ({columns})")
    places = ", ".join(["%s"] * len(COLUMNS))
    connection.cursor().executemany(f"INSERT INTO given VALUES ({places})", given)
    connection.execute(_ATTEMPT)


_COLLATED = {"VARCHAR": ' COLLATE "C"'}


def _asked(connection: Any, text: str, count: int) -> Asked | str:
    try:
        node = bound(text, SHAPE)
        lower_spark.lower(node, lower_spark.identifier)
    except SqlError as error:
        return f"{error.sqlstate} {error.message[:60]}"
    found = connection.execute(
        "SELECT id, (pg_temp.attempt(%s, id)).* FROM generate_series(0, %s) AS id", (text, count - 1)
    ).fetchall()
    if {failed for _, _, failed in found} & {"42883", "42804", "42601", "42725", "42846", "0A000", "42P18"}:
        return f"PostgreSQL: {found[0][2]}"
    kind = node.type.kind
    found = [each for each in found if not (each[1] or "").endswith(" BC")]  # years before 1 have another text here
    values = {id_: _read(kind, value) for id_, value, failed in found if failed is None}
    refused = {id_: failed for id_, _, failed in found if failed is not None}
    if kind is Kind.DECIMAL:  # numerics have no NaN and no infinity here
        endless = [id_ for id_, value in values.items() if value is not None and not value.is_finite()]
        refused |= dict.fromkeys(endless, "NaN")
        values = {id_: value for id_, value in values.items() if id_ not in endless}
    return Asked(text, node, values, refused)


def _read(kind: Kind, text: str | None) -> Any:
    if text is None:
        return None
    if kind is Kind.DECIMAL or kind in (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT):
        return Decimal(text)
    return float(text) if kind in (Kind.FLOAT, Kind.DOUBLE) else text


# --- Spark ----------------------------------------------------------------------------------------------------------
def _wrong_in_spark(
    spark: Any, asked: Sequence[Asked], given: Sequence[tuple[Any, ...]], stricter: Counter[str]
) -> Iterator[str]:
    from pyspark.sql import types as spark_types

    from mvserver.streaming.spark.types import spark_type

    failures = _spark_errors()
    schema = spark_types.StructType(
        [spark_types.StructField(column.name, spark_type(column.type)) for column in SHAPE.columns]
    )
    made = spark.createDataFrame(given, schema)
    frame = spark.createDataFrame(made.toArrow(), schema)  # a local relation needs no job of its own

    def run(texts: Sequence[str], ids: Sequence[int] | None = None) -> list[tuple[Any, ...]]:
        chosen = frame if ids is None else frame.where(f"id IN ({', '.join(map(str, ids))})")
        return [tuple(row) for row in chosen.selectExpr("id", *texts).collect()]

    def shown(one: Asked) -> str:
        text = lower_spark.lower(
            one.node if one.kind is Kind.VARCHAR else Cast(t.VARCHAR, one.node), lower_spark.identifier
        )
        return f"CASE WHEN id IN ({', '.join(map(str, one.values)) or '-1'}) THEN {text} END"

    def judge(one: Asked, found: dict[int, Any]) -> Iterator[str]:
        for id_, text in found.items():
            if id_ in one.values and not _same(_read(one.kind, text), one.values[id_], one.kind):
                yield _told("Spark", one, id_, given, text)
                return

    def judged(part: Sequence[Asked]) -> Iterator[str]:
        """Halved until the expression that fails is alone."""
        try:
            answer = run([shown(one) for one in part])
        except failures:
            if len(part) > 1:
                yield from judged(part[: len(part) // 2])
                yield from judged(part[len(part) // 2 :])
                return
            one = part[0]
            yield from _one_by_one(one, lambda id_: run([shown(one)], [id_])[0][1], judge, stricter)
            return
        for number, one in enumerate(part):
            yield from judge(one, {row[0]: row[number + 1] for row in answer})

    for begin in range(0, len(asked), IN_ONE_JOB):
        part = asked[begin : begin + IN_ONE_JOB]
        yield from judged(part)
        for one in part:
            for id_ in list(one.refused)[:REFUSED_ASKED]:
                text = lower_spark.lower(one.node, lower_spark.identifier)
                try:
                    row = run([text], [id_])[0]
                except failures:
                    continue
                if _is_endless(one, id_, row[1]):
                    continue
                yield _told("Spark", one, id_, given, row[1])
                break


def _spark_errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


def _one_by_one(one: Asked, ask: Any, judge: Any, stricter: Counter[str]) -> Iterator[str]:
    failures: tuple[type[Exception], ...] = (*_spark_errors(), duckdb.Error)
    for id_ in one.values:
        try:
            value = ask(id_)
        except failures as error:
            stricter[f"{one.text[:60]}: {str(error)[:110]!r}"] += 1
        else:
            told = list(judge(one, {id_: value}))
            if told:
                yield told[0]
                return


# --- DuckDB ---------------------------------------------------------------------------------------------------------
def _wrong_in_duckdb(asked: Sequence[Asked], given: Sequence[tuple[Any, ...]], stricter: Counter[str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        database = Database.open(Path(folder) / "views.duckdb")
        with database.cursor() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            columns = ", ".join(f"c{i} {duckdb_type(column.type)}" for i, column in enumerate(SHAPE.columns))
            connection.execute(f"CREATE TABLE given ({columns})")
            connection.executemany(f"INSERT INTO given VALUES ({', '.join('?' * len(COLUMNS))})", given)
            trusted = 0
            for one in asked:
                try:
                    text = lower_duckdb.lower(by_place(one.node, COLUMNS), "c{}".format, str)
                except SqlError:
                    continue
                trusted += 1
                yield from _wrong_in_table(connection, text, one, given, stricter)
            print(f"{trusted} are trusted to DuckDB")
        database.close()


def _wrong_in_table(
    connection: Any, text: str, one: Asked, given: Sequence[tuple[Any, ...]], stricter: Counter[str]
) -> Iterator[str]:
    def ask(ids: Sequence[int]) -> dict[int, Any]:
        listed = ", ".join(map(str, ids)) or "-1"
        shown = f"CAST({text} AS VARCHAR)"
        return dict(connection.execute(f"SELECT c0, {shown} FROM given WHERE c0 IN ({listed})").fetchall())

    def judge(one: Asked, found: dict[int, Any]) -> Iterator[str]:
        for id_, value in found.items():
            if not _same(_read(one.kind, value), one.values[id_], one.kind):
                yield _told("DuckDB", one, id_, given, value)
                return

    try:
        yield from judge(one, ask(list(one.values)))
    except duckdb.Error:
        yield from _one_by_one(one, lambda id_: ask([id_])[id_], judge, stricter)
    for id_ in list(one.refused)[:REFUSED_ASKED]:
        try:
            found = ask([id_])[id_]
        except duckdb.Error:
            continue
        if _is_endless(one, id_, found):
            continue
        yield _told("DuckDB", one, id_, given, found)
        break


# --- comparison -----------------------------------------------------------------------------------------------------
def _same(ours: Any, theirs: Any, kind: Kind) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(theirs, float):
        if math.isnan(theirs) or math.isnan(ours):
            return math.isnan(theirs) and math.isnan(ours)
        return math.isclose(ours, theirs, rel_tol=1e-6 if kind is Kind.FLOAT else 1e-8, abs_tol=1e-12)
    if isinstance(theirs, Decimal):
        return bool(abs(ours - theirs) <= abs(theirs) * Decimal("1e-9"))
    return bool(ours == theirs)


def _is_endless(one: Asked, id_: int, found: Any) -> bool:
    """Arithmetic of doubles gives Infinity or 0 where PostgreSQL says that the value is out of range, by design."""
    if one.refused[id_] != "22003" or not one.node.type.is_approximate:
        return one.kind is Kind.BOOLEAN and one.refused[id_] == "22003"
    return found is None or float(found) in (0.0, math.inf, -math.inf) or math.isnan(float(found))


def _told(engine: str, one: Asked, id_: int, given: Sequence[tuple[Any, ...]], found: Any) -> str:
    names = [name for name in COLUMNS if name in one.text]
    row = {name: given[id_][list(COLUMNS).index(name)] for name in names if name != "id"}
    theirs = one.values.get(id_, f"an error {one.refused.get(id_)}")
    return f"{engine}: {one.text}\n    gave {found!r}, PostgreSQL {theirs!r}, of {row} ({one.node.type})"
