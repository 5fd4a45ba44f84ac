"""Functions of our own in Spark: text functions whose time and memory are bounded, and the decoder of records.

Spark brings Janino, a Java compiler, and Hadoop brings RE2/J, a regular expression engine without backtracking. So no
jar is fetched: what is in ``java/`` is compiled by the first session of a data directory, and the classes go to
executors as a jar (``compiled_jar``).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.utils import is_timestamp_ntz_preferred

from mvserver import sqlstates
from mvserver.compiler.capabilities import bounded, drawn
from mvserver.compiler.failures import raised
from mvserver.errors import SqlError, words_of
from mvserver.streaming.spark import compiled_jar
from spark_sinks.decode import RecordFunction, json_text

_PACKAGE = "mvserver"
_BOUNDED, _TEXTS, _JSON_PATHS, _JSON_SHAPE, _DRAWN = "Bounded", "Texts", "JsonPaths", "JsonShape", "Drawn"
_DECODERS = ("Records", "Xml")
_LIVE_ROWS = "mvserver.LiveRows"
_KEPT_ROWS = "mvserver.KeptRows"
_CONTEXT, _STRUCTURE = "org.apache.spark.SparkContext", "org.apache.spark.sql.types.StructType"
_UDF, _TYPE = "org.apache.spark.sql.api.java.UDF0", "org.apache.spark.sql.types.DataType"
_TEXT = "java.lang.String"
_BOXES = {
    "String": "String", "byte[]": "byte[]", "int": "Integer", "long": "Long", "boolean": "Boolean", "double": "Double",
}  # fmt: skip
_TYPES = {
    "String": "string", "int": "int", "boolean": "boolean", "long": "bigint", "double": "double",
    "String[]": "array<string>", "String[][]": "array<array<string>>",
}  # fmt: skip
_VALUES = {"String": "", "byte[]": "", "int": ".intValue()", "long": ".longValue()", "boolean": ".booleanValue()"}


@dataclass(frozen=True)
class JavaFunction:
    """``name`` in Spark SQL is the static method ``method`` of a class; NULL where an argument is NULL. One that is not
    ``settled`` has another value at each call, and Spark then neither repeats nor moves it."""

    name: str
    method: str
    arguments: tuple[str, ...]
    result: str
    owner: str = _BOUNDED
    settled: bool = True

    def source(self) -> str:
        """A class that Spark takes as a function."""
        count = len(self.arguments)
        parameters = ", ".join(f"Object a{i}" for i in range(count))
        missing = " || ".join(f"a{i} == null" for i in range(count)) or "false"
        values = ", ".join(f"(({_BOXES[kind]}) a{i}){_VALUES[kind]}" for i, kind in enumerate(self.arguments))
        call = f"{self.owner}.{self.method}({values})"
        made = call if self.result.startswith("String") else f"{_BOXES[self.result]}.valueOf({call})"
        return (
            f"public static final class {self.name} implements org.apache.spark.sql.api.java.UDF{count} {{\n"
            f"  public Object call({parameters}) {{\n"
            f"    if ({missing}) {{ return null; }}\n    return {made};\n  }}\n}}\n"
        )


FUNCTIONS = (
    JavaFunction(bounded.MATCHES, "matches", ("String", "String"), "boolean"),
    JavaFunction(bounded.COUNT, "count", ("String", "String"), "int"),
    JavaFunction(bounded.POSITION, "position", ("String", "String"), "int"),
    JavaFunction(bounded.EXTRACT, "extract", ("String", "String", "int"), "String"),
    JavaFunction(bounded.REPLACE_MATCHES, "replaceMatches", ("String", "String", "String", "boolean", "int"), "String"),
    JavaFunction(bounded.LIKE, "like", ("String", "String"), "boolean"),
    JavaFunction(bounded.REPEAT, "repeat", ("String", "int", "int"), "String"),
    JavaFunction(bounded.PAD, "pad", ("String", "int", "String", "boolean", "int"), "String"),
    JavaFunction(bounded.REPLACE, "replace", ("String", "String", "String", "int"), "String"),
    JavaFunction(bounded.CONCAT, "concat", ("String", "String", "int"), "String"),
    JavaFunction(bounded.GROUPS, "groups", ("String", "String", "int"), "String[]"),
    JavaFunction(bounded.ALL_GROUPS, "allGroups", ("String", "String", "int"), "String[][]"),
    JavaFunction(bounded.JSON_FIRST, "first", ("String", "String", "int"), "String", _JSON_PATHS),
    JavaFunction(bounded.JSON_ALL, "all", ("String", "String", "int"), "String[]", _JSON_PATHS),
    JavaFunction(bounded.WITHOUT_ACCENTS, "withoutAccents", ("String",), "String", _TEXTS),
    JavaFunction(bounded.SWAPPED_CASE, "swappedCase", ("String",), "String", _TEXTS),
    JavaFunction(bounded.FITS, "fits", ("long", "long"), "boolean"),
    JavaFunction(json_text.ODDITIES, "oddities", ("byte[]", "int"), "int", _JSON_SHAPE),
    JavaFunction(drawn.MOMENT, "moment", (), "long", _DRAWN, settled=False),
    JavaFunction(drawn.FRACTION, "fraction", (), "double", _DRAWN, settled=False),
    JavaFunction(drawn.INTEGER, "integer", (), "int", _DRAWN, settled=False),
    JavaFunction(drawn.UUID, "uuid", (), "String", _DRAWN, settled=False),
)

_loaders: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()


def install(session: SparkSession, work_directory: Path) -> None:
    """Provides and registers :data:`FUNCTIONS` in a session, and so in all that are copied from it."""
    context = session.sparkContext
    jvm, gateway = context._jvm, context._gateway
    assert jvm is not None and gateway is not None  # noqa: S101, PT018 - a session has both
    jar = work_directory / "mvserver-functions.jar"
    compiled_jar.provide(jvm, jar, _sources())
    context._jsc.addJar(str(jar.resolve()))
    urls = gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.io.File(str(jar.resolve())).toURI().toURL()
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader = _loaders[context] = jvm.java.net.URLClassLoader(urls, parent)
    classes, values = gateway.new_array(jvm.java.lang.Class, 0), gateway.new_array(jvm.java.lang.Object, 0)
    for function in FUNCTIONS:
        made_class = loader.loadClass(f"{_PACKAGE}.{function.owner}${function.name}")
        made = made_class.getDeclaredConstructor(classes).newInstance(values)
        result = jvm.org.apache.spark.sql.types.DataType.fromDDL(_TYPES[function.result])
        if function.settled:
            session._jsparkSession.udf().register(function.name, made, result)
        else:
            session._jsparkSession.udf().register(function.name, _drawing(context, made, result))


def _drawing(context: SparkContext, made: Any, result: Any) -> Any:
    """A function without arguments as one that Spark knows not to be deterministic. It is asked for by reflection: py4j
    would take the overload for functions of Scala."""
    classes, values = _reflected(context, (_UDF, made), (_TYPE, result))
    functions = context._jvm.java.lang.Class.forName("org.apache.spark.sql.functions")  # type: ignore[union-attr]
    return functions.getMethod("udf", classes).invoke(None, values).asNondeterministic()


def register_decoder(session: SparkSession, function: RecordFunction) -> None:
    """Makes the decoder known to a session."""
    context = session.sparkContext
    jvm = context._jvm
    assert jvm is not None  # noqa: S101 - a session has one
    decoder = f"{_PACKAGE}.{function.owner}$Decoder"
    made = instance(context, decoder, function.name, function.columns, function.schemas)
    result = jvm.org.apache.spark.sql.types.DataType.fromDDL(function.result)
    session._jsparkSession.udf().register(function.name, made, result)


def instance(context: SparkContext, class_name: str, *texts: str) -> Any:
    """An object of one of our classes, whose constructor takes texts."""
    return _new(context, class_name, *((_TEXT, each) for each in texts))


def live_rows(session: SparkSession, schema: Any, host: str, port: int, token: str) -> Any:
    """A writer that hands the rows of its task to the server's port; ``schema`` is the JVM's own of the rows."""
    return _new(session.sparkContext, _LIVE_ROWS, (_STRUCTURE, schema), (_TEXT, host), ("int", port), (_TEXT, token))


def kept_rows(session: SparkSession, columns: pa.Schema) -> tuple[Any, Any, pa.Schema]:
    """Rows that may be given anew, the JVM's frame over them, and the schema in which they are given: that of
    ``createDataFrame`` of a table with these columns."""
    context = session.sparkContext
    schema = from_arrow_schema(columns, is_timestamp_ntz_preferred())
    conf = session._jsparkSession.sessionState().conf()
    zone, large = conf.sessionLocalTimeZone(), conf.arrowUseLargeVarTypes()
    types = session._jsparkSession.parseDataType(schema.json())
    given = (_CONTEXT, context._jsc.sc()), (_STRUCTURE, types), (_TEXT, zone), ("boolean", large)
    source = _new(context, _KEPT_ROWS, *given)
    frame = session._jsparkSession.internalCreateDataFrame(source, types, False)
    return source, frame, to_arrow_schema(schema, timezone="UTC", prefers_large_types=large)


def _new(context: SparkContext, name: str, *arguments: tuple[str, Any]) -> Any:
    """An object of a class of the server's own, by arguments with the names of their types."""
    classes, values = _reflected(context, *arguments)
    return _loaders[context].loadClass(name).getDeclaredConstructor(classes).newInstance(values)


