"""Texts that differ only in the values of their comparisons, or in the place of AS OF: one plan serves them all.

Clients that write values into the text (psql, the simple protocol, drivers that do not prepare) never send the same
look-up twice. ``template_of`` finds, without parsing, the constants that stand after a comparison and puts parameters
in their places. The constants of an ``IN`` become one array, so that lists of any length share a plan. Whether that may
be, and means the same, is judged once by the tree and the plan (``stands_for``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from mvserver import limits
from mvserver.serving.api import PullPlan
from mvserver.serving.fast import classify
from mvserver.sql.pull_parser import AS_OF
from mvserver.types import oids

Constant = int | str | tuple[int, ...] | tuple[str, ...]

_INT4_MAX, _INT8_MAX = 2**31 - 1, 2**63 - 1
_UNDECLARED = 0  # a quoted constant is of the type that it is compared with
_CHARACTERS = frozenset({oids.TEXT, oids.VARCHAR})
_CHARACTER_ARRAYS = frozenset(map(oids.ARRAY_OF.__getitem__, _CHARACTERS))

# Where a constant may be read in another way than as one value, the text is left as it is: parameters of its own,
# comments, escapes.
_UNSURE = re.compile(r"[$\\]|--|/\*")
_NUMBER, _TEXT = r"-?[0-9]{1,19}", "'(?:[^']|'')*'"
_PIECES = re.compile(
    rf"""\bIN\s*\(\s*(?:(?P<numbers>{_NUMBER}(?:\s*,\s*{_NUMBER})*)|(?P<texts>{_TEXT}(?:\s*,\s*{_TEXT})*))\s*\)
      | (?P<before>(?:[=<>]|\bBETWEEN\b|\bAND\b|\bAS\s+OF\b)\s*)
        (?:(?P<number>(?:(?<=\s)-)?[0-9]{{1,19}}(?![\w.]))|(?P<text>{_TEXT}))
      | "[^"]*" | {_TEXT}""",
    re.IGNORECASE | re.VERBOSE,
)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)


@dataclass(frozen=True, slots=True)
class Template:
    """``text`` with ``$1`` ... for ``values``, which are of the types ``oids``."""

    text: str
    oids: tuple[int, ...]
    values: tuple[Constant, ...]


def template_of(text: str) -> Template | None:
    """None where there is nothing to replace."""
    if len(text) > limits.TEMPLATE_CHARACTERS_MAX or _UNSURE.search(text):
        return None
    values: list[Constant] = []
    types: list[int] = []

    def parameter(value: Constant, type_: int) -> str:
        values.append(value)
        types.append(type_)
        return f"${len(values)}"

    def replaced(found: re.Match[str]) -> str:
        if found["texts"] is not None:
            texts = tuple(map(_unquoted, re.findall(_TEXT, found["texts"])))
            return f"= ANY ({parameter(texts, _UNDECLARED)})"
        written = found["numbers"] or found["number"]
        if written is not None:
            numbers = tuple(map(int, written.split(",")))
            type_ = _type_of(numbers)
            if type_ is None:
                return found[0]  # numeric
            if found["numbers"] is not None:
                return f"= ANY ({parameter(numbers, oids.ARRAY_OF[type_])})"
            return f"{found['before']}{parameter(numbers[0], type_)}"
        if found["text"] is not None:
            return f"{found['before']}{parameter(_unquoted(found['text']), _UNDECLARED)}"
        return found[0]

    made = _PIECES.sub(replaced, text)
    return Template(made, tuple(types), tuple(values)) if values else None


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _type_of(numbers: Sequence[int]) -> int | None:
    """Of the widest one, as PostgreSQL finds one type for a list; None for those that are numeric."""
    most = max(map(abs, numbers))
    if most > _INT8_MAX:
        return None
    return oids.INT4 if most <= _INT4_MAX else oids.INT8


def can_stand(template: Template, tree: exp.Expr) -> bool:
    """Whether each parameter of the template's ``tree`` is compared with a column, in conditions of the whole, or is
    the place of AS OF."""
    found = list(tree.find_all(exp.Parameter))
    places = [table for table in tree.find_all(exp.Table) if isinstance(table.meta.get(AS_OF), int)]
    compared = all(_is_condition(node, tree) for node in found)
    return len(found) + len(places) == len(template.values) and compared


def _is_condition(parameter: exp.Parameter, tree: exp.Expr) -> bool:
    array = parameter.find_ancestor(exp.Any, exp.Select)
    operand = array if isinstance(array, exp.Any) else parameter
    term = operand.parent
    if not isinstance(term, _COMPARISONS if operand is parameter else exp.EQ):
        return False
    column = term.this if term.this is not operand else term.args.get("expression")
    node = term.parent
    while isinstance(node, exp.And | exp.Paren):
        node = node.parent
    return isinstance(column, exp.Column) and isinstance(node, exp.Where) and node.parent is tree


def stands_for(template: Template, plan: PullPlan, exact: PullPlan) -> bool:
    """Whether ``plan``, of the template, answers what ``exact`` does, of one of its texts, in the same columns."""
    return (
        exact.kind in (classify.POINT, classify.RANGE)
        and (plan.kind, plan.fields, plan.view_ids) == (exact.kind, exact.fields, exact.view_ids)
        and _same_types(template, plan.parameter_oids)
        and not (plan.sets or plan.streams or plan.reads_system or plan.live_relations)
    )


def _same_types(template: Template, bound: Sequence[int]) -> bool:
    return len(template.oids) == len(bound) and all(
        oid in (_CHARACTER_ARRAYS if isinstance(value, tuple) else _CHARACTERS)
        if written == _UNDECLARED
        else oid == written
        for written, value, oid in zip(template.oids, template.values, bound, strict=True)
    )
