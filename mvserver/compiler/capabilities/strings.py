"""Text functions. Positions and lengths count characters; text is compared and searched by its bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from mvserver import sqlstates
from mvserver.compiler.capabilities import bounded
from mvserver.compiler.capabilities.build import AS_TEXT, BIGINT, BINARY, INTEGER, TEXT, capability, example, fails, on
from mvserver.compiler.capabilities.model import Capability, Lowered, Nulls, as_expression
from mvserver.compiler.capabilities.spark_text import guard
from mvserver.compiler.lengths import grown_length, joined_length, together
from mvserver.limits import GROWN_TEXT_CHARACTERS_MAX
from mvserver.sql import types as t
from mvserver.sql.types import SqlType

_GROWING = f"a result of more than {GROWN_TEXT_CHARACTERS_MAX} characters is an error (54000), found before it is made"
_NEGATIVE_LENGTH = ("22011", "negative substring length not allowed")


def _integer(argument: Lowered) -> int | None:
    value = argument.constant()
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _at_least_one(argument: Lowered) -> str:
    return f"IF({argument} < 1, 1, {argument})"  # greatest would leave a NULL out


def _given(arguments: Sequence[Lowered]) -> str:
    """A strict function of a NULL is NULL, before any other argument can be wrong."""
    return " AND ".join(f"{each} IS NOT NULL" for each in arguments)


def _substring(a: Sequence[Lowered], result: SqlType) -> str:
    """PostgreSQL counts a start before 1 against the length; Spark would count it from the end."""
    start = _integer(a[1])
    if len(a) == 2:
        return f"substring({a[0]}, {a[1] if start is not None and start > 0 else _at_least_one(a[1])})"
    length = _integer(a[2])
    if start is not None and start > 0 and length is not None and length >= 0:
        return f"substring({a[0]}, {start}, {length})"
    wide = f"(CAST({a[2]} AS BIGINT) + IF({a[1]} < 1, {a[1]}, 1) - 1)"
    cut = f"substring({a[0]}, {_at_least_one(a[1])}, CAST(IF({wide} < 0L, 0L, {wide}) AS INT))"
    return guard(f"{a[2]} < 0 AND {_given(a[:2])}", *_NEGATIVE_LENGTH, cut)


def _left(a: Sequence[Lowered], result: SqlType) -> str:
    count = _integer(a[1])
    if count is not None and count >= 0:
        return f"left({a[0]}, {count})"
    return f"left({a[0]}, IF({a[1]} < 0, greatest(char_length({a[0]}) + {a[1]}, 0), {a[1]}))"


def _right(a: Sequence[Lowered], result: SqlType) -> str:
    count = _integer(a[1])
    if count is not None and count >= 0:
        return f"right({a[0]}, {count})"
    return f"right({a[0]}, IF({a[1]} < 0, greatest(char_length({a[0]}) + {a[1]}, 0), {a[1]}))"


def _two(a: Sequence[Lowered], result: SqlType) -> str:
    if together([each.length for each in a]).is_short:
        return f"({a[0]} || {a[1]})"
    return bounded.concat(*a)


def _two_binaries(a: Sequence[Lowered], result: SqlType) -> str:
    joined = f"concat({a[0]}, {a[1]})"
    if together([each.length for each in a]).is_short:
        return joined
    size = f"(CAST(octet_length({a[0]}) AS BIGINT) + octet_length({a[1]}))"
    return guard(f"{size} > {GROWN_TEXT_CHARACTERS_MAX}", "54000", "requested length too large", joined)


def _join(a: Sequence[Lowered], result: SqlType) -> str:
    if joined_length("concat", [each.length for each in a]).is_short:
        return f"concat_ws('', {', '.join(map(str, a))})"
    return reduce(bounded.concat, (f"coalesce({each}, '')" for each in a))


def _join_with(a: Sequence[Lowered], result: SqlType) -> str:
    if joined_length("concat_ws", [each.length for each in a]).is_short:
        return f"concat_ws({', '.join(map(str, a))})"
    # Each with the separator in front, then without the first one.
    parts = (f"coalesce({bounded.concat(a[0], each)}, '')" for each in a[1:])
    return f"substring({reduce(bounded.concat, parts)}, char_length({a[0]}) + 1)"


def _repeat(a: Sequence[Lowered], result: SqlType) -> str:
    return f"repeat({a[0]}, {a[1]})" if _stays_short("repeat", a) else bounded.repeat(a[0], a[1])


def _space(a: Sequence[Lowered], result: SqlType) -> str:
    return f"repeat(' ', {a[0]})" if _stays_short("space", a) else bounded.repeat("' '", a[0])


def _replace(a: Sequence[Lowered], result: SqlType) -> str:
    return f"replace({a[0]}, {a[1]}, {a[2]})" if _stays_short("replace", a) else bounded.replace(*a)


def _pad(name: str) -> Callable[[Sequence[Lowered], SqlType], str]:
    def lower(a: Sequence[Lowered], result: SqlType) -> str:
        fill = a[2] if len(a) == 3 else "' '"
        if _stays_short(name, a):
            return f"{name}({a[0]}, {a[1]}, {fill})"
        return bounded.pad(a[0], a[1], fill, left=name == "lpad")

    return lower


def _stays_short(name: str, a: Sequence[Lowered]) -> bool:
    arguments = [as_expression(each) for each in a]
    grown = grown_length(name, arguments, [each.length for each in a])
    return grown is not None and grown.is_short


def _trim(side: str) -> tuple[str, str]:
    return f"trim({side} ' ' FROM {{0}})", f"trim({side} {{1}} FROM {{0}})"


def _trim_entry(name: str, side: str, meaning: str, one: str, two: str, *aliases: str) -> Capability:
    plain, chosen = _trim(side)
    return capability(
        name, meaning, [on((TEXT,), t.VARCHAR, plain), on((TEXT, TEXT), t.VARCHAR, chosen)],
        [
            example(f"{name}('  ab  ')", one), example(f"{name}('xyabyx', 'xy')", two),
            example(f"{name}(CAST(NULL AS text))", None),
        ],
        aliases=aliases,
    )  # fmt: skip


def _overlay(a: Sequence[Lowered], result: SqlType) -> str:
    length = str(a[3]) if len(a) == 4 else f"char_length({a[1]})"
    end = f"(CAST({a[2]} AS BIGINT) + {length})"
    put = (
        f"concat(left({a[0]}, IF({a[2]} < 1, 0, {a[2]} - 1)), {a[1]}, "
        f"substring({a[0]}, CAST(IF({end} < 1L, 1L, {end}) AS INT)))"
    )
    others = [argument for index, argument in enumerate(a) if index != 2]
    return guard(f"{a[2]} <= 0 AND {_given(others)}", *_NEGATIVE_LENGTH, put)


def _split_index(a: Sequence[Lowered], result: SqlType) -> str:
    quoted = f"concat('\\\\Q', replace({a[1]}, '\\\\E', '\\\\E\\\\\\\\E\\\\Q'), '\\\\E')"
    return f"IF({a[2]} < 0 OR {a[0]} = '', NULL, get(split({a[0]}, {quoted}), {a[2]}))"


def _split_part(a: Sequence[Lowered], result: SqlType) -> str:
    return guard(
        f"{a[2]} = 0 AND {_given(a[:2])}", sqlstates.INVALID_PARAMETER_VALUE, "field position must not be zero",
        f"split_part({a[0]}, {a[1]}, IF({a[2]} = 0, 1, {a[2]}))",
    )  # fmt: skip


_INITCAP = (
    "array_join(transform(regexp_extract_all(lower({0}), '[\\\\p{{L}}\\\\p{{N}}]+|[^\\\\p{{L}}\\\\p{{N}}]+', 0), "
    "w -> concat(upper(left(w, 1)), substring(w, 2))), '')"
)


def _chr(a: Sequence[Lowered], result: SqlType) -> str:
    made = f"decode(unhex(lpad(hex({a[0]}), 8, '0')), 'UTF-32')"
    valid = guard(f"{a[0]} NOT BETWEEN 1 AND 1114111", "54000", "requested character not valid", made)
    return guard(f"{a[0]} < 0", sqlstates.INVALID_PARAMETER_VALUE, "character number must be positive", valid)


CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "||", "both texts, one after the other; one side may be of another type",
        [
            on((TEXT, TEXT), t.VARCHAR, _two),
            on((TEXT, AS_TEXT), t.VARCHAR, _two),
            on((AS_TEXT, TEXT), t.VARCHAR, _two),
            on((BINARY, BINARY), t.VARBINARY, _two_binaries),
        ],
        [
            example("'a' || 'b'", "ab"), example("'n=' || 5", "n=5"), example("1.50 || 'x'", "1.50x"),
            example("'a' || NULL", None), example("'t' || true", "ttrue"),
        ],
        operator=True,
    ),
    capability(
        "concat", "the arguments as text, one after the other", [on((AS_TEXT,), t.VARCHAR, _join, variadic=True)],
        [example("concat('a', NULL, 'b', 3)", "ab3"), example("concat(CAST(NULL AS text))", "")],
        nulls=Nulls.SKIPS, note="true and false are written in full, as a cast to text writes them",
    ),
    capability(
        "concat_ws", "the arguments after the first as text, with the first between them",
        [
            on((TEXT, AS_TEXT), t.VARCHAR, _join_with, variadic=True)
        ],
        [
            example("concat_ws(',', 'a', NULL, 'b')", "a,b"), example("concat_ws(NULL, 'a', 'b')", None),
            example("concat_ws('-', 2024, 5)", "2024-5"),
        ],
        nulls=Nulls.SKIPS,
    ),
    capability(
        "length", "the number of characters; of binary, of bytes",
        [on((TEXT,), t.INTEGER, "char_length({0})"), on((BINARY,), t.INTEGER, "octet_length({0})")],
        [example("length('héé')", "3"), example("length('')", "0"), example("char_length('ab ')", "3")],
        aliases=("char_length", "character_length"),
    ),
    capability(
        "octet_length", "the number of bytes",
        [on((TEXT,), t.INTEGER, "octet_length({0})"), on((BINARY,), t.INTEGER, "octet_length({0})")],
        [example("octet_length('héé')", "5"), example("octet_length('')", "0")],
    ),
    capability(
        "bit_length", "the number of bits",
        [on((TEXT,), t.INTEGER, "bit_length({0})"), on((BINARY,), t.INTEGER, "bit_length({0})")],
        [example("bit_length('ab')", "16"), example("bit_length('é')", "16")],
    ),
    capability(
        "upper", "in upper case", [on((TEXT,), t.VARCHAR, "upper({0})")],
        [example("upper('abC1')", "ABC1"), example("upper('é')", "É")], aliases=("ucase",),
    ),
    capability(
        "lower", "in lower case", [on((TEXT,), t.VARCHAR, "lower({0})")],
        [example("lower('ABc1')", "abc1"), example("lower('É')", "é")], aliases=("lcase",),
    ),
    capability(
        "initcap", "each word's first letter in upper case, the rest in lower case", [on((TEXT,), t.VARCHAR, _INITCAP)],
        [example("initcap('hi THOMAS-x')", "Hi Thomas-X"), example("initcap('')", "")],
    ),
    capability(
        "substring", "the characters from a position (1 is the first), all or as many as asked for",
        [on((TEXT, INTEGER), t.VARCHAR, _substring), on((TEXT, INTEGER, INTEGER), t.VARCHAR, _substring)],
        [
            example("substring('hello', 2, 3)", "ell"), example("substring('hello' FROM 3)", "llo"),
            example("substring('hello', -1, 3)", "h"), example("substr('hello', 0)", "hello"),
            example("substring('hello', CAST(NULL AS integer), 2)", None),
            example("substring('hello', 10, 2)", ""), example("substring('hello', -5, 2)", ""),
            fails("substring('hello', 2, -1)", "22011"),
        ],
        aliases=("substr",),
    ),
    capability(
        "left",
        "the first n characters; with n below zero all but the last -n", [on((TEXT, INTEGER), t.VARCHAR, _left)],
        [
            example("left('hello', 2)", "he"), example("left('hello', -2)", "hel"), example("left('hi', -5)", ""),
            example("left('hi', 9)", "hi"),
        ],
    ),
    capability(
        "right", "the last n characters; with n below zero all but the first -n",
        [on((TEXT, INTEGER), t.VARCHAR, _right)],
        [example("right('hello', 2)", "lo"), example("right('hello', -2)", "llo"), example("right('hi', -5)", "")],
    ),
    capability(
        "lpad", "filled on the left to n characters, or cut to them",
        [
            on((TEXT, INTEGER), t.VARCHAR, _pad("lpad")),
            on((TEXT, INTEGER, TEXT), t.VARCHAR, _pad("lpad")),
        ],
        [
            example("lpad('hi', 5, 'xy')", "xyxhi"), example("lpad('hello', 2)", "he"), example("lpad('a', -1)", ""),
            example("lpad('hi', 5, '')", "hi"),
        ],
    ),
    capability(
        "rpad", "filled on the right to n characters, or cut to them",
        [
            on((TEXT, INTEGER), t.VARCHAR, _pad("rpad")),
            on((TEXT, INTEGER, TEXT), t.VARCHAR, _pad("rpad")),
        ],
        [example("rpad('hi', 5, 'xy')", "hixyx"), example("rpad('hello', 2)", "he"), example("rpad('a', 3)", "a  ")],
    ),
    _trim_entry("btrim", "BOTH", "without the blanks (or listed characters) at both ends", "ab", "ab", "trim"),
    _trim_entry("ltrim", "LEADING", "without the blanks (or listed characters) at the start", "ab  ", "abyx"),
    _trim_entry("rtrim", "TRAILING", "without the blanks (or listed characters) at the end", "  ab", "xyab"),
    capability(
        "replace", "with every occurrence of the second text replaced by the third",
        [on((TEXT, TEXT, TEXT), t.VARCHAR, _replace)],
        [
            example("replace('abcabc', 'b', 'XX')", "aXXcaXXc"), example("replace('abc', '', 'x')", "abc"),
            example("replace('abc', 'z', 'x')", "abc"),
        ],
    ),
    capability(
        "reverse", "backwards", [on((TEXT,), t.VARCHAR, "reverse({0})")],
        [example("reverse('abé')", "éba"), example("reverse('')", "")],
    ),
    capability(
        "repeat", "n times", [on((TEXT, INTEGER), t.VARCHAR, _repeat)],
        [
            example("repeat('ab', 3)", "ababab"), example("repeat('ab', -1)", ""),
            fails("repeat(repeat('ab', 1000), 1000)", "54000", postgres=False),
        ],
        note=_GROWING,
    ),
    capability(
        "position", "where the first text begins in the second; 0 when it does not",
        [on((TEXT, TEXT), t.INTEGER, "instr({1}, {0})")],
        [
            example("position('l' IN 'hello')", "3"), example("position('z' IN 'hello')", "0"),
            example("position('' IN 'abc')", "1"),
        ],
    ),
    capability(
        "strpos", "where the second text begins in the first; 0 when it does not",
        [on((TEXT, TEXT), t.INTEGER, "instr({0}, {1})")],
        [example("strpos('hello', 'lo')", "4"), example("strpos('hello', 'z')", "0")], aliases=("instr",),
    ),
    capability(
        "locate", "where the first text begins in the second, from a position on; 0 when it does not",
        [
            on((TEXT, TEXT), t.INTEGER, "locate({0}, {1})"),
            on((TEXT, TEXT, INTEGER), t.INTEGER, "IF({2} IS NULL, NULL, locate({0}, {1}, {2}))"),
        ],
        [
            example("locate('l', 'hello')", "3", postgres=False), example("locate('l', 'hello', 4)",
            "4", postgres=False),
            example("locate('z', 'hello')", "0", postgres=False),
        ],
    ),
    capability(
        "split_part", "the n-th part between separators; from the end with n below zero; empty when there is none",
        [on((TEXT, TEXT, INTEGER), t.VARCHAR, _split_part)],
        [
            example("split_part('a,b,c', ',', 2)", "b"), example("split_part('a,b,c', ',', -1)", "c"),
            example("split_part('a,b', ',', 5)", ""), example("split_part('abc', '', 1)", "abc"),
            fails("split_part('a,b', ',', 0)", "22023"),
        ],
    ),
    capability(
        "split_index", "the part between separators at an index that starts at 0; NULL when there is none",
        [
            on(
                (TEXT, TEXT, INTEGER), t.VARCHAR,
                _split_index,
            )
        ],
        [
            example("split_index('a,b,c', ',', 1)", "b", postgres=False),
            example("split_index('a,b', ',', 5)", None, postgres=False),
            example("split_index('a.b', '.', 0)", "a", postgres=False),
            example("split_index('a,b', ',', -1)", None, postgres=False),
        ],
    ),
    capability(
        "translate", "each character of the second text replaced by the one at its place in the third, or removed",
        [on((TEXT, TEXT, TEXT), t.VARCHAR, "translate({0}, {1}, {2})")],
        [example("translate('12345', '143', 'ax')", "a2x5"), example("translate('abc', 'b', '')", "ac")],
    ),
    capability(
        "starts_with",
        "does the first text start with the second", [on((TEXT, TEXT), t.BOOLEAN, "startswith({0}, {1})")],
        [example("starts_with('alphabet', 'alph')", "true"), example("starts_with('a', 'b')", "false")],
        aliases=("startswith",),
    ),
    capability(
        "endswith", "does the first text end with the second", [on((TEXT, TEXT), t.BOOLEAN, "endswith({0}, {1})")],
        [
            example("endswith('alphabet', 'bet')", "true", postgres=False),
            example("endswith('a', 'b')", "false", postgres=False),
        ],
    ),
    capability(
        "ascii", "the code point of the first character, 0 when there is none", [on((TEXT,), t.INTEGER, "ascii({0})")],
        [example("ascii('x')", "120"), example("ascii('')", "0"), example("ascii('π')", "960")],
    ),
    capability(
        "chr", "the character of a code point", [on((INTEGER,), t.VARCHAR, _chr)],
        [example("chr(65)", "A"), example("chr(960)", "π"), fails("chr(0)", "54000"),
            fails("chr(-1)", "22023")],
    ),
    capability(
        "overlay", "with a text put in place of the characters from a position on",
        [on((TEXT, TEXT, INTEGER), t.VARCHAR, _overlay), on((TEXT, TEXT, INTEGER, INTEGER), t.VARCHAR, _overlay)],
        [
            example("overlay('Txxxxas' PLACING 'hom' FROM 2 FOR 4)", "Thomas"),
            example("overlay('abcdef' PLACING 'XX' FROM 3)", "abXXef"),
            example("overlay('abc' PLACING 'Z' FROM 9)", "abcZ"),
        ],
    ),
    capability(
        "quote_literal", "in single quotes, those inside doubled, a backslash in E'' form",
        [
            on(
                (TEXT,), t.VARCHAR,
                "concat(IF(instr({0}, '\\\\') > 0, 'E', ''), '\\'', "
                "replace(replace({0}, '\\\\', '\\\\\\\\'), '\\'', '\\'\\''), '\\'')",
            )
        ],
        [example("quote_literal('O''Reilly')", "'O''Reilly'"), example("quote_literal('ab')", "'ab'")],
    ),
    capability(
        "to_hex", "a number in hexadecimal digits",
        [on((INTEGER,), t.VARCHAR, "lower(hex({0} & 4294967295L))"), on((BIGINT,), t.VARCHAR, "lower(hex({0}))")],
        [
            example("to_hex(255)", "ff"), example("to_hex(-1)", "ffffffff"),
            example("to_hex(CAST(-1 AS bigint))", "ffffffffffffffff"),
        ],
    ),
    capability(
        "space", "n blanks", [on((INTEGER,), t.VARCHAR, _space)],
        [example("length(space(3))", "3", postgres=False), example("space(0)", "", postgres=False)],
    ),
)  # fmt: skip
