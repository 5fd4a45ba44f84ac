"""LIKE and its relatives, and regular expressions (RE2's), in engines whose time grows with the text only."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mvserver import sqlstates
from mvserver.compiler.capabilities import bounded
from mvserver.compiler.capabilities.build import INTEGER, TEXT, TEXT_CONSTANT, capability, example, fails, on
from mvserver.compiler.capabilities.model import Capability, Lowered, as_expression
from mvserver.compiler.capabilities.spark_text import string
from mvserver.compiler.lengths import grown_length
from mvserver.errors import SqlError
from mvserver.limits import GROWN_TEXT_CHARACTERS_MAX
from mvserver.sql import types as t
from mvserver.sql.types import SqlType

_NOTE = (
    "regular expressions are RE2's, without look-around and back-references: of several alternatives the first that "
    "matches is taken, not the longest; \\m, \\M and \\y are not known; a dot matches a line end too"
)


_BACKTRACKING = re.compile(r"\(\?(?:[=!>]|<[=!])|\\[1-9]")
_PLAIN_LIKE = re.compile(r"%?[^%_\\]*%?")


def _like(a: Sequence[Lowered], result: SqlType) -> str:
    """Spark's own for what it makes a search for a text; it would go through any other pattern by backtracking."""
    if isinstance(a[1].constant(), str) and _PLAIN_LIKE.fullmatch(str(a[1].constant())):
        return f"({a[0]} LIKE {a[1]})"
    return f"{bounded.LIKE}({a[0]}, {a[1]})"


def _ilike(a: Sequence[Lowered], result: SqlType) -> str:
    if isinstance(a[1].constant(), str) and _PLAIN_LIKE.fullmatch(str(a[1].constant())):
        return f"({a[0]} ILIKE {a[1]})"
    return f"{bounded.LIKE}(lower({a[0]}), lower({a[1]}))"


def _flagged(pattern: Lowered, flags: str) -> str:
    """The pattern with inline flags; a dot matches line ends, as in PostgreSQL."""
    constant = pattern.constant()
    if isinstance(constant, str):
        _refuse_backtracking(constant)
        return string(f"(?{flags}){constant}")
    return f"concat('(?{flags})', {pattern})"


def _refuse_backtracking(pattern: str) -> None:
    found = _BACKTRACKING.search(re.sub(r"\\\\|\[\^?\]?(\\.|[^\]\\])*\]", "", pattern))
    if found is not None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'regular expressions with "{found.group()}" are not supported',
            detail="Look-around and back-references could take time without bound.",
            hint="Write the condition as several patterns, joined by AND, OR and NOT.",
        )


def _flags(argument: Lowered) -> tuple[str, bool]:
    """The inline flags and whether all matches are meant."""
    given = argument.constant()
    flags, everywhere = "s", False
    for flag in str(given or ""):
        if flag == "g":
            everywhere = True
        elif flag == "i":
            flags += "i"
        elif flag not in "cs":
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'regular expression option "{flag}" is not supported',
                hint="The options are g, i, c and s.",
            )
    return flags, everywhere


def _matches(flags: str) -> Callable[[Sequence[Lowered], SqlType], str]:
    return lambda a, _: f"{bounded.MATCHES}({a[0]}, {_flagged(a[1], flags)})"


def _matches_flagged(a: Sequence[Lowered], result: SqlType) -> str:
    return f"{bounded.MATCHES}({a[0]}, {_flagged(a[1], _flags(a[2])[0])})"


def _replace(a: Sequence[Lowered], result: SqlType) -> str:
    flags, everywhere = _flags(a[3]) if len(a) == 4 else ("s", False)
    grown = grown_length("regexp_replace", [as_expression(each) for each in a], [each.length for each in a])
    most = GROWN_TEXT_CHARACTERS_MAX if grown is None or not grown.is_short else None
    return bounded.replace_matches(a[0], _flagged(a[1], flags), str(a[2]), everywhere=everywhere, most=most)


def _similar(a: Sequence[Lowered], result: SqlType) -> str:
    return f"{bounded.MATCHES}({a[0]}, {a[1]})"


def _extract(a: Sequence[Lowered], result: SqlType) -> str:
    group = str(a[2]) if len(a) == 3 else "0"
    return f"{bounded.EXTRACT}({a[0]}, {_flagged(a[1], 's')}, {group})"


def _groups(function: str) -> Callable[[Sequence[Lowered], SqlType], str]:
    return lambda a, _: f"{function}({a[0]}, {_flagged(a[1], 's')}, {GROWN_TEXT_CHARACTERS_MAX})"


CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "like", "the whole text matches a pattern: % is any text, _ any character, backslash the escape",
        [on((TEXT, TEXT), t.BOOLEAN, _like)],
        [
            example("'abc' LIKE 'a%'", "true"), example("'abc' LIKE '_b'", "false"), example("'a%c' LIKE 'a\\%c'",
            "true"),
            example("'abc' NOT LIKE '%b%'", "false"), example("'a_c' LIKE 'a!_c' ESCAPE '!'", "true"),
            example("'abc' LIKE 'a\\bc'", "true"), example("NULL LIKE 'a'", None),
        ],
        operator=True,
    ),
    capability(
        "ilike", "as LIKE, without regard to case", [on((TEXT, TEXT), t.BOOLEAN, _ilike)],
        [example("'ABC' ILIKE 'a%'", "true"), example("'ABC' NOT ILIKE 'x%'", "true")], operator=True,
    ),
    capability(
        "similar to", "the whole text matches an SQL regular expression",
        [on((TEXT, TEXT_CONSTANT), t.BOOLEAN, _similar)],
        [
            example("'abc' SIMILAR TO '%(b|d)%'", "true"), example("'abc' SIMILAR TO '(b|c)%'", "false"),
            example("'a.c' SIMILAR TO 'a.c'", "true"), example("'abc' SIMILAR TO 'a.c'", "false"),
        ],
        operator=True, note="the pattern must be a constant",
    ),
    capability(
        "~", "a part of the text matches a regular expression", [on((TEXT, TEXT), t.BOOLEAN, _matches("s"))],
        [example("'thomas' ~ 't.*ma'", "true"), example("'thomas' ~ '^h'", "false"), example("'a' !~ 'b'", "true"),
            example("'ab1' ~ '^[[:alpha:]]+[0-9]$'", "true"), fails("'ab' ~ 'a(?!b)'", "0A000", postgres=False)],
        operator=True, note=_NOTE,
    ),
    capability(
        "~*", "as ~, without regard to case", [on((TEXT, TEXT), t.BOOLEAN, _matches("si"))],
        [example("'Thomas' ~* 'T.*MA'", "true"), example("'Thomas' !~* 'x'", "true")], operator=True, note=_NOTE,
    ),
    capability(
        "regexp_like", "a part of the text matches a regular expression",
        [
            on((TEXT, TEXT), t.BOOLEAN, _matches("s")),
            on((TEXT, TEXT, TEXT_CONSTANT), t.BOOLEAN, _matches_flagged),
        ],
        [example("regexp_like('Hello', 'l+')", "true"), example("regexp_like('Hello', 'h', 'i')", "true")],
        aliases=("regexp",), note=_NOTE,
    ),
    capability(
        "regexp_replace", "with the first match (all with the option g) of a regular expression replaced",
        [
            on((TEXT, TEXT, TEXT), t.VARCHAR, _replace),
            on((TEXT, TEXT, TEXT, TEXT_CONSTANT), t.VARCHAR, _replace),
        ],
        [
            example("regexp_replace('foobar', '(o+)b', '[\\1]')", "f[oo]ar"),
            example("regexp_replace('foobar', 'o', 'X')", "fXobar"),
            example("regexp_replace('foobarfoo', 'o+', 'X', 'g')", "fXbarfX"),
            example("regexp_replace('ab12', '([a-z]+)([0-9]+)', '\\2\\1', 'g')", "12ab"),
            example("regexp_replace('aBc', 'b', '$', 'gi')", "a$c"),
            example("regexp_replace('abc', 'b', '<\\&\\0>')", "a<b\\0>c"),
        ],
        note=_NOTE,
    ),
    capability(
        "regexp_substr", "the first part that matches a regular expression, NULL when none does",
        [on((TEXT, TEXT), t.VARCHAR, _extract)],
        [example("regexp_substr('abc123', '[0-9]+')", "123"), example("regexp_substr('abc', '[0-9]+')", None)],
        note=_NOTE,
    ),
    capability(
        "regexp_match", "the groups of the first match, or the whole of it without groups; NULL when none is",
        [on((TEXT, TEXT), t.array(t.VARCHAR), _groups(bounded.GROUPS))],
        [
            example("array_to_string(regexp_match('foo123', '([a-z]+)([0-9]+)'), ' ')", "foo 123"),
            example("array_to_string(regexp_match('foobar', 'o+'), ' ')", "oo"),
            example("regexp_match('foo', '[0-9]') IS NULL", "true"),
            example("array_to_string(regexp_match('b', '(a)?(b)'), ' ', '-')", "- b"),
        ],
        note=_NOTE,
    ),
    capability(
        "regexp_groups", "an array of the same of each match, empty when none is",
        [on((TEXT, TEXT), t.array(t.array(t.VARCHAR)), _groups(bounded.ALL_GROUPS))],
        [
            example("((regexp_groups('a1b2', '([a-z])([0-9])'))[2])[1]", "b", postgres=False),
            example("cardinality(regexp_groups('Jose Jo', 'Jo'))", "2", postgres=False),
            example("cardinality(regexp_groups('Kathleen', 'Jo'))", "0", postgres=False),
        ],
        note=_NOTE,
    ),
    capability(
        "regexp_count", "how many times a regular expression matches",
        [on((TEXT, TEXT), t.INTEGER, lambda a, _: f"{bounded.COUNT}({a[0]}, {_flagged(a[1], 's')})")],
        [example("regexp_count('abab', 'ab')", "2"), example("regexp_count('x', 'y')", "0")],
        note=_NOTE,
    ),
    capability(
        "regexp_instr", "where the first match of a regular expression begins, 0 when none does",
        [on((TEXT, TEXT), t.INTEGER, lambda a, _: f"{bounded.POSITION}({a[0]}, {_flagged(a[1], 's')})")],
        [example("regexp_instr('xab', 'ab')", "2"), example("regexp_instr('x', 'ab')", "0")],
        note=_NOTE,
    ),
    capability(
        "regexp_extract", "what the whole regular expression, or its n-th group, matches first; NULL when it does not",
        [
            on((TEXT, TEXT), t.VARCHAR, _extract),
            on((TEXT, TEXT, INTEGER), t.VARCHAR, _extract),
        ],
        [
            example("regexp_extract('foo123', '([a-z]+)([0-9]+)', 2)", "123", postgres=False),
            example("regexp_extract('foo123', '[0-9]+')", "123", postgres=False),
            example("regexp_extract('foo', '[0-9]+')", None, postgres=False),
        ],
        note=_NOTE,
    ),
)  # fmt: skip
