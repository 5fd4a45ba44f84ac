"""Users' functions in Java in Spark: jars go to the executors, where each is opened by a class loader of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import SparkSession

from mvserver import limits, sqlstates
from mvserver.compiler.own_functions import java_carrier
from mvserver.errors import SqlError
from mvserver.java_functions.definition import JavaFunction
from mvserver.java_functions.jars import digest_of
from mvserver.python_functions.definition import kind_of
from mvserver.sql.types import SqlType
from mvserver.streaming.spark.java_functions import instance

_CLASS = "mvserver.Jars$Function"
_sent: WeakKeyDictionary[SparkContext, set[str]] = WeakKeyDictionary()


def register(session: SparkSession, name: str, function: JavaFunction) -> None:
    jar = _sent_jar(session.sparkContext, function)
    kinds = " ".join(kind_of(type_) for _, type_ in function.parameters)
    made = instance(
        session.sparkContext, _CLASS, function.name, function.jar_digest, str(jar), function.class_name,
        function.method, kinds, _answered(function.result), str(function.strict).lower(),
        str(limits.GROWN_TEXT_CHARACTERS_MAX),
    )  # fmt: skip
    jvm = session.sparkContext._jvm
    assert jvm is not None  # noqa: S101 - a session has one
    result = jvm.org.apache.spark.sql.types.DataType.fromDDL(
        f"struct<value: {java_carrier(function.result)}, error: string>"
    )
    session._jsparkSession.udf().register(name, made, result)


def _sent_jar(context: SparkContext, function: JavaFunction) -> Path:
    """Where Spark has it. It is sent once in Spark's life, as what the function was made of.

    What is sent is a copy that stays as long as Spark: every task that begins later compares it with what it has.
    """
    sent = _sent.setdefault(context, set())
    folder = Path(str(context.getConf().get("spark.local.dir"))).resolve() / "function-jars"
    copy = folder / f"{function.jar_digest}.jar"
    if function.jar_digest in sent:
        return copy
    path = Path(function.jar).resolve()
    content = path.read_bytes() if path.is_file() else b""
    if digest_of(content) != function.jar_digest:
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR,
            f"the jar of function {function.name} is missing or changed",
            detail=f"It should be in {path.parent}.",
            hint="Put the file back from a backup of the data directory, and RESTART QUERY.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(content)
    context._jsc.sc().addFile(str(copy))
    sent.add(function.jar_digest)
    return copy


def _answered(type_: SqlType) -> str:
    element: Sequence[str] = () if type_.element is None else [_answered(type_.element)]
    size = () if type_.precision is None else (str(type_.precision), str(type_.scale or 0))
    return " ".join([str(type_.kind.value), *element, *size])
