"""Texts that are short to write and long to make: ``repeat('x', 400000000)``.

DuckDB makes them without looking for an interrupt, and those of constants while it binds. So what constants make is
computed here and refused if it is too much; other calls get their bound in the text (``_repeat``, ``_text_length``,
``_replace``, ``_series_end``). A ``replace`` that can make little more than there was stays what it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sqlglot import exp

from mvserver import interrupts, limits, sqlstates
from mvserver.dialect.guard import function_name
from mvserver.errors import SqlError

_UTF8_BYTES_MAX = 4
_PADS = ("lpad", "rpad")
_STAND_FOR = {"_lpad": "lpad", "_rpad": "rpad", "_blank_padded": "rpad"}
"""Those whose filling may be empty, and the blanks of a char(n)."""


def bound(tree: exp.Expr) -> None:
    """In place. 54000 where the constants of one query make more than the limit."""
    made = 0
    replaces: list[exp.Expr] = []
    for node in interrupts.asking(reversed(list(tree.walk(bfs=True)))):
        call = _call(node)
        if call is None:
            continue
        size = _size(node)
        if size is not None:
            made += size
            if made > limits.CONSTANT_TEXT_BYTES_MAX:
                raise too_large(limits.CONSTANT_TEXT_BYTES_MAX)
            continue
        name, arguments = call
        if name == "replace":
            replaces.append(node)
        elif name == "repeat":
            node.replace(
                exp.Anonymous(this="_repeat", expressions=[arguments[0].copy(), _typed(arguments[1], "BIGINT")])
            )
        elif name in _PADS and _number(arguments[1]) is None:
            length = exp.Anonymous(this="_text_length", expressions=[_typed(arguments[1], "INTEGER")])
            arguments[1].replace(length)
        elif name in _PADS and (_number(arguments[1]) or 0) > limits.REPEATED_TEXT_BYTES_MAX:
            raise too_large(limits.REPEATED_TEXT_BYTES_MAX)
    _bound_replaces(replaces)
    _check_series(tree)


def _bound_replaces(replaces: Sequence[exp.Expr]) -> None:
    """One inside another multiply their growth, and whether they are may show in other queries than their own."""
    growth = math.prod(_growth(node) for node in replaces)
    if growth <= limits.REPLACED_TEXT_GROWTH_MAX:
        return
    for node in replaces:  # inner ones come first
        if _growth(node) > 1:
            name = "_regexp_replace" if _is_regular(node) else "_replace"
            texts = [_typed(part, "VARCHAR") for part in _replace_arguments(node)]
            options = _options(node)
            node.replace(exp.Anonymous(this=name, expressions=[*texts, *([options] if options is not None else [])]))


def _growth(node: exp.Expr) -> float:
    """How many times as long as the text a replaced one can be."""
    _, pattern, replacement = _replace_arguments(node)
    if not isinstance(replacement, exp.Literal):
        return math.inf
    size = len(replacement.name.encode("utf-8", "surrogatepass"))
    if not _is_regular(node) and isinstance(pattern, exp.Literal) and pattern.name:
        return max(1.0, size / len(pattern.name.encode("utf-8", "surrogatepass")))
    return max(1.0, size)  # a reference to what was found takes two bytes, and stands for that once


def _is_regular(node: exp.Expr) -> bool:
    return isinstance(node, exp.RegexpReplace) or (
        isinstance(node, exp.Anonymous) and function_name(node) == "regexp_replace"
    )


def _replace_arguments(node: exp.Expr) -> Sequence[exp.Expr]:
    call = _call(node)
    return call[1][:3] if call is not None else ()


def _options(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.RegexpReplace):
        modifiers = node.args.get("modifiers")
        return modifiers.copy() if isinstance(modifiers, exp.Expr) else None
    return node.expressions[3].copy() if isinstance(node, exp.Anonymous) and len(node.expressions) > 3 else None


def _check_series(tree: exp.Expr) -> None:
    """As rows of FROM they are made one after the other; elsewhere as one list, before the first of them is used."""
    for node in interrupts.asking(tree.find_all(exp.ExplodingGenerateSeries)):
        if isinstance(node.parent, exp.Table | exp.From | exp.Join):
            continue
        start, end = _number(node.args["start"]), _number(node.args["end"])
        step = 1 if node.args.get("step") is None else _number(node.args["step"])
        if start is None or end is None or not step:
            continue
        if (end - start) // step >= limits.SERIES_ITEMS_MAX:
            raise too_large(limits.SERIES_ITEMS_MAX)


def too_large(bytes_max: int) -> SqlError:
    return SqlError(
        sqlstates.PROGRAM_LIMIT_EXCEEDED,
        "requested length too large",
        hint=f"Functions that repeat, fill up or replace make at most {bytes_max} bytes or items here; "
        "FROM generate_series(...) makes any number of rows.",
    )


def _call(node: exp.Expr) -> tuple[str, Sequence[exp.Expr]] | None:
    """Name and arguments of a call that is looked at."""
    if isinstance(node, exp.Repeat):
        return "repeat", (node.this, node.args["times"])
    if isinstance(node, exp.Pad):
        fill = node.args.get("fill_pattern")
        name = "lpad" if node.args.get("is_left") else "rpad"
        return name, (node.this, node.expression, *((fill,) if fill is not None else ()))
    if isinstance(node, exp.Replace):
        return "replace", (node.this, node.expression, node.args.get("replacement") or exp.Literal.string(""))
    if isinstance(node, exp.RegexpReplace):
        return "replace", (node.this, node.expression, node.args.get("replacement") or exp.Literal.string(""))
    if not isinstance(node, exp.Anonymous):
        return None
    name, count = function_name(node), len(node.expressions)
    name = _STAND_FOR.get(name, name)
    wanted = {"repeat": (2, 2), "lpad": (2, 3), "rpad": (2, 3), "replace": (3, 3), "regexp_replace": (3, 4)}.get(name)
    if wanted is None or not wanted[0] <= count <= wanted[1]:
        return None
    return ("replace" if name == "regexp_replace" else name), node.expressions


def _typed(count: exp.Expr, kind: str) -> exp.Expr:
    """A parameter's type would be lost inside the macro."""
    if count.find(exp.Parameter) is None:
        return count.copy()
    return exp.cast(count.copy(), kind, dialect="duckdb")