def _reflected(context: SparkContext, *arguments: tuple[str, Any]) -> tuple[Any, Any]:
    """The types and the values of a call by reflection."""
    jvm, gateway = context._jvm, context._gateway
    assert jvm is not None and gateway is not None  # noqa: S101, PT018 - a session has both
    plain = {"int": jvm.java.lang.Integer.TYPE, "boolean": jvm.java.lang.Boolean.TYPE}
    classes = gateway.new_array(jvm.java.lang.Class, len(arguments))
    values = gateway.new_array(jvm.java.lang.Object, len(arguments))
    for number, (kind, value) in enumerate(arguments):
        classes[number] = plain[kind] if kind in plain else jvm.java.lang.Class.forName(kind)
        values[number] = value
    return classes, values


def check_pattern(session: SparkSession, pattern: str) -> None:
    """Raises SqlError 2201B where a regular expression is not one, or is too large."""
    context = session.sparkContext
    jvm, gateway = context._jvm, context._gateway
    assert jvm is not None and gateway is not None  # noqa: S101, PT018 - a session has both
    text = jvm.java.lang.Class.forName("java.lang.String")
    kinds = gateway.new_array(jvm.java.lang.Class, 1)
    kinds[0] = text
    values = gateway.new_array(jvm.java.lang.Object, 1)
    values[0] = pattern
    method = _loaders[context].loadClass(f"{_PACKAGE}.{_BOUNDED}").getMethod("compiled", kinds)
    try:
        method.invoke(None, values)
    except Exception as error:
        raise raised(words_of(error)) or SqlError(sqlstates.INTERNAL_ERROR, words_of(error)) from error


def _sources() -> list[str]:
    """One may use those above it."""
    with_functions = (_with_functions(owner) for owner in (_BOUNDED, _TEXTS, _JSON_PATHS, _JSON_SHAPE, _DRAWN))
    return [*with_functions, *map(_source, (*_DECODERS, "LiveRows", "KeptRows", "Lenses", "Jars"))]


def _with_functions(owner: str) -> str:
    body, brace, end = _source(owner).rpartition("}")
    return body + "".join(each.source() for each in FUNCTIONS if each.owner == owner) + brace + end


def _source(name: str) -> str:
    return resources.files("mvserver.streaming.spark").joinpath(f"java/{name}.java").read_text(encoding="utf-8")
