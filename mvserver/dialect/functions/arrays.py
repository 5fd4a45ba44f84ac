"""Arrays in PostgreSQL's text form, ``'{a,b}'``, where a query's text means an array by them."""

from __future__ import annotations

import re

from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.errors import SqlError

_ARRAY_TEXT = re.compile(r"^\{.*\}$", re.S)
_BOUNDS = re.compile(r"^(?:\[-?\d+:-?\d+\])+\s*=\s*(?=\{)")
_ITEM = r'\s*(?:"(?:[^"\\]|\\.)*"\s*|(?:[^",{}\\\s]|\\.)(?:[^",{}\\]|\\.)*)'
_ITEMS = re.compile(f"{_ITEM}(?:,{_ITEM})*", re.S)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\\.|[{},]|\s+|[^{},"\\\s]+|.', re.S)


def array_literal(node: exp.Expr | None) -> exp.Expr | None:
    """``'{a,b}'`` and ``'{{a},{b}}'`` as arrays, where their place says that they are."""
    if not (isinstance(node, exp.Literal) and node.is_string):
        return None
    text = node.name.strip()
    bounds = _BOUNDS.match(text)
    if bounds is not None:
        if any(low != "1" for low in re.findall(r"\[(-?\d+):", bounds[0])):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "arrays with a lower bound other than 1 are not supported",
                hint="Leave out the bounds: '{1,2}'.",
            )
        text = text[bounds.end() :].lstrip()
    return _nested(text, node.name, 1) if _ARRAY_TEXT.match(text) else None


def _nested(text: str, whole: str, depth: int) -> exp.Expr:
    if depth > limits.ARRAY_DIMENSIONS_MAX:
        raise SqlError(
            sqlstates.PROGRAM_LIMIT_EXCEEDED,
            f"number of array dimensions ({depth}) exceeds the maximum allowed ({limits.ARRAY_DIMENSIONS_MAX})",
        )
    if not text[1:].lstrip().startswith("{"):
        if text[1:-1].strip() and not _ITEMS.fullmatch(text[1:-1]):
            raise _malformed(whole, "Unexpected array element.")
        items = [exp.null() if item is None else exp.Literal.string(item) for item in split_array(text)]
        return exp.Array(expressions=items)
    rows = [_nested(row, whole, depth + 1) for row in _rows(text, whole)]
    if len({shape(row) for row in rows}) > 1:
        raise _malformed(whole, "Multidimensional arrays must have sub-arrays with matching dimensions.")
    return exp.Array(expressions=rows)


def _rows(text: str, whole: str) -> list[str]:
    """The sub-arrays of ``{{...},{...}}`` as texts."""
    rows: list[str] = []
    level = start = 0
    between = ""
    for match in _TOKEN.finditer(text, 1, len(text) - 1):
        found = match[0]
        if found == "{":
            level += 1
            start = match.start() if level == 1 else start
        elif found == "}":
            level -= 1
            if level == 0:
                rows.append(text[start : match.end()])
                between += "x"
        elif level == 0 and not found.isspace():
            between += found
        if level < 0:
            break
    if level != 0 or between != ",".join("x" * len(rows)):
        raise _malformed(whole, "Unexpected array element.")
    return rows


def shape(array: exp.Expr) -> tuple[int, ...]:
    """Lengths by dimension of an array that is written out; of the first row, where rows differ."""
    if not isinstance(array, exp.Array):
        return ()
    return (len(array.expressions), *(shape(array.expressions[0]) if array.expressions else ()))


def check_shape(array: exp.Array) -> None:
    """2202E where the rows of ``ARRAY[[...], [...]]`` are of different lengths."""
    if len({shape(row) for row in array.expressions if isinstance(row, exp.Array)}) > 1:
        raise SqlError(
            sqlstates.ARRAY_SUBSCRIPT_ERROR,
            "multidimensional arrays must have array expressions with matching dimensions",
        )


def no_array(text: str) -> SqlError:
    """Of a text that has not the form of one."""
    return _malformed(text, 'Array value must start with "{" or dimension information.')


def _malformed(text: str, detail: str) -> SqlError:
    return SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, f'malformed array literal: "{text}"', detail=detail)


def split_array(text: str) -> list[str | None]:
    """The elements of a one-dimensional array in PostgreSQL's text form."""
    inner = text[1:-1]
    if not inner.strip():
        return []
    items: list[str | None] = []
    for match in re.finditer(r'\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^,\\]|\\.)*))\s*(?:,|$)', inner, re.S):
        if match.start() == len(inner) and inner[-1:] != ",":
            break
        if match[1] is not None:
            items.append(re.sub(r"\\(.)", r"\1", match[1]))
        else:
            plain = match[2].strip()
            items.append(None if plain.upper() == "NULL" else re.sub(r"\\(.)", r"\1", plain))
    return items


def compared_array(node: exp.Expr) -> exp.Expr | None:
    """``x`` of ``ANY (x)``, ``SOME (x)`` or ``ALL (x)``; the parser takes some of them for functions."""
    if isinstance(node, exp.Any | exp.All):
        return node.this.unnest()  # type: ignore[no-any-return]
    if isinstance(node, exp.Anonymous) and node.name.lower() in ("any", "some", "all") and len(node.expressions) == 1:
        return node.expressions[0].unnest()  # type: ignore[no-any-return]
    return None
