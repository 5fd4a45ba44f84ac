"""The parameters that stand where DuckDB, or a rewriting of the query, needs a constant.

Such a query is planned anew with each value (``PullPlan.constants``). To describe it, a sample stands for the value:
the types of the columns do not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp, parse_one

from mvserver import interrupts
from mvserver.dialect.parameters.calls import call_of
from mvserver.dialect.parameters.folding import FOLDED, folded
from mvserver.types import oids

_BY_ARGUMENT: dict[tuple[str, int], str] = {
    ("date_trunc", 0): "'day'", ("date_trunc", 2): "'UTC'", ("date_part", 0): "'day'", ("extract", 0): "'day'",
    ("to_char", 1): "'999'", ("to_date", 1): "'YYYY'", ("to_timestamp", 1): "'YYYY'", ("convert_from", 1): "'UTF8'",
    ("convert_to", 1): "'UTF8'", ("encode", 1): "'hex'", ("decode", 1): "'hex'", ("format", 0): "",
    ("regexp_match", 1): "'.'", ("regexp_replace", 1): "'.'", ("regexp_replace", 2): "''", ("regexp_replace", 3): "'g'",
    ("round", 1): "0", ("trunc", 1): "0", ("percentile_cont", 0): "0.5", ("percentile_disc", 0): "0.5",
    ("jsonb_set", 1): "'{a}'", ("set_config", 0): "'application_name'", ("set_config", 1): "''",
    ("set_config", 2): "true", ("substring", 1): "'.'", ("to_number", 1): "'9'", ("regexp_match", 2): "''",
    ("regexp_matches", 1): "'.'", ("regexp_matches", 2): "'g'", ("regexp_split_to_array", 2): "''",
    ("regexp_split_to_table", 2): "''", ("regexp_count", 3): "''", ("regexp_substr", 1): "'.'",
    ("regexp_substr", 4): "''", ("regexp_substr", 5): "0", ("regexp_instr", 5): "''", ("regexp_instr", 6): "0",
    ("regexp_like", 2): "''", ("timezone", 0): "'UTC'", ("make_timestamptz", 6): "'UTC'",
}  # fmt: skip
"""By function and place of the argument."""

_BY_OPERATOR: dict[type[exp.Expr], str] = {
    exp.SimilarTo: "''", exp.JSONBExtract: "'{a}'", exp.JSONBExtractScalar: "'{a}'",
    exp.JSONBContainsAnyTopKeys: "'{a}'", exp.JSONBContainsAllTopKeys: "'{a}'", exp.JSONBDeleteAtPath: "'{a}'",
}  # fmt: skip


def find(tree: exp.Expr, types: Sequence[int]) -> dict[int, str]:
    """By number a sample of the constant, as the text of a query has it. ``types`` are those of the parameters."""
    found: dict[int, str] = {}
    for node in interrupts.asking(tree.find_all(exp.Parameter)):
        if node.name.isdigit() and int(node.name) not in found:
            sample = _sample(node, types)
            if sample is not None:
                found[int(node.name)] = sample
    return found


def settle(tree: exp.Expr) -> None:
    """Expressions of constants become one where a constant is needed. NULL there makes the whole call NULL, of the type
    that it has with another constant."""
    for node in interrupts.asking(list(tree.walk())):
        for place, sample in _places(node):
            constant = folded(place)
            if isinstance(constant, exp.Null) or _has_null(place):
                _make_null(node, place, sample)
            elif constant is not None and constant is not place:
                place.replace(_unit(constant) if _is_unit(node, place) else constant.copy())


def _has_null(place: exp.Expr) -> bool:
    """Of a path: one with a step that is NULL leads nowhere."""
    bare = place.unnest()
    return isinstance(bare, exp.Array) and any(isinstance(item, exp.Null) for item in bare.expressions)


def _places(node: exp.Expr) -> list[tuple[exp.Expr, str]]:
    """The arguments of the node that must be constants, with samples of them."""
    if type(node) in _BY_OPERATOR:
        return [(node.args["expression"], _BY_OPERATOR[type(node)])]
    name, arguments = call_of(node) or ("", [])
    if name == "set_config":
        return []
    return [(each, _BY_ARGUMENT[name, at]) for at, each in enumerate(arguments) if (name, at) in _BY_ARGUMENT]


def _make_null(call: exp.Expr, place: exp.Expr, sample: str) -> None:
    place.replace(exp.var("DAY") if _is_unit(call, place) else parse_one(sample or "''", read="postgres"))
    whole = call.parent if isinstance(call.parent, exp.WithinGroup) else call
    whole.replace(exp.Case(ifs=[exp.If(this=exp.false(), true=whole.copy())]))


def _is_unit(call: exp.Expr, place: exp.Expr) -> bool:
    return isinstance(call, exp.TimestampTrunc | exp.Extract) and place.arg_key != "zone"


def _unit(constant: exp.Expr) -> exp.Expr:
    return exp.var(constant.name.upper())


def _place(node: exp.Expr) -> exp.Expr:
    """What stands at the place: the node with the brackets and what is computed of it."""
    while isinstance(node.parent, (*FOLDED, exp.Array)):
        node = node.parent
    return node


def _sample(parameter: exp.Parameter, types: Sequence[int]) -> str | None:
    place, number = _place(parameter), int(parameter.name)
    oid = types[number - 1] if number <= len(types) else 0
    if isinstance(place.parent, exp.ArrayContainsAll | exp.ArrayContainedBy):
        return "'{}'" if oid in (oids.JSONB, oids.JSON) else None
    if _names_an_object(place, oid):
        return "NULL"
    if isinstance(place.parent, exp.Limit | exp.Offset):
        return "1" if _is_correlated(place.parent) else None
    if isinstance(place.parent, exp.Substring) and oid != oids.TEXT:
        return None  # a place in the text, and no pattern
    return _sample_at(place)


def _names_an_object(place: exp.Expr, oid: int) -> bool:
    """Whether it is the name of an object of the catalog, or of a privilege: these are looked up by planning."""
    call = call_of(place.parent) if place.parent is not None else None
    if call is None or oid != oids.TEXT:
        return False
    return call[0] == "pg_get_viewdef" or (call[0].startswith("has_") and call[0].endswith("_privilege"))


def _sample_at(place: exp.Expr) -> str | None:
    parent = place.parent
    if parent is None:
        return None
    if type(parent) in _BY_OPERATOR:
        return _BY_OPERATOR[type(parent)] if place is parent.args.get("expression") else None
    name, arguments = call_of(parent) or ("", [])
    for at, argument in enumerate(arguments):
        if argument is place and (name, at) in _BY_ARGUMENT:
            return _format_sample(len(arguments)) if name == "format" else _BY_ARGUMENT[name, at]
    return None


def _format_sample(arguments: int) -> str:
    return "'" + "%s" * (arguments - 1) + "'"


def _is_correlated(clause: exp.Expr) -> bool:
    """Whether it may be evaluated for each row of a query around it: its query is LATERAL, or no relation of FROM."""
    node = clause.parent
    while node is not None and node.parent is not None:
        outer = node.parent
        if isinstance(outer, exp.Lateral):
            return True
        if isinstance(node, exp.Query) and not isinstance(
            outer, exp.SetOperation | exp.Subquery | exp.From | exp.Join | exp.CTE | exp.Paren
        ):
            return True
        node = outer
    return False
