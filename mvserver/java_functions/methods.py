"""Which method of a class a function is: by the types of its arguments and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mvserver.java_functions.class_files import Jar, JarError, Method
from mvserver.sql.types import SqlType

NAMES = ("evaluate", "eval")  # as Hive, Spark and others have it, and Flink
_BOXES: Mapping[str, tuple[str, str]] = {
    "BOOLEAN": ("Z", "java.lang.Boolean"), "TINYINT": ("B", "java.lang.Byte"), "SMALLINT": ("S", "java.lang.Short"),
    "INTEGER": ("I", "java.lang.Integer"), "BIGINT": ("J", "java.lang.Long"), "FLOAT": ("F", "java.lang.Float"),
    "DOUBLE": ("D", "java.lang.Double"),
}  # fmt: skip
_CLASSES: Mapping[str, str] = {
    "DECIMAL": "java.math.BigDecimal", "VARCHAR": "java.lang.String", "DATE": "java.time.LocalDate",
    "TIME": "java.time.LocalTime", "TIMESTAMP": "java.time.LocalDateTime", "TIMESTAMP_LTZ": "java.time.Instant",
    "ARRAY": "java.util.List",
}  # fmt: skip


def java_type(type_: SqlType) -> str:
    """As it is written in Java, for messages."""
    kind = type_.kind.value
    return _BOXES[kind][1] if kind in _BOXES else _CLASSES.get(kind, "byte[]")


def _descriptors(type_: SqlType) -> tuple[str, ...]:
    """Those that a value of the type may have: of the object, and of the primitive."""
    kind = type_.kind.value
    if kind in _BOXES:
        primitive, box = _BOXES[kind]
        return (f"L{box.replace('.', '/')};", primitive)
    return (f"L{_CLASSES[kind].replace('.', '/')};",) if kind in _CLASSES else ("[B",)


def method_of(jar: Jar, class_name: str, arguments: Sequence[SqlType], result: SqlType, *, strict: bool) -> Method:
    """The method that is called; raises JarError."""
    found = jar.public(class_name)
    named = [each for each in jar.methods(class_name) if each.name in NAMES and each.is_callable]
    fitting = [each for each in named if _fits(each, arguments, result)]
    if not fitting:
        wanted = f"{java_type(result)} evaluate({', '.join(map(java_type, arguments))})"
        has = f": it has {', '.join(f'{each.name}{each.descriptor}' for each in named)}" if named else ""
        raise JarError(f"class {class_name} has no public method {wanted}{has}")
    if len(fitting) > 1:
        raise JarError(f"class {class_name} has several methods that fit: {', '.join(e.descriptor for e in fitting)}")
    (method,) = fitting
    if not method.is_static:
        found.check_can_be_made(class_name)
    if not strict and any(len(each) == 1 for each in _parameters(method.descriptor)):
        raise JarError(f"method {method.name}{method.descriptor} takes a primitive type, which has no NULL: say STRICT")
    return method


def _fits(method: Method, arguments: Sequence[SqlType], result: SqlType) -> bool:
    given = _parameters(method.descriptor)
    answer = method.descriptor.rpartition(")")[2]
    if len(given) != len(arguments) or answer not in _descriptors(result):
        return False
    return all(each in _descriptors(type_) for each, type_ in zip(given, arguments, strict=True))


def _parameters(descriptor: str) -> list[str]:
    found: list[str] = []
    text = descriptor[1 : descriptor.index(")")]
    at = 0
    while at < len(text):
        end = at
        while text[end] == "[":
            end += 1
        end = text.index(";", end) if text[end] == "L" else end
        found.append(text[at : end + 1])
        at = end + 1
    return found
