"""Pieces of Spark SQL text that many lowerings share: constants, types, named failures."""

from __future__ import annotations

from decimal import Decimal

from mvserver import sqlstates
from mvserver.compiler.expressions import Literal
from mvserver.compiler.intervals import parts_of
from mvserver.errors import SqlError
from mvserver.sql.types import Kind, SqlType

FAILURE_MARK = "mvserver:"
"""Raised errors carry ``mvserver:SQLSTATE:message``; ``mvserver.compiler.failures`` reads it back."""

_INTEGER_SUFFIX = {Kind.TINYINT: "Y", Kind.SMALLINT: "S", Kind.INTEGER: "", Kind.BIGINT: "L"}


def spark_type(type_: SqlType) -> str:
    """The type as Spark DDL. Lengths of VARCHAR are ours to keep, by casts; Spark sees STRING."""
    if type_.kind is Kind.DECIMAL:
        return f"DECIMAL({type_.precision},{type_.scale})"
    if type_.kind is Kind.ARRAY and type_.element:
        return f"ARRAY<{spark_type(type_.element)}>"
    if type_.kind is Kind.MAP and type_.element and type_.key:
        return f"MAP<{spark_type(type_.key)},{spark_type(type_.element)}>"
    if type_.kind is Kind.STRUCT:
        inner = ",".join(f"{identifier(name)}: {spark_type(field)}" for name, field in type_.fields)
        return f"STRUCT<{inner}>"
    if type_.kind.row.spark is not None:
        return type_.kind.row.spark
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"type {type_} cannot be a column of a continuous query",
        hint="Cast it to VARCHAR.",
    )


def identifier(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def string(value: str) -> str:
    r"""A Spark string constant. Only printable ASCII goes in as it is; the rest as \uXXXX, so that neither Spark's
    backslash escapes nor its lexer can read anything else into it."""
    parts = ["'"]
    for char in value:
        code = ord(char)
        if char in "\\'":
            parts.append("\\" + char)
        elif 32 <= code < 127:
            parts.append(char)
        elif code < 0x10000:
            parts.append(f"\\u{code:04X}")
        else:
            parts.append(f"\\U{code:08X}")
    parts.append("'")
    return "".join(parts)


def literal(node: Literal) -> str:
    """A constant with its type spelled out."""
    kind, value = node.type.kind, node.value
    if value is None:
        if kind is Kind.INTERVAL:
            return "CAST(NULL AS INTERVAL)"
        return "NULL" if kind is Kind.NULL else f"CAST(NULL AS {spark_type(node.type)})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if node.type.is_integer:
        return integer(int(str(value)), kind)
    if isinstance(value, Decimal):
        return f"CAST({string(format(value, 'f'))} AS {spark_type(node.type)})"
    if isinstance(value, float):
        return f"CAST({string(_float(value))} AS {spark_type(node.type)})"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if kind is Kind.INTERVAL:
        return interval(str(value))
    if kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ):
        return f"CAST({string(str(value))} AS {spark_type(node.type)})"
    return string(str(value))


def integer(value: int, kind: Kind = Kind.INTEGER) -> str:
    text = f"{value}{_INTEGER_SUFFIX[kind]}"
    return f"({text})" if value < 0 else text


def interval(canonical: str) -> str:
    months, days, micros = parts_of(canonical)
    seconds = Decimal(micros) / 1_000_000
    return f"make_interval(0, {months}, 0, {days}, 0, 0, CAST({string(format(seconds, 'f'))} AS DECIMAL(18,6)))"


def _float(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def failure(sqlstate: str, message: str) -> str:
    """An expression that ends the query with a named error."""
    return f"raise_error({string(f'{FAILURE_MARK}{sqlstate}:{message}')})"


def guard(condition: str, sqlstate: str, message: str, value: str) -> str:
    """``value``, or a named error where ``condition`` holds."""
    return f"IF({condition}, {failure(sqlstate, message)}, {value})"


def bound_once(name: str, value: str, body: str) -> str:
    """``body``, in which ``name`` stands for ``value``, which is written and computed once."""
    return f"element_at(transform(array({value}), {name} -> {body}), 1)"
