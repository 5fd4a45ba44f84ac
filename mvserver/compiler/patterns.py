"""LIKE, ILIKE, SIMILAR TO and regular expressions: patterns brought into the form that their lowering expects.

Constant LIKE patterns are rewritten once, with the backslash as the only escape and only where it is needed, which is
the form Spark accepts. SIMILAR TO becomes a regular expression of RE2; its pattern must be a constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mvserver import sqlstates
from mvserver.compiler.capabilities.lookup import call_operator
from mvserver.compiler.capabilities.refused import needs_constant
from mvserver.compiler.coercion import coerce
from mvserver.compiler.expressions import Call, Expression, Literal, walk
from mvserver.compiler.plans import ContinuousPlan, record_expressions
from mvserver.errors import SqlError
from mvserver.sql import types as t

_INVALID_ESCAPE_SEQUENCE = "22025"
_REGULAR = frozenset(
    {"~", "~*", "similar to", "regexp_like", "regexp_replace", "regexp_substr", "regexp_count", "regexp_instr"}
    | {"regexp_extract"}
)


def match(
    operator: str, subject: Expression, pattern: Expression, escape: str | None, position: int | None
) -> Expression:
    if escape is not None and len(escape) > 1:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            "invalid escape string",
            hint="Escape string must be empty or one character.",
            position=position,
        )
    constant = pattern.value if isinstance(pattern, Literal) else None
    sign = "\\" if escape is None else escape
    if operator in ("like", "ilike"):
        if isinstance(constant, str):
            pattern = Literal(t.VARCHAR, like_pattern(constant, sign, position))
        elif escape is not None:
            raise needs_constant("a pattern with ESCAPE", position)
    elif operator == "similar to":
        if isinstance(constant, str):
            pattern = Literal(t.VARCHAR, similar_pattern(constant, sign, position))
        elif not (isinstance(pattern, Literal) and constant is None):
            raise needs_constant("the pattern of SIMILAR TO", position)
    if isinstance(pattern, Literal) and (constant is None or isinstance(constant, str)):
        pattern = coerce(pattern, t.VARCHAR, position)
    return call_operator(operator, (subject, pattern), position)


def like_pattern(pattern: str, escape: str, position: int | None = None) -> str:
    """The same pattern with backslash as the escape, before %, _ and backslash only."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if escape and char == escape:
            at += 1
            if at == len(pattern):
                raise SqlError(
                    _INVALID_ESCAPE_SEQUENCE, "LIKE pattern must not end with escape character", position=position
                )
            char = pattern[at]
            out.append("\\" + char if char in "%_\\" else char)
        else:
            out.append("\\\\" if char == "\\" else char)
        at += 1
    return "".join(out)


def similar_pattern(pattern: str, escape: str, position: int | None = None) -> str:
    """SQL's SIMILAR TO as a regular expression of RE2, to be matched against the whole text."""
    out: list[str] = []
    at = 0
    in_class = False
    while at < len(pattern):
        char = pattern[at]
        if escape and char == escape:
            at += 1
            if at == len(pattern):
                raise SqlError(
                    _INVALID_ESCAPE_SEQUENCE, "pattern must not end with escape character", position=position
                )
            out.append(_quoted(pattern[at]))
        elif in_class and (named := _NAMED_CLASS.match(pattern, at)):
            out.append(named[0])
            at = named.end()
            continue
        elif in_class:
            in_class = char != "]"
            out.append("\\" + char if char in "\\[&" else char)
        elif char == "[":
            in_class = True
            out.append(char)
        elif char == "%":
            out.append(".*")
        elif char == "_":
            out.append(".")
        elif char in "|*+?{}()":
            out.append("(?:" if char == "(" else char)
        else:
            out.append(_quoted(char))
        at += 1
    return "(?s)^(?:" + "".join(out) + ")$"


def constant_patterns(plan: ContinuousPlan) -> Iterator[str]:
    """The constant regular expressions of a query, as the engine is given them."""
    for part in (node for expression in record_expressions(plan) for node in walk(expression)):
        if isinstance(part, Call) and part.definition is None and part.function.partition("(")[0] in _REGULAR:
            pattern = part.arguments[1]
            if isinstance(pattern, Literal) and isinstance(pattern.value, str):
                yield pattern.value if pattern.value.startswith("(?s)") else f"(?s){pattern.value}"


_NAMED_CLASS = re.compile(r"\[:[a-z]+:\]")


def _quoted(char: str) -> str:
    return "\\" + char if not char.isalnum() and ord(char) < 128 else char
