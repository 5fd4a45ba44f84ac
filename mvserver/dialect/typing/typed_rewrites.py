"""Rewrites for PostgreSQL's differences between types of an operand, where DuckDB has one answer for all.

``1.0::float8::text`` is ``1`` there and ``1.0`` in DuckDB; to_char means other things for numbers, times and intervals;
date_trunc of a date has a time zone. Each such expression is bound once more to learn its operand's type, inner ones
first. Where that is not possible DuckDB's answer stays, or what the pattern suggests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import duckdb
from sqlglot import exp

from mvserver import interrupts, sqlstates
from mvserver.dialect.derived_columns import inner_first
from mvserver.dialect.duck_text import refuse_repeating
from mvserver.dialect.errors.type_texts import pg_name
from mvserver.dialect.functions import (
    argument_rules,
    binary_functions,
    enum_operands,
    json_operators,
    json_values,
    overlapping,
    periods,
    to_char,
)
from mvserver.dialect.functions.arrays import array_literal
from mvserver.dialect.functions.to_char import call
from mvserver.dialect.functions.volatile import bound_once, draws
from mvserver.dialect.growth import Growth
from mvserver.dialect.marks import PERIODS
from mvserver.dialect.probes import innermost, type_parameters, types_in
from mvserver.dialect.typing import (
    constant_operands,
    exact_columns,
    mixed_numerics,
    operand_types,
    row_values,
    small_integers,
)
from mvserver.dialect.typing.operand_rules import NO_FUNCTION
from mvserver.dialect.typing.value_texts import text_of
from mvserver.errors import SqlError

_DECIMAL = re.compile(r"^DECIMAL\((\d+),\s*(\d+)\)$")
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UINTEGER", "UBIGINT"}
_FLOATS = ("DOUBLE", "FLOAT")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")

_TEXT_TARGETS = (exp.DType.TEXT, exp.DType.VARCHAR)
_INTEGER_TARGETS = {exp.DType.SMALLINT: "smallint", exp.DType.INT: "integer", exp.DType.BIGINT: "bigint"}
_READ = {
    exp.DType.BOOLEAN: "_boolean_in", exp.DType.JSON: "_json_in", exp.DType.DOUBLE: "_float8_in",
    exp.DType.FLOAT: "_float4_in",
}  # fmt: skip
"""Macros that read a text strictly, by the type."""
_CLOCKS = (exp.DType.TIME, exp.DType.INTERVAL)

_QUOTING = ("_quote_literal", "_quote_nullable")
_MARKS = ("_to_char", "_contains_all")


def is_mark(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name in _MARKS


def concerns_always(node: exp.Expr) -> bool:
    """Also in a query of the catalog alone."""
    return is_mark(node) or (
        isinstance(node, exp.Cast) and isinstance(node.this, exp.Array) and node.to.this in _TEXT_TARGETS
    )


def concerns(node: exp.Expr) -> bool:
    return small_integers.concerns(node) or _is_rewritten(node)


def _is_rewritten(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        plain = not isinstance(node.this, exp.Literal | exp.Parameter | exp.Null)
        target = node.to.this if isinstance(node.to, exp.DataType) else None
        text = target in _TEXT_TARGETS or target in _INTEGER_TARGETS or target in (*_READ, *_CLOCKS)
        return (text and plain) or target == exp.DType.VARBINARY
    if (
        _compares_periods(node)
        or operand_types.concerns(node)
        or json_values.concerns(node)
        or argument_rules.concerns(node)
    ):
        return True
    if isinstance(node, exp.Anonymous):
        return is_mark(node) or node.name == "_extract_epoch" or node.name in _QUOTING
    if isinstance(node, exp.WithinGroup):
        return isinstance(node.this, exp.PercentileCont)
    if isinstance(node, exp.Case | exp.NullSafeEQ | exp.NullSafeNEQ):
        return node.this is not None
    if isinstance(node, exp.Is):
        return isinstance(node.this, exp.Column) and not node.this.table and isinstance(node.expression, exp.Null)
    if isinstance(node, exp.Ceil | exp.Floor):
        return True
    if isinstance(node, exp.Round):
        return node.args.get("decimals") is None or _digits(node) is not None
    return isinstance(node, exp.TimestampTrunc | exp.DPipe | exp.Concat | exp.ConcatWs)


def _compares_periods(node: exp.Expr) -> bool:
    return isinstance(node, exp.EQ | exp.NEQ | exp.In) and bool(node.meta.get(PERIODS))


class TypedRewriting:
    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, tree: exp.Expr, parameters: Mapping[int, str], time_zone: str
    ) -> None:
        self._cursor = cursor
        self._tree = tree
        self._parameters = parameters
        self._time_zone = time_zone
        self._outer = tree.args.get("with_")

    def unify_rows(self) -> None:
        """Columns of VALUES, on whose types those of parameters may depend."""
        enum_operands.unify_rows(self._tree, self._type)

    def type_constants(self) -> bool:
        """Texts beside an operator, in place; True when there was one."""
        return constant_operands.give_types(self._tree, self._type)

    def choose_overlaps(self, given: Sequence[int]) -> None:
        """By the types of its parts, in place. ``given`` are those of the parameters."""
        overlapping.choose(self._tree, self._type, given)

    def trim_bytes(self) -> bool:
        """Functions of bytes that DuckDB takes for those of texts, in place; True when there was one."""
        return binary_functions.trim(self._tree, self._type)

    def hand_out_columns(self) -> bool:
        """Numerics with digits of their own, in place; True when there was one."""
        return exact_columns.hand_out(self._tree, self._type)

    def unify_numerics(self) -> bool:
        """Numerics of which DuckDB would make one type with too few digits, in place; True when there were some."""
        return mixed_numerics.unify(self._cursor, self._tree, self._type)

    def add_missing(self, failure: SqlError) -> bool:
        """What DuckDB does not bind, of which ``failure`` tells the first; True when there was some."""
        enums_added = enum_operands.present(self._tree) and enum_operands.add_missing(self._tree, self._type)
        periods_added = periods.add_missing(self._tree, self._type)
        binary_added = binary_functions.add_missing(self._tree, self._type)
        texts_added = self._add_texts()
        rows_added = row_values.is_correlated(failure) and row_values.compare_memberships(self._tree)
        operators_added = operand_types.add_missing(self._tree, self._type)
        return enums_added or periods_added or binary_added or texts_added or rows_added or operators_added

    def _add_texts(self) -> bool:
        """Arrays among the arguments of concat, which DuckDB would join to arrays."""
        changed = False
        for node in interrupts.asking(reversed(list(self._tree.walk(bfs=True)))):
            if isinstance(node, exp.Concat | exp.ConcatWs):
                changed |= self._joined(node) is not None
        return changed

    def apply(self, *, with_enums: bool) -> bool:
        """In place, inner expressions first; True when something was rewritten. ``with_enums``: whether any operand
        may be of an enum type."""
        changed, growth = False, Growth(self._tree)
        for node in interrupts.asking(inner_first(self._tree)):
            replacement = None
            if small_integers.concerns(node):
                changed |= small_integers.widen(node, self._type)
            if with_enums and enum_operands.concerns(node):
                replacement = enum_operands.rewritten(node, self._type)
            if replacement is None and _is_rewritten(node):
                replacement = self._rewritten(node)
            if replacement is not None:
                changed = True
                if replacement is not node:
                    growth.replace(node, replacement)
        return changed

    def _rewritten(self, node: exp.Expr) -> exp.Expr | None:
        """What stands for the node, the node itself where something in it was changed, None where all stays."""
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if argument_rules.concerns(node):
            argument_rules.check(node, self._type)
            return binary_functions.joined(node, self._type) if isinstance(node, exp.GroupConcat) else None
        if isinstance(node, exp.Trunc) and node.args.get("decimals") is None and self._type(node.this) == "FLOAT":
            return self._doubled(node)
        if isinstance(node, exp.Trunc) and _digits(node) is not None and (made := self._rounded(node)) is not None:
            return made
        if isinstance(node, exp.Anonymous) and node.name == "_extract_epoch":
            return self._epoch(node)
        if isinstance(node, exp.Anonymous) and node.name in _QUOTING:
            return self._quoted(node)
        if _compares_periods(node):
            return node if periods.as_intervals(node, self._type) else None
        if operand_types.concerns(node):
            return operand_types.rewritten(node, self._type)
        if json_values.concerns(node):
            return json_values.rewritten(node, self._type)
        if isinstance(node, exp.TimestampTrunc):
            return self._date_trunc(node)
        if isinstance(node, exp.Round) and node.args.get("decimals") is not None:
            return self._rounded(node)
        if isinstance(node, exp.Round):
            kind = self._type(node.this)
            if kind in _INTEGERS:
                return exp.cast(node.this.copy(), "DOUBLE", dialect="duckdb")
            half_even = kind in _FLOATS
            value = exp.cast(node.this.copy(), "DOUBLE", dialect="duckdb") if kind == "FLOAT" else node.this.copy()
            return call("round_even", value, exp.Literal.number(0)) if half_even else None
        if isinstance(node, exp.Ceil | exp.Floor):
            return self._doubled(node)
        if isinstance(node, exp.WithinGroup):
            return self._percentile(node)
        if isinstance(node, exp.Case | exp.NullSafeEQ | exp.NullSafeNEQ):
            return node if periods.as_intervals(node, self._type) else None
        if isinstance(node, exp.DPipe | exp.Concat | exp.ConcatWs):
            return self._joined(node)
        if isinstance(node, exp.Is):
            return self._row_test(node)
        if isinstance(node, exp.Anonymous) and node.name == "_to_char":
            return self._to_char(node.expressions[0], node.expressions[1].name)
        return self._contains(*node.expressions)

    # --- types ------------------------------------------------------------------------------------------------------
    def _type(self, node: exp.Expr) -> str:
        """As DuckDB prints it; empty where it cannot be told."""
        bare = node.unnest()
        if isinstance(bare, exp.Anonymous) and bare.name in json_operators.TEXTS:
            return "VARCHAR"  # they are nested in each other, and take long to bind
        select = node.find_ancestor(exp.Select) or exp.Select()
        found = types_in(self._cursor, [node], select, self._outer, adapt=self._with_parameters)
        if found is None and select.args.get("group") is not None:  # the operand mixes aggregates with group keys

            def grouped(probe: exp.Select) -> None:
                self._with_parameters(probe)
                innermost(probe).set("group", select.args["group"].copy())

            found = types_in(self._cursor, [node], select, self._outer, adapt=grouped)
        return found[0] if found else ""

    def _with_parameters(self, probe: exp.Select) -> None:
        type_parameters(probe, self._parameters)

    # --- rewritings -------------------------------------------------------------------------------------------------
    def _cast(self, node: exp.Cast) -> exp.Expr | None:
        kind = self._type(node.this)
        target = node.to.this
        if target in _TEXT_TARGETS:
            if not kind and isinstance(node.this, exp.Array):
                return call("_array_out", node.this.copy())  # of a correlated sub-query
            return text_of(node.this, kind)
        if target in _CLOCKS:
            return operand_types.clock(node, kind)
        if kind != "VARCHAR":
            return None
        if target == exp.DType.VARBINARY:
            return call("_bytea_in", node.this.copy())
        if target in _READ:
            node.this.replace(call(_READ[target], node.this.copy()))
            return node
        node.this.replace(call("_integer_in", node.this.copy(), exp.Literal.string(_INTEGER_TARGETS[target])))
        return node

    def _date_trunc(self, node: exp.TimestampTrunc) -> exp.Expr | None:
        unit = node.unit.name.upper() if node.unit is not None else ""
        kind = self._type(node.this)
        operand = node.this.copy()
        zone = node.args.get("zone")
        if kind in ("DATE", "VARCHAR") or (zone is not None and kind != "TIMESTAMP WITH TIME ZONE"):
            operand = exp.cast(operand, "TIMESTAMPTZ", dialect="duckdb")
            kind = "TIMESTAMP WITH TIME ZONE"
        local: exp.Expr = exp.cast(operand.copy(), "TIMESTAMP", dialect="duckdb")
        if zone is not None:
            local = exp.AtTimeZone(this=operand.copy(), zone=zone.copy())
        if unit in _CLOCK_UNITS and kind == "TIMESTAMP WITH TIME ZONE":
            return call("_clock_truncated", exp.Literal.string(unit.lower()), operand, local)
        if zone is not None:
            return exp.AtTimeZone(this=exp.Paren(this=_truncated(unit, local, "TIMESTAMP")), zone=zone.copy())
        return _truncated(unit, operand, kind)

    def _percentile(self, node: exp.WithinGroup) -> exp.Expr | None:
        """PostgreSQL's percentile_cont of exact numbers is double precision."""
        ordered = node.find(exp.Ordered)
        kind = "" if ordered is None else self._type(ordered.this)
        if kind and not (kind in (*_INTEGERS, *_FLOATS, "INTERVAL", '"NULL"') or _DECIMAL.match(kind)):
            raise SqlError(
                sqlstates.UNDEFINED_FUNCTION,
                f"function percentile_cont(double precision, {pg_name(kind)}) does not exist",
                hint=NO_FUNCTION,
            )
        if ordered is not None and (_DECIMAL.match(kind) or kind == "FLOAT"):
            ordered.set("this", exp.cast(ordered.this.copy(), "DOUBLE", dialect="duckdb"))
            return node
        return None

    def _joined(self, node: exp.Expr) -> exp.Expr | None:
        operands = [node.left, node.right] if isinstance(node, exp.DPipe) else node.expressions
        if isinstance(node, exp.DPipe):
            kinds = [self._type(part) for part in operands]
            arrays = operand_types.joined_arrays(operands, kinds)
            if arrays is not None:
                return arrays
            both = all(kind == "JSON" or _is_constant(part) for kind, part in zip(kinds, operands, strict=True))
            if both and "JSON" in kinds:
                return call("_json_joined", *(json_operators.document(part) for part in operands))
            if "BLOB" in kinds:
                return _joined_bytes(operands, kinds, node)
        changed = False
        for operand in operands:
            if isinstance(operand.unnest(), exp.DPipe | exp.Concat | exp.Literal | exp.Parameter | exp.Null):
                continue
            kind = self._type(operand)
            shown = text_of(operand, kind) if not isinstance(node, exp.DPipe) or not kind.endswith("]") else None
            if kind == "BOOLEAN" and not isinstance(node, exp.DPipe):
                shown = call("_bool_out", operand.copy())
            if shown is not None:
                operand.replace(shown)
                changed = True
        return node if changed else None

    def _quoted(self, node: exp.Anonymous) -> exp.Expr | None:
        """Quotes are put around the text that PostgreSQL makes of the value."""
        (value,) = node.expressions
        shown = text_of(value, self._type(value))
        if shown is not None:
            value.replace(shown)
        return None if shown is None else node

    def _doubled(self, node: exp.Expr) -> exp.Expr | None:
        """Functions of real are those of double precision."""
        if self._type(node.this) != "FLOAT":
            return None
        node.this.replace(exp.cast(node.this.copy(), "DOUBLE", dialect="duckdb"))
        return node

    def _epoch(self, node: exp.Anonymous) -> exp.Expr | None:
        """Of a date it is a whole number."""
        shown = node.parent
        if not (isinstance(shown, exp.Cast) and shown.to.is_type(exp.DType.DECIMAL)):
            return None
        if self._type(node.expressions[0]) != "DATE":
            return None
        shown.set("to", exp.DataType.build("DECIMAL(38, 0)", dialect="duckdb"))
        return node

    def _rounded(self, node: exp.Round | exp.Trunc) -> exp.Expr | None:
        """With as many digits as are asked for, also where the number has fewer."""
        digits, kind = _digits(node) or 0, self._type(node.this)
        found = _DECIMAL.match(kind)
        width, scale = (int(found[1]), int(found[2])) if found else (_INTEGER_DIGITS, 0)
        if (not found and kind not in _INTEGERS) or (found and digits <= scale):
            return None
        if digits + width - scale > _NUMERIC_DIGITS_MAX:
            return None
        return exp.Cast(  # exp.cast takes a cast to any DECIMAL for this one
            this=node.this.copy(),
            to=exp.DataType.build(f"DECIMAL({width - scale + digits}, {digits})", dialect="duckdb"),
        )

    def _row_test(self, node: exp.Is) -> exp.Expr | None:
        """A row IS NULL where all of its columns are, and IS NOT NULL where none is."""
        if not self._type(node.this).startswith("STRUCT("):
            return None
        around = node.parent
        document = call("to_json", node.this.copy())
        if node.args.get("negate"):
            return call("_row_complete", document)
        if isinstance(around, exp.Not):
            around.replace(call("_row_complete", document))
            return node
        return call("_row_empty", document)

    def _to_char(self, value: exp.Expr, pattern: str) -> exp.Expr:
        refuse_repeating(value)  # each part of a pattern has a copy of it
        kind = self._type(value)
        if not draws(value):
            return self._as_pattern(value, kind, pattern)
        return bound_once(value, "_drawn", lambda drawn: self._as_pattern(drawn, kind, pattern))

    def _as_pattern(self, value: exp.Expr, kind: str, pattern: str) -> exp.Expr:
        if kind == "TIME":
            return to_char.interval_text(call("_time_interval", value.copy()), pattern)
        if kind == "INTERVAL":
            return to_char.interval_text(value, pattern)
        if kind in _FLOATS:
            return to_char.number_text(value, pattern, exact=False)
        if kind in _INTEGERS or _DECIMAL.match(kind):
            return to_char.number_text(value, pattern)
        if kind not in _TIMES and to_char.is_number_pattern(pattern):
            return to_char.number_text(value, pattern)
        zoned = kind == "TIMESTAMP WITH TIME ZONE"
        shown = to_char.time_text(value, pattern, zoned=zoned, zone=self._time_zone)
        if kind not in _TIMES:
            return shown
        return exp.Paren(this=exp.Case(ifs=[exp.If(this=call("isfinite", value.copy()), true=shown)]))

    def _contains(self, whole: exp.Expr, part: exp.Expr) -> exp.Expr:
        kinds = {self._type(whole), self._type(part)}
        if "JSON" in kinds:
            return json_operators.contains(whole, part)
        arrays = [array_literal(side) or side.copy() for side in (whole, part)]
        return call("_array_contains", *arrays)


