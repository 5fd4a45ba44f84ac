"""Functions of regular expressions, by what DuckDB has: all matches of a pattern, or of one of its groups.

A group that has no part in a match is NULL there as in PostgreSQL. Flags become RE2's, at the pattern's beginning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeGuard

from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect.functions.checked_functions import is_null
from mvserver.errors import SqlError

NAMES = frozenset({
    "regexp_count", "regexp_instr", "regexp_match", "regexp_matches", "regexp_split_to_array", "regexp_split_to_table",
    "regexp_substr", "_regexp_rows",
})  # fmt: skip
_NODES: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.RegexpCount: ("regexp_count", ("this", "expression", "position", "parameters")),
    exp.RegexpInstr: (
        "regexp_instr", ("this", "expression", "position", "occurrence", "option", "parameters", "group"),
    ),
    exp.RegexpSubstr: ("regexp_substr", ("this", "expression", "position", "occurrence", "parameters", "group")),
}  # fmt: skip
"""Of calls that the parser has nodes for, the arguments in their order."""
_FLAGS = {"i": "i", "c": "", "n": "m", "m": "m", "s": "s", "p": "", "w": "ms", "e": "", "t": ""}
_NOT_HERE = {"x": "expanded syntax", "q": "a literal pattern", "b": "basic syntax"}
_ESCAPED_OR_LIST = re.compile(r"\\.|\[\^?\]?[^\]]*\]", re.S)


def adapt(node: exp.Expr) -> exp.Expr | None:
    """What stands for the call; None where it is none of these."""
    known = _NODES.get(type(node))
    if known is not None:
        name, keys = known
        arguments = [node.args[key] for key in keys if isinstance(node.args.get(key), exp.Expr)]
    elif isinstance(node, exp.Anonymous) and node.name.lower() in NAMES:
        name, arguments = node.name.lower(), list(node.expressions)
    else:
        return None
    if len(arguments) < 2:
        return None
    return _BY_NAME[name](*(part.copy() for part in arguments))


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[part.copy() for part in arguments])


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _flagged(name: str, pattern: exp.Expr, flags: exp.Expr | None) -> tuple[exp.Expr, bool]:
    """The pattern with its flags, and whether all matches are meant."""
    if flags is None:
        return pattern, False
    bare = flags.unnest()
    if is_null(bare):
        return exp.cast(exp.null(), "TEXT", dialect="duckdb"), False
    if not (isinstance(bare, exp.Literal) and bare.is_string):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED, f"{name} is supported with constant flags only", hint="Write them as 'i'."
        )
    letters = ""
    for flag in bare.name:
        if flag == "g":
            continue
        if flag in _NOT_HERE:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"{_NOT_HERE[flag]} of regular expressions is not supported",
                hint="The flags are i, c, n, m, s, p, w and g.",
            )
        if flag not in _FLAGS:
            raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'invalid regular expression option: "{flag}"')
        letters = letters.replace("i", "") if flag == "c" else letters + _FLAGS[flag]
    prefix = f"(?{''.join(sorted(set(letters)))})" if letters else ""
    every = "g" in bare.name
    if _is_text(pattern):
        return exp.Literal.string(prefix + pattern.name), every
    flagged = exp.Paren(this=exp.DPipe(this=exp.Literal.string(prefix), expression=pattern))
    return (flagged if prefix else pattern), every


def _is_text(node: exp.Expr) -> TypeGuard[exp.Literal]:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _flagged_once(name: str, pattern: exp.Expr, flags: exp.Expr | None) -> exp.Expr:
    """As :func:`_flagged`, for a function that takes no flag g."""
    flagged, every = _flagged(name, pattern, flags)
    if every:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f'{name}() does not support the "global" option',
            hint="Use the regexp_matches function instead." if name == "regexp_match" else None,
        )  # fmt: skip
    return flagged


def _groups(pattern: exp.Expr) -> int | None:
    """How many it has; None where it is no constant."""
    if not _is_text(pattern):
        return None
    return len(re.findall(r"\((?!\?)", _ESCAPED_OR_LIST.sub("", pattern.name)))


_ESCAPE = re.compile(r"\\(.?)", re.S)


def replacement(pattern: exp.Expr, text: str) -> str:
    """A replacement in RE2's words: ``\\&`` is the whole match, a group that the pattern has not is empty.

    A backslash before any other character is one."""
    count = _groups(pattern)

    def escape(found: re.Match[str]) -> str:
        character = found[1]
        if character == "&":
            return r"\0"
        if character == "\\":
            return found[0]
        if character in tuple("123456789"):
            return found[0] if count is None or int(character) <= count else ""
        return "\\" + found[0]

    return _ESCAPE.sub(escape, text)


def _match(text: exp.Expr, pattern: exp.Expr, flags: exp.Expr | None = None) -> exp.Expr:
    pattern = _flagged_once("regexp_match", pattern, flags)
    count = _groups(pattern)
    if count is None:
        return _call("_regexp_match", text, pattern)
    if not isinstance(text.unnest(), exp.Column | exp.Literal | exp.Parameter | exp.Null):
        once = exp.to_identifier("_text", quoted=True)  # a copy for each group would multiply in nested calls
        body = exp.Lambda(this=_of_groups(exp.Column(this=once.copy()), pattern, count), expressions=[once])
        matched = exp.Anonymous(this="list_transform", expressions=[exp.Array(expressions=[text.copy()]), body])
        return _call("list_extract", matched, _number(1))
    return _of_groups(text, pattern, count)


def _of_groups(text: exp.Expr, pattern: exp.Expr, count: int) -> exp.Expr:
    """An array of the groups of the first match."""
    if not count:
        parts = [_call("regexp_extract", text, pattern, _number(0))]
    else:
        parts = [
            _call("list_extract", _call("_regexp_all", text, pattern, _number(at)), _number(1))
            for at in range(1, count + 1)
        ]
    found = exp.RegexpLike(this=text.copy(), expression=pattern.copy())
    return exp.Case(ifs=[exp.If(this=found, true=exp.Array(expressions=parts))])


def _rows(text: exp.Expr, pattern: exp.Expr, flags: exp.Expr | None = None) -> exp.Expr:
    """A list of the groups of each match."""
    pattern, every = _flagged("regexp_matches", pattern, flags)
    count = _groups(pattern)
    if count is None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "regexp_matches is supported with a constant pattern only",
            hint="Use regexp_match for the first match, or regexp_substr.",
        )
    if count < 2:
        rows = _call("_regexp_singles", _call("_regexp_all", text, pattern, _number(count)))
    else:
        lists = [_call("_regexp_all", text, pattern, _number(at)) for at in range(1, count + 1)]
        each = exp.to_identifier("_groups", quoted=True)
        parts = [_call("struct_extract_at", exp.Column(this=each.copy()), _number(at)) for at in range(1, count + 1)]
        row = exp.Lambda(this=exp.Array(expressions=parts), expressions=[each])
        rows = exp.Anonymous(this="list_transform", expressions=[_call("list_zip", *lists), row])
    return rows if every else _call("list_slice", rows, _number(1), _number(1))


def _matches(text: exp.Expr, pattern: exp.Expr, flags: exp.Expr | None = None) -> exp.Expr:
    return _call("_unnested", _rows(text, pattern, flags))


def _split(text: exp.Expr, pattern: exp.Expr, flags: exp.Expr | None = None) -> exp.Expr:
    pattern = _flagged_once("regexp_split_to_array", pattern, flags)
    return _call("_regexp_split", text, pattern)


def _split_rows(text: exp.Expr, pattern: exp.Expr, flags: exp.Expr | None = None) -> exp.Expr:
    pattern = _flagged_once("regexp_split_to_table", pattern, flags)
    return _call("_unnested", _call("_regexp_split", text, pattern))


def _count(text: exp.Expr, pattern: exp.Expr, start: exp.Expr | None = None, flags: exp.Expr | None = None) -> exp.Expr:
    pattern = _flagged_once("regexp_count", pattern, flags)
    whole = text if start is None else _call("_regexp_from", text, pattern, start)
    return _call("_regexp_count", whole, pattern)


def _substr(
    text: exp.Expr,
    pattern: exp.Expr,
    start: exp.Expr | None = None,
    nth: exp.Expr | None = None,
    flags: exp.Expr | None = None,
    group: exp.Expr | None = None,
) -> exp.Expr:
    pattern = _flagged_once("regexp_substr", pattern, flags)
    whole = text if start is None else _call("_regexp_from", text, pattern, start)
    count = _groups(pattern)
    if group is not None and not (isinstance(group, exp.Literal) and group.is_int and count is not None):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "regexp_substr is supported with a constant subexpr only",
            hint="Write the number of the group.",
        )
    if group is not None and int(group.name) > (count or 0):
        return exp.cast(exp.null(), "TEXT", dialect="duckdb")
    return _call("_regexp_nth", _call("_regexp_all", whole, pattern, group or _number(0)), nth or _number(1))


def _instr(
    text: exp.Expr,
    pattern: exp.Expr,
    start: exp.Expr | None = None,
    nth: exp.Expr | None = None,
    end: exp.Expr | None = None,
    flags: exp.Expr | None = None,
    group: exp.Expr | None = None,
) -> exp.Expr:
    pattern = _flagged_once("regexp_instr", pattern, flags)
    if group is not None and group.name != "0":
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "regexp_instr of a group is not supported",
            hint="Use regexp_substr with a group, and strpos.",
        )
    start = start or _number(1)
    return _call("_regexp_instr", _call("_regexp_from", text, pattern, start), pattern, start, nth or _number(1),
                 end or _number(0))  # fmt: skip


_BY_NAME: dict[str, Callable[..., exp.Expr]] = {
    "regexp_count": _count, "regexp_instr": _instr, "regexp_match": _match, "regexp_matches": _matches,
    "_regexp_rows": _rows, "regexp_split_to_array": _split, "regexp_split_to_table": _split_rows,
    "regexp_substr": _substr,
}  # fmt: skip
