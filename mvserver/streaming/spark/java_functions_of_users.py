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
from mvserver.streaming.spark.options import JAR_DIRECTORY
from spark_sinks.jars import LENSES_FUNCTIONS

_CLASS = "mvserver.Jars$Function"
_sent: WeakKeyDictionary[SparkContext, set[str]] = WeakKeyDictionary()
_interfaces: WeakKeyDictionary[SparkContext, tuple[str, Path]] = WeakKeyDictionary()


def register(session: SparkSession, name: str, function: JavaFunction) -> None:
    """Raises SqlError 42P13 where a class says of types something else than what is declared."""
    context = session.sparkContext
    jars = [(function.jar_digest, _sent_jar(context, function))]
    if function.by_interface:
        jars.append(_sent_interfaces(session))
    kinds = " ".join(map(kind_of, function.given))
    made = instance(
        context, _CLASS, function.name, "\n".join(digest for digest, _ in jars),
        "\n".join(str(path) for _, path in jars), function.class_name, function.method, kinds,
        _answered(function.result), str(function.strict).lower(), str(limits.GROWN_TEXT_CHARACTERS_MAX),
        str(limits.AGGREGATE_VALUES_MAX),
    )  # fmt: skip
    if function.by_interface and (refusal := made.refusal()) is not None:
        raise SqlError(
            sqlstates.INVALID_FUNCTION_DEFINITION,
            f"class {function.class_name} cannot be function {function.name} as it is declared",
            detail=f"It is {_declared(function)}. The class says: {refusal}",
            hint="Declare it with the types that the class has. With STRICT it is given values, else optional ones.",
        )
    jvm = context._jvm
    assert jvm is not None  # noqa: S101 - a session has one
    result = jvm.org.apache.spark.sql.types.DataType.fromDDL(
        f"struct<value: {java_carrier(function.result)}, error: string>"
    )
    session._jsparkSession.udf().register(name, made, result)


def _declared(function: JavaFunction) -> str:
    arguments = ", ".join(str(type_) for _, type_ in function.parameters)
    return f"{function.name}({arguments}) RETURNS {function.result}{' STRICT' if function.strict else ''}"


def _sent_jar(context: SparkContext, function: JavaFunction) -> Path:
    """Where Spark has it."""
    if function.jar_digest in _sent.setdefault(context, set()):
        return _folder(context) / f"{function.jar_digest}.jar"
    path = Path(function.jar).resolve()
    content = path.read_bytes() if path.is_file() else b""
    if digest_of(content) != function.jar_digest:
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR,
            f"the jar of function {function.name} is missing or changed",
            detail=f"It should be in {path.parent}.",
            hint="Put the file back from a backup of the data directory, and RESTART QUERY.",
        )
    return _send(context, content)[1]


def _sent_interfaces(session: SparkSession) -> tuple[str, Path]:
    """The jar that Lenses publishes, fetched at the first use as those of kinds of stores are."""
    context = session.sparkContext
    known = _interfaces.get(context)
    if known is None:
        folder = context.getConf().get(JAR_DIRECTORY)
        directory = None if folder is None else Path(folder)
        if LENSES_FUNCTIONS.missing(directory):
            LENSES_FUNCTIONS.add_to(session, directory)
        files = LENSES_FUNCTIONS.files(directory)
        if not files:
            raise LENSES_FUNCTIONS.unavailable(directory)
        known = _interfaces[context] = _send(context, files[0].read_bytes())
    return known


def _send(context: SparkContext, content: bytes) -> tuple[str, Path]:
    """The digest of a jar, and where Spark has it. It is sent once in Spark's life.

    What is sent is a copy that stays as long as Spark: every task that begins later compares it with what it has.
    """
    digest, folder = digest_of(content), _folder(context)
    copy = folder / f"{digest}.jar"
    folder.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(content)
    context._jsc.sc().addFile(str(copy))
    _sent.setdefault(context, set()).add(digest)
    return digest, copy


def _folder(context: SparkContext) -> Path:
    return Path(str(context.getConf().get("spark.local.dir"))).resolve() / "function-jars"


def _answered(type_: SqlType) -> str:
    element: Sequence[str] = () if type_.element is None else [_answered(type_.element)]
    size = () if type_.precision is None else (str(type_.precision), str(type_.scale or 0))
    return " ".join([str(type_.kind.value), *element, *size])
