"""The parameters that stand where DuckDB, or a rewriting of the query, needs a constant.

Such a query is planned anew with each value (``PullPlan.constants``). To describe it, a sample stands for the value:
the types of the columns do not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp, parse_one

from mvserver import interrupts
from mvserver.dialect.parameters.calls import call_of
from mvserver.types import oids

_BY_ARGUMENT: dict[tuple[str, int], str] = {
    ("date_trunc", 0): "'day'", ("date_trunc", 2): "'UTC'", ("date_part", 0): "'day'", ("extract", 0): "'day'",
    ("to_char", 1): "'999'", ("to_date", 1): "'YYYY'", ("to_timestamp", 1): "'YYYY'", ("convert_from", 1): "'UTF8'",
    ("convert_to", 1): "'UTF8'", ("encode", 1): "'hex'", ("decode", 1): "'hex'", ("format", 0): "",
    ("regexp_match", 1): "'.'", ("regexp_replace", 1): "'.'", ("regexp_replace", 2): "''", ("regexp_replace", 3): "'g'",
    ("round", 1): "0", ("trunc", 1): "0", ("percentile_cont", 0): "0.5", ("percentile_disc", 0): "0.5",
    ("jsonb_set", 1): "'{a}'", ("set_config", 0): "'application_name'", ("set_config", 1): "''",
    ("set_config", 2): "true", ("substring", 1): "'.'",
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


def replace_nulls(tree: exp.Expr) -> None:
    """NULL where a constant is needed makes the whole call NULL, of the type that it has with another constant."""
    for null in interrupts.asking(list(tree.find_all(exp.Null))):
        place = _place(null)
        sample, whole = _sample_at(place), place.parent
        if sample is None or whole is None or isinstance(whole, exp.Limit | exp.Offset):
            continue
        call = call_of(whole)
        if call is not None and call[0] == "set_config":
            continue
        if isinstance(whole.parent, exp.WithinGroup):
            whole = whole.parent
        is_unit = isinstance(place.parent, exp.TimestampTrunc | exp.Extract) and place.arg_key != "zone"
        place.replace(exp.var("DAY") if is_unit else parse_one(sample, read="postgres"))
        whole.replace(exp.Case(ifs=[exp.If(this=exp.false(), true=whole.copy())]))


def _place(node: exp.Expr) -> exp.Expr:
    """What stands at the place: the node with its brackets and casts, or the array that it is an item of."""
    while isinstance(node.parent, exp.Paren | exp.Cast | exp.Array):
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
