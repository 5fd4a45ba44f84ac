"""The query parameters of a view's path as a SELECT: names are quoted, values are parameters, words are of a list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mvserver.http.status import RequestError
from mvserver.quoting import quoted

COLUMNS, ORDER, LIMIT, OFFSET = "columns", "order", "limit", "offset"
RESERVED = (COLUMNS, ORDER, LIMIT, OFFSET)

COMPARISONS: Mapping[str, str] = {
    "eq": "=",
    "neq": "<>",
    "gt": ">",
    "gte": ">=",
    "lt": "<",
    "lte": "<=",
    "like": "LIKE",
    "ilike": "ILIKE",
}
_IS: Mapping[str, str] = {
    "null": "IS NULL",
    "not_null": "IS NOT NULL",
    "true": "IS TRUE",
    "false": "IS FALSE",
}
_ORDERS: Mapping[str, str] = {
    "asc": "ASC",
    "desc": "DESC",
    "nullsfirst": "NULLS FIRST",
    "nullslast": "NULLS LAST",
}
_DIRECTIONS = ("asc", "desc")
_ITEM = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"(?P<rest>[^,"]*)|(?P<plain>[^,"]*))\s*(?:,|\Z)')


@dataclass(frozen=True)
class ViewQuery:
    text: str
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class _Item:
    """One of a list. ``rest`` is what follows the quotes, None where there are none."""

    text: str
    rest: str | None

    @property
    def word(self) -> str:
        if self.rest:
            raise RequestError(400, f'unexpected "{self.rest[:100]}" behind "{self.text[:100]}"')
        return self.text


def build(schema: str, view: str, given: Sequence[tuple[str, str]]) -> ViewQuery:
    """``given`` are the names and values of the query parameters in their order. 400 for what is not understood."""
    reserved: dict[str, str] = {}
    conditions: list[str] = []
    values: list[str] = []
    for name, value in given:
        if name in RESERVED:
            if name in reserved:
                raise RequestError(400, f'query parameter "{name}" stands twice')
            reserved[name] = value
        else:
            conditions.append(_condition(_unquoted(name), value, values))
    columns = [quoted(item.word) for item in _names(reserved[COLUMNS], COLUMNS)] if COLUMNS in reserved else []
    text = f"SELECT {', '.join(columns) or '*'} FROM {quoted(schema)}.{quoted(view)}"
    if conditions:
        text += f" WHERE {' AND '.join(conditions)}"
    if ORDER in reserved:
        text += f" ORDER BY {', '.join(_order(item) for item in _names(reserved[ORDER], ORDER))}"
    for name in (LIMIT, OFFSET):
        if name in reserved:
            text += f" {name.upper()} {_place(_count(name, reserved[name]), values)}"
    return ViewQuery(text, tuple(values))


def _condition(column: str, value: str, values: list[str]) -> str:
    operator, dot, operand = value.partition(".")
    if operator == "not" and dot:
        return f"NOT ({_condition(column, operand, values)})"
    if not dot or (operator not in COMPARISONS and operator not in ("in", "is")):
        known = ", ".join([*COMPARISONS, "in", "is"])
        raise RequestError(
            400,
            f'filter of column "{column}" has no operator that is known',
            detail=f'It is "{value[:100]}".',
            hint=f"Write column=operator.value; operators are {known}, each also as not.operator.",
        )
    if operator == "is":
        if operand not in _IS:
            raise RequestError(400, f'filter "is" of column "{column}" takes one of {", ".join(_IS)}')
        return f"{quoted(column)} {_IS[operand]}"
    if operator == "in":
        if not operand.startswith("(") or not operand.endswith(")"):
            raise RequestError(400, f'filter "in" of column "{column}" takes values in brackets, as in.(a,b)')
        places = [_place(item.word, values) for item in _parts(operand[1:-1], column)]
        return f"{quoted(column)} IN ({', '.join(places)})"
    return f"{quoted(column)} {COMPARISONS[operator]} {_place(operand, values)}"


def _place(value: str, values: list[str]) -> str:
    if "\0" in value:
        raise RequestError(400, "a value has a zero byte")
    values.append(value)
    return f"${len(values)}"


def _order(item: _Item) -> str:
    """``column.desc.nullslast``; the words of a column in quotes follow the quotes."""
    name, *words = item.text.split(".") if item.rest is None else (item.text, *item.rest.split(".")[1:])
    if item.rest and not item.rest.startswith("."):
        raise RequestError(400, f'unexpected "{item.rest[:100]}" behind "{name[:100]}"')
    for word in words:
        if word not in _ORDERS:
            raise RequestError(
                400, f'order of column "{name}" has an unknown word "{word}"', hint=f"Words are {', '.join(_ORDERS)}."
            )
    directions = [word for word in words if word in _DIRECTIONS]
    nulls = [word for word in words if word not in _DIRECTIONS]
    if len(directions) > 1 or len(nulls) > 1:
        raise RequestError(400, f'order of column "{name}" contradicts itself')
    return " ".join([quoted(name), *(_ORDERS[word] for word in (*directions, *nulls))])


def _names(text: str, what: str) -> Iterator[_Item]:
    for item in _parts(text, what):
        if not item.text:
            raise RequestError(400, f'query parameter "{what}" has an empty name')
        yield item


def _parts(text: str, what: str) -> Iterator[_Item]:
    """Separated by commas; one in double quotes may have commas, and ``""`` is a double quote in it."""
    at = 0
    while True:
        match = _ITEM.match(text, at)
        if match is None:
            raise RequestError(400, f'the list of "{what}" is malformed', hint='Values with commas stand in "quotes".')
        inner = match["quoted"]
        yield _Item(match["plain"].strip(), None) if inner is None else _Item(inner.replace('""', '"'), match["rest"])
        at = match.end()
        if not match[0].endswith(","):
            return


def _unquoted(name: str) -> str:
    if len(name) > 1 and name.startswith('"') and name.endswith('"'):
        name = name[1:-1].replace('""', '"')
    if not name or "\0" in name:
        raise RequestError(400, "a filter has no column")
    return name


def _count(name: str, text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise RequestError(400, f'query parameter "{name}" must be a whole number')
    return text
