"""Texts that differ only in the values of their comparisons, or in the place of AS OF: one plan serves them all.

Clients that write values into the text (psql, the simple protocol, drivers that do not prepare) never send the same
look-up twice. ``template_of`` finds, without parsing, the constants that stand after a comparison and puts parameters
in their places; whether that may be, and means the same, is judged once by the tree and the plan (``stands_for``).
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

_INT4_MAX, _INT8_MAX = 2**31 - 1, 2**63 - 1
_UNDECLARED = 0  # a quoted constant is of the type that it is compared with
_CHARACTERS = frozenset({oids.TEXT, oids.VARCHAR})

# Where a constant may be read in another way than as one value, the text is left as it is: parameters of its own,
# comments, escapes.
_UNSURE = re.compile(r"[$\\]|--|/\*")
_PIECES = re.compile(
    r"""(?P<before>(?:[=<>]|\bBETWEEN\b|\bAND\b|\bAS\s+OF\b)\s*)
        (?:(?P<number>(?:(?<=\s)-)?[0-9]{1,19}(?![\w.]))|(?P<text>'(?:[^']|'')*'))
      | "[^"]*" | '(?:[^']|'')*'""",
    re.IGNORECASE | re.VERBOSE,
)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)


@dataclass(frozen=True, slots=True)
class Template:
    """``text`` with ``$1`` ... for ``values``, which are of the types ``oids``."""

    text: str
    oids: tuple[int, ...]
    values: tuple[int | str, ...]


def template_of(text: str) -> Template | None:
    """None where there is nothing to replace."""
    if len(text) > limits.TEMPLATE_CHARACTERS_MAX or _UNSURE.search(text):
        return None
    values: list[int | str] = []
    types: list[int] = []

    def replaced(found: re.Match[str]) -> str:
        number, quoted = found["number"], found["text"]
        if number is not None:
            value = int(number)
            if abs(value) > _INT8_MAX:
                return found[0]  # numeric
            values.append(value)
            types.append(oids.INT4 if abs(value) <= _INT4_MAX else oids.INT8)
        elif quoted is not None:
            values.append(quoted[1:-1].replace("''", "'"))
            types.append(_UNDECLARED)
        else:
            return found[0]
        return f"{found['before']}${len(values)}"

    made = _PIECES.sub(replaced, text)
    return Template(made, tuple(types), tuple(values)) if values else None


def can_stand(template: Template, tree: exp.Expr) -> bool:
    """Whether each parameter of the template's ``tree`` is compared with a column, in conditions of the whole, or is
    the place of AS OF."""
    found = list(tree.find_all(exp.Parameter))
    places = [table for table in tree.find_all(exp.Table) if isinstance(table.meta.get(AS_OF), int)]
    compared = all(_is_condition(node, tree) for node in found)
    return len(found) + len(places) == len(template.values) and compared


def _is_condition(parameter: exp.Parameter, tree: exp.Expr) -> bool:
    term = parameter.parent
    if not isinstance(term, _COMPARISONS):
        return False
    column = term.this if term.this is not parameter else term.args.get("expression")
    node = term.parent
    while isinstance(node, exp.And | exp.Paren):
        node = node.parent
    return isinstance(column, exp.Column) and isinstance(node, exp.Where) and node.parent is tree


def stands_for(template: Template, plan: PullPlan, exact: PullPlan) -> bool:
    """Whether ``plan``, of the template, answers what ``exact`` does, of one of its texts, in the same columns."""
    return (
        exact.kind in (classify.POINT, classify.RANGE)
        and (plan.kind, plan.fields, plan.view_ids) == (exact.kind, exact.fields, exact.view_ids)
        and _same_types(template.oids, plan.parameter_oids)
        and not (plan.sets or plan.streams or plan.reads_system or plan.live_relations)
    )


def _same_types(written: Sequence[int], bound: Sequence[int]) -> bool:
    return len(written) == len(bound) and all(
        oid in _CHARACTERS if constant == _UNDECLARED else oid == constant
        for constant, oid in zip(written, bound, strict=True)
    )
