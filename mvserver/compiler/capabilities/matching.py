"""LIKE and its relatives, and regular expressions (Java's, in the subset where they mean what PostgreSQL's mean)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mvserver import sqlstates
from mvserver.compiler.capabilities.build import INTEGER, TEXT, TEXT_CONSTANT, capability, example, on
from mvserver.compiler.capabilities.model import Capability, Lowered
from mvserver.compiler.capabilities.refused import needs_constant
from mvserver.compiler.capabilities.spark_text import string
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.types import SqlType

_NOTE = (
    "regular expressions are Java's: of several alternatives the first that matches is taken, not the longest; classes "
    "like \\m, \\M, \\y and [[:alpha:]] are not known; a dot matches a line end too"
)


def _like(word: str) -> Callable[[Sequence[Lowered], SqlType], str]:
    def lower(a: Sequence[Lowered], result: SqlType) -> str:
        if a[1].literal is not None:
            return f"({a[0]} {word} {a[1]})"
        # Spark refuses an escape before an ordinary character; PostgreSQL takes the character itself.
        pattern = f"regexp_replace({a[1]}, {string(_ESCAPES)}, '$1$2')"
        return f"({a[0]} {word} {pattern})"

    return lower


_ESCAPES = r"(\\[%_\\])|\\(.)"


def _flagged(pattern: Lowered, flags: str) -> str:
    """The pattern with Java's inline flags; a dot matches line ends, as in PostgreSQL."""
    constant = pattern.constant()
    if isinstance(constant, str):
        return string(f"(?{flags}){constant}")
    return f"concat('(?{flags})', {pattern})"


def _flags(argument: Lowered) -> tuple[str, bool]:
    """Java's flags and whether all matches are meant."""
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
    return lambda a, _: f"({a[0]} RLIKE {_flagged(a[1], flags)})"


def _matches_flagged(a: Sequence[Lowered], result: SqlType) -> str:
    return f"({a[0]} RLIKE {_flagged(a[1], _flags(a[2])[0])})"


def _replacement(argument: Lowered) -> str:
    r"""PostgreSQL's \1 and \& as Java's $1 and $0; Java's own $ and \ are made plain."""
    constant = argument.constant()
    if not isinstance(constant, str):
        raise needs_constant("the replacement of regexp_replace")
    out: list[str] = []
    at = 0
    while at < len(constant):
        char = constant[at]
        after = constant[at + 1 : at + 2]
        if char == "\\" and after and (after.isdigit() or after in "&\\"):
            out.append("$0" if after == "&" else "\\\\" if after == "\\" else f"${after}")
            at += 2
            continue
        out.append("\\" + char if char in "$\\" else char)
        at += 1
    return string("".join(out))


def _replace(a: Sequence[Lowered], result: SqlType) -> str:
    flags, everywhere = _flags(a[3]) if len(a) == 4 else ("s", False)
    if a[1].literal is not None and a[1].constant() is None:
        return "CAST(NULL AS STRING)"
    replacement = _replacement(a[2])
    if everywhere:
        return f"regexp_replace({a[0]}, {_flagged(a[1], flags)}, {replacement})"
    # The first match only: a reluctant prefix anchored at the start, kept in front.
    constant = a[1].constant()
    if not isinstance(constant, str):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "the pattern of regexp_replace must be a constant unless all matches are replaced",
            hint="Add the option 'g'.",
        )
    if "$" in _raw(a[2]) or "\\" in _raw(a[2]):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "regexp_replace of the first match cannot refer to what was matched",
            hint="Add the option 'g', with a pattern that matches once.",
        )
    pattern = string(f"(?{flags})\\A(.*?)(?:{constant})")
    return f"regexp_replace({a[0]}, {pattern}, {string('$1' + _raw(a[2]))})"


def _raw(argument: Lowered) -> str:
    return str(argument.constant() or "")


CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "like", "the whole text matches a pattern: % is any text, _ any character, backslash the escape",
        [on((TEXT, TEXT), t.BOOLEAN, _like("LIKE"))],
        [
            example("'abc' LIKE 'a%'", "true"), example("'abc' LIKE '_b'", "false"), example("'a%c' LIKE 'a\\%c'",
            "true"),
            example("'abc' NOT LIKE '%b%'", "false"), example("'a_c' LIKE 'a!_c' ESCAPE '!'", "true"),
            example("'abc' LIKE 'a\\bc'", "true"), example("NULL LIKE 'a'", None),
        ],
        operator=True,
    ),
    capability(
        "ilike", "as LIKE, without regard to case", [on((TEXT, TEXT), t.BOOLEAN, _like("ILIKE"))],
        [example("'ABC' ILIKE 'a%'", "true"), example("'ABC' NOT ILIKE 'x%'", "true")], operator=True,
    ),
    capability(
        "similar to", "the whole text matches an SQL regular expression",
        [on((TEXT, TEXT_CONSTANT), t.BOOLEAN, "({0} RLIKE {1})")],
        [
            example("'abc' SIMILAR TO '%(b|d)%'", "true"), example("'abc' SIMILAR TO '(b|c)%'", "false"),
            example("'a.c' SIMILAR TO 'a.c'", "true"), example("'abc' SIMILAR TO 'a.c'", "false"),
        ],
        operator=True, note="the pattern must be a constant",
    ),
    capability(
        "~", "a part of the text matches a regular expression", [on((TEXT, TEXT), t.BOOLEAN, _matches("s"))],
        [example("'thomas' ~ 't.*ma'", "true"), example("'thomas' ~ '^h'", "false"), example("'a' !~ 'b'", "true")],
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
            on((TEXT, TEXT, TEXT_CONSTANT), t.VARCHAR, _replace),
            on((TEXT, TEXT, TEXT_CONSTANT, TEXT_CONSTANT), t.VARCHAR, _replace),
        ],
        [
            example("regexp_replace('foobar', 'o', 'X')", "fXobar"),
            example("regexp_replace('foobarfoo', 'o+', 'X', 'g')", "fXbarfX"),
            example("regexp_replace('ab12', '([a-z]+)([0-9]+)', '\\2\\1', 'g')", "12ab"),
            example("regexp_replace('aBc', 'b', '$', 'gi')", "a$c"),
        ],
        note=_NOTE,
    ),
    capability(
        "regexp_substr", "the first part that matches a regular expression, NULL when none does",
        [on((TEXT, TEXT), t.VARCHAR, lambda a, _: f"regexp_substr({a[0]}, {_flagged(a[1], 's')})")],
        [example("regexp_substr('abc123', '[0-9]+')", "123"), example("regexp_substr('abc', '[0-9]+')", None)],
        note=_NOTE,
    ),
    capability(
        "regexp_count", "how many times a regular expression matches",
        [on((TEXT, TEXT), t.INTEGER, lambda a, _: f"regexp_count({a[0]}, {_flagged(a[1], 's')})")],
        [example("regexp_count('abab', 'ab')", "2"), example("regexp_count('x', 'y')", "0")],
        note=_NOTE,
    ),
    capability(
        "regexp_instr", "where the first match of a regular expression begins, 0 when none does",
        [on((TEXT, TEXT), t.INTEGER, lambda a, _: f"regexp_instr({a[0]}, {_flagged(a[1], 's')})")],
        [example("regexp_instr('xab', 'ab')", "2"), example("regexp_instr('x', 'ab')", "0")],
        note=_NOTE,
    ),
    capability(
        "regexp_extract", "what the whole regular expression, or its n-th group, matches first; NULL when it does not",
        [
            on(
                (TEXT, TEXT), t.VARCHAR,
                lambda a, _: f"IF({a[0]} RLIKE {_flagged(a[1], 's')}, "
                f"regexp_extract({a[0]}, {_flagged(a[1], 's')}, 0), NULL)",
            ),
            on(
                (TEXT, TEXT, INTEGER), t.VARCHAR,
                lambda a, _: f"IF({a[0]} RLIKE {_flagged(a[1], 's')}, "
                f"regexp_extract({a[0]}, {_flagged(a[1], 's')}, {a[2]}), NULL)",
            ),
        ],
        [
            example("regexp_extract('foo123', '([a-z]+)([0-9]+)', 2)", "123", postgres=False),
            example("regexp_extract('foo123', '[0-9]+')", "123", postgres=False),
            example("regexp_extract('foo', '[0-9]+')", None, postgres=False),
        ],
        note=_NOTE,
    ),
)  # fmt: skip