_CLOCK_UNITS = frozenset(
    f"{unit}{plural}" for unit in ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND") for plural in ("", "S")
)
"""Whose beginnings are on the same side of a change of the clocks: the hour that comes twice is no other one."""
_NUMERIC_DIGITS_MAX = 38
_INTEGER_DIGITS = 19


def _digits(node: exp.Round | exp.Trunc) -> int | None:
    """The constant number of digits."""
    decimals = node.args.get("decimals")
    bare = decimals.unnest() if isinstance(decimals, exp.Expr) else None
    return int(bare.name) if isinstance(bare, exp.Literal) and bare.name.isdigit() else None


def _joined_bytes(operands: Sequence[exp.Expr], kinds: Sequence[str], node: exp.Expr) -> exp.Expr | None:
    """``bytea || bytea``, where a constant is read as one; beside a text the bytes are shown as one."""
    changed = False
    for operand, kind, other in zip(operands, kinds, reversed(kinds), strict=True):
        constant = operand.unnest()
        if kind != "BLOB" and isinstance(constant, exp.Literal) and constant.is_string:
            operand.replace(call("_bytea_in", constant.copy()))
            changed = True
        elif kind == "BLOB" and other == "VARCHAR" and not _is_constant(operands[0 if operand is operands[1] else 1]):
            operand.replace(call("_bytea_out", operand.copy()))
            changed = True
    return node if changed else None


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.Literal | exp.Parameter | exp.Null)


def _first_year(operand: exp.Expr, years: int, first: int) -> exp.Expr:
    """The beginning of so many years, where those from ``first`` on are the ones after Christ."""
    return call("_trunc_years", operand, exp.Literal.number(years), exp.Literal.number(first))


def _truncated(unit: str, operand: exp.Expr, kind: str) -> exp.Expr:
    if kind == "INTERVAL" and unit in ("WEEK", "WEEKS"):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            'unit "week" not supported for type interval',
            detail="Months usually have fractional weeks.",
        )
    found: exp.Expr
    if unit in ("CENTURY", "MILLENNIUM"):
        years = 100 if unit == "CENTURY" else 1000
        if kind == "INTERVAL":
            return call("_trunc_interval_years", operand, exp.Literal.number(years))
        found = _first_year(operand, years, 1)
    elif unit.startswith("DECADE") and kind != "INTERVAL":
        found = _first_year(operand, 10, 0)
    else:
        found = call("date_trunc", exp.Literal.string(unit.lower()), operand)
    if kind in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"):
        return exp.cast(found, kind, dialect="duckdb")
    return found
