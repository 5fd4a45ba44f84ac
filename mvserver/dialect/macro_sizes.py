"""The size of a macro's call: DuckDB puts a macro's arguments into its text wherever they are named.

A macro that names its argument three times makes three of it, and nested in itself to the tenth level 59,049; DuckDB
binds them all, without a look for an interrupt. So it is counted beforehand, from the macros' texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from mvserver.pgcatalog.macros import STATEMENTS
from mvserver.sql.lexer import END, IDENTIFIER, OPERATOR, WORD, Token, tokenize

_MACRO = re.compile(r"CREATE OR REPLACE MACRO \{system\}\.fn\.(\w+)(?=\()")
_NOT_IN_LAMBDAS = frozenset({
    "select", "sum", "avg", "count", "min", "max", "list", "array_agg", "string_agg", "bool_and", "bool_or", "first",
})  # fmt: skip

LAMBDA_TIMES = 2  # DuckDB binds what a lambda computes twice
QUERY_SIZE = 1_000  # what DuckDB needs for a query inside, as tokens
QUERY_TIMES = 8  # and for a query that depends on another, so many times more

OF_DUCKDB: dict[str, tuple[int, ...]] = {
    "nullif": (2, 1),
    "split_part": (2, 2, 2),
    "fmod": (2, 2),
    "array_to_string": (2, 1),
    "array_pop_back": (2,),
    "weighted_avg": (1, 2),
}
"""DuckDB's own macros: how often each argument is named."""


@dataclass(frozen=True)
class Macro:
    """``size`` of its text without arguments, in tokens, and ``times`` that each argument stands in it, all with the
    macros that it calls. One with a ``query`` or an aggregate inside cannot stand in a lambda; one that ``captures``
    has arguments in lambdas of its own, which cannot be queries."""

    size: int
    times: tuple[int, ...]
    query: bool
    captures: bool = False


@cache
def macros() -> dict[str, Macro]:
    """By name; of one with several signatures the largest."""
    texts = {}
    for statement in STATEMENTS:
        found = _MACRO.match(statement)
        if found is not None and " AS TABLE " not in statement:
            texts[found.group(1)] = statement[found.end() :].replace("{system}", "s")
    made = {name: Macro(10, times, query=False) for name, times in OF_DUCKDB.items()}
    made["format_type"] = Macro(2 * QUERY_SIZE, (3, 1), query=True)

    def macro(name: str) -> Macro | None:
        if name not in made and name in texts:
            made[name] = Macro(1, (), query=False)  # one that calls itself would be an error of its text
            made[name] = _read(tokenize(texts[name]), macro)
        return made.get(name)

    for name in texts:
        macro(name)
    return made


def _read(tokens: Sequence[Token], macro: Callable[[str], Macro | None]) -> Macro:
    """``(a, b) AS body, (a, b, c) AS body``."""
    size, query, captures, at, repeated = 0, False, False, 0, _operands_of_cases(tokens)
    times: tuple[int, ...] = ()
    while tokens[at].kind is not END:
        names: list[str] = []
        at += 1
        while tokens[at].text != ")":
            if tokens[at].kind in (WORD, IDENTIFIER):
                names.append(tokens[at].text)
            at += 1
        at += 2  # the bracket and AS
        captures = captures or _captures(tokens, at, names, macro)
        own_size, own_times, own_query, at = _body(tokens, at, names, macro, repeated)
        size, query = max(size, own_size), query or own_query
        times = tuple(max(pair) for pair in zip((*times, *[0] * 9), (*own_times, *[0] * 9), strict=False))[:9]
    return Macro(size, times, query, captures)


def _captures(tokens: Sequence[Token], at: int, names: Sequence[str], macro: Callable[[str], Macro | None]) -> bool:
    """Whether an argument stands in a lambda, of the macro or of one that it calls."""
    inside = [False]
    while tokens[at].kind is not END and not (tokens[at].text == "," and len(inside) == 1):
        text = tokens[at].text
        if text in "([{":
            called = macro(tokens[at - 1].text) if text == "(" and tokens[at - 1].kind is WORD else None
            inside.append(inside[-1] or (called is not None and called.captures))
        elif text in ")]}":
            inside.pop()
        elif text == "lambda":
            inside[-1] = True
        elif text in names and inside[-1] and tokens[at - 1].text != ".":
            return True
        at += 1
    return False


def _body(
    tokens: Sequence[Token],
    at: int,
    names: Sequence[str],
    macro: Callable[[str], Macro | None],
    repeated: Sequence[int],
) -> tuple[int, tuple[int, ...], bool, int]:
    """Its size, how often it has each argument, whether there is a query in it, and where it ends."""
    size, times, query = 0, dict.fromkeys(names, 0), False
    open_: list[tuple[Macro | None, list[int]]] = []  # calls around a token, with the number of the argument
    weight = [1]
    while tokens[at].kind is not END:
        token = tokens[at]
        if token.kind is OPERATOR:
            if token.text in "([{":
                before = tokens[at - 1]
                called = macro(before.text) if token.text == "(" and before.kind is WORD else None
                size += weight[-1] * (called.size if called is not None else 0)
                query = query or (called is not None and called.query)
                open_.append((called, [0]))
                weight.append(weight[-1] * _times(called, 0))
            elif token.text in ")]}":
                open_.pop()
                weight.pop()
            elif token.text == "," and not open_:
                return size, tuple(times.values()), query, at + 1
            elif token.text == ",":
                called, number = open_[-1]
                number[0] += 1
                weight[-1] = weight[-2] * _times(called, number[0])
        elif token.kind in (WORD, IDENTIFIER):
            if token.text in times and tokens[at - 1].text != "." and tokens[at + 1].text not in (":=", "("):
                times[token.text] += weight[-1] * repeated[at]
            query = query or token.text in _NOT_IN_LAMBDAS
            weight[-1] *= LAMBDA_TIMES if token.text == "lambda" else 1  # up to the next comma or bracket of its level
            size += weight[-1] * QUERY_SIZE * (token.text == "select")
        size += weight[-1]
        at += 1
    return size, tuple(times.values()), query, at


def _operands_of_cases(tokens: Sequence[Token]) -> list[int]:
    """For each token how often it is meant: DuckDB makes ``CASE x WHEN 1 .. WHEN 2 ..`` a comparison for each WHEN."""
    repeated = [1] * len(tokens)
    open_: list[list[int]] = []  # where the operand begins, each WHEN
    for at, token in enumerate(tokens):
        if token.kind is not WORD:
            continue
        if token.text == "case":
            open_.append([at + 1])
        elif token.text == "when" and open_:
            open_[-1].append(at)
        elif token.text == "end" and open_:
            begin, first, *others = open_.pop()
            for operand in range(begin, first):
                repeated[operand] *= 1 + len(others)
    return repeated


def _times(called: Macro | None, number: int) -> int:
    return called.times[number] if called is not None and number < len(called.times) else 1
