"""``_meta``: what a record has beside its key and value, under the names of the columns that carry it further."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mvserver.lenses.program import Call, Expression, Literal, Program, Projection, Select, Selection
from mvserver.lenses.rows import META
from mvserver.lenses.walking import nodes
from mvserver.quoting import constant

Path = tuple[str, ...]
"""``("offset",)``, ``("headers", name)``, or ``("headers",)``, which are the names of all headers."""

FIELDS = ("timestamp", "partition", "offset", "topic")
HEADERS = "headers"
HEADER_FUNCTIONS = {
    "HEADERASDOUBLE": "DOUBLE", "HEADERASFLOAT": "FLOAT", "HEADERASINT": "INTEGER", "HEADERASLONG": "BIGINT",
    "HEADERASSTRING": None,
}  # fmt: skip
"""The type that the text of a header is read as."""


def is_known(path: Path) -> bool:
    return path == (HEADERS,) or (len(path) == 1 and path[0] in FIELDS) or (len(path) == 2 and path[0] == HEADERS)


def column(path: Path) -> str:
    return ".".join((META, *path))


def of_record(path: Path) -> str:
    """In the words of the first dialect, where FROM is the topic itself."""
    if path == (HEADERS,):
        return "map_keys(rowmetadata()->headers)"
    if path[0] == HEADERS:
        return f"(rowmetadata()->headers[{constant(path[1])}])"
    return f"(rowmetadata()->{path[0]})"


def used_by(select: Select) -> frozenset[Path]:
    """What a SELECT uses of its sources, as far as it is known."""
    return frozenset(path for path in _paths(_expressions(select)) if is_known(path))


def used_in(program: Program) -> frozenset[Path]:
    selects = [*(each.select for each in program.withs), *(each.select for each in program.inserts)]
    return frozenset(path for select in selects for path in used_by(select))


def _expressions(select: Select) -> Iterator[Expression]:
    yield from (each.expression for each in (*select.projections, *select.group_by) if isinstance(each, Projection))
    yield from (lateral.array for lateral in select.laterals)
    yield from (each for each in (select.where, *(join.on for join in select.joins)) if each is not None)


def _paths(expressions: Iterable[Expression]) -> Iterator[Path]:
    for expression in expressions:
        for node in nodes(expression):
            if isinstance(node, Selection) and META in node.parts[:2]:
                yield node.parts[node.parts.index(META) + 1 :]
            elif isinstance(node, Call):
                yield from _of_call(node)


def _of_call(call: Call) -> Iterator[Path]:
    if call.name == "UUID":
        yield from ((each,) for each in ("topic", "partition", "offset"))
    elif call.name == "HEADERKEYS":
        yield (HEADERS,)
    elif call.name in HEADER_FUNCTIONS and len(call.arguments) == 1 and isinstance(call.arguments[0], Literal):
        yield (HEADERS, call.arguments[0].text)