def _size(node: exp.Expr | None) -> int | None:
    """The most bytes that a constant text can have; None for what is not constant, or not known to be."""
    if node is None:
        return None
    if isinstance(node, exp.Literal):
        return len(node.name.encode("utf-8", "surrogatepass"))
    if isinstance(node, exp.Paren | exp.Cast | exp.Upper | exp.Lower):
        return _size(node.this)
    if isinstance(node, exp.DPipe):
        return _sum([node.left, node.right])
    if isinstance(node, exp.Concat):
        return _sum(node.expressions)
    call = _call(node)
    if call is None:
        return None
    name, arguments = call
    if name == "replace":
        sizes = [_size(argument) for argument in arguments]
        return None if sizes[0] is None or sizes[2] is None else sizes[0] * max(1, sizes[2])
    count, size = _number(arguments[1]), _size(arguments[0])
    if count is None or size is None:
        return None
    return max(count, 0) * (size if name == "repeat" else _UTF8_BYTES_MAX)


def _sum(parts: Sequence[exp.Expr]) -> int | None:
    sizes = [_size(part) for part in parts]
    return None if None in sizes else sum(size or 0 for size in sizes)


def _number(node: exp.Expr) -> int | None:
    """The value of a constant whole number."""
    if isinstance(node, exp.Literal):
        try:
            return int(float(node.name))
        except (ValueError, OverflowError):
            return None
    if isinstance(node, exp.Paren | exp.Cast):
        return _number(node.this)
    if isinstance(node, exp.Neg):
        found = _number(node.this)
        return None if found is None else -found
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        left, right = _number(node.left), _number(node.right)
        if left is None or right is None:
            return None
        if isinstance(node, exp.Mul):
            return left * right
        return left + right if isinstance(node, exp.Add) else left - right
    return None
