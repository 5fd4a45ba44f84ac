"""The greatest length of a value: so many copies of each column of a record, and so many characters beside them.

A record is bounded, and its columns together are no longer than it. So a value of a few copies of each column is
bounded without a look at it, and only functions that can make more are measured when they run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mvserver.compiler.expressions import Call, Case, Cast, ColumnReference, Expression, FieldAccess, Literal
from mvserver.limits import (
    GROWN_TEXT_CHARACTERS_MAX,
    TEXT_CONSTANT_CHARACTERS_MAX,
    TEXT_COPIES_MAX,
    TEXT_OF_VALUE_CHARACTERS_MAX,
    VALUE_COPIES_MAX,
)
from mvserver.sql.types import Kind

_SCALAR_CHARACTERS = 400  # of a number, date or boolean as text: a double has up to some 310 digits
_DOUBLING = frozenset({"hex", "encode", "to_base64", "quote_literal", "url_encode"})
_MEASURED = frozenset({"repeat", "space", "replace", "regexp_replace", "lpad", "rpad", "array_to_string"})
_WITHIN_BOUND = frozenset({"center", "regexp_match", "regexp_groups", "json_path_first", "json_path_all"})
_JOINING = frozenset({"||", "concat", "concat_ws"})
_LONG_KINDS = frozenset({Kind.VARCHAR, Kind.VARBINARY, Kind.ARRAY, Kind.MAP, Kind.STRUCT})


@dataclass(frozen=True)
class Length:
    """At most ``copies`` of each column and ``characters`` more."""

    copies: Mapping[str, float] = field(default_factory=dict)
    characters: float = 0.0

    @property
    def is_short(self) -> bool:
        """Whether a value need not be measured before it is made."""
        most = max(self.copies.values(), default=0.0)
        return most <= TEXT_COPIES_MAX and self.characters <= TEXT_CONSTANT_CHARACTERS_MAX

    @property
    def may_be_made(self) -> bool:
        """False for what even with each part measured could be too much for one record."""
        most = max(self.copies.values(), default=0.0)
        return most <= VALUE_COPIES_MAX and self.characters <= TEXT_OF_VALUE_CHARACTERS_MAX

    def times(self, factor: float) -> Length:
        return Length({name: count * factor for name, count in self.copies.items()}, self.characters * factor)


UNKNOWN = Length({}, float("inf"))


def measured(text: Length) -> Length:
    """Of what is measured before it is made: no longer than the bound, or than the text that it is made of."""
    return Length({name: min(1.0, count) for name, count in text.copies.items()}, float(GROWN_TEXT_CHARACTERS_MAX))


def together(lengths: Iterable[Length]) -> Length:
    """Of all of them, one after the other."""
    copies: dict[str, float] = {}
    characters = 0.0
    for length in lengths:
        characters += length.characters
        for name, count in length.copies.items():
            copies[name] = copies.get(name, 0.0) + count
    return Length(copies, characters)


def either(lengths: Iterable[Length]) -> Length:
    """Of whichever is the longest."""
    copies: dict[str, float] = {}
    characters = 0.0
    for length in lengths:
        characters = max(characters, length.characters)
        for name, count in length.copies.items():
            copies[name] = max(copies.get(name, 0.0), count)
    return Length(copies, characters)


def constant_characters(argument: Expression) -> int | None:
    """Of a constant text; None of anything else."""
    return len(argument.value) if isinstance(argument, Literal) and isinstance(argument.value, str) else None


def length_of(node: Expression, parts: Sequence[Length]) -> Length:
    """Of a node, given the lengths of its children."""
    if node.type.kind not in _LONG_KINDS:
        return Length({}, _SCALAR_CHARACTERS)
    if isinstance(node, ColumnReference):
        return Length({node.name: 1.0})
    if isinstance(node, Literal):
        return Length({}, len(str(node.value)))
    if isinstance(node, Call):
        return _of_call(node, parts)
    if isinstance(node, Case):
        return either(parts)
    if isinstance(node, (Cast, FieldAccess)):
        return together(parts)
    return UNKNOWN


def _of_call(node: Call, parts: Sequence[Length]) -> Length:
    if node.definition is not None:  # its process measures what it answers
        return Length({}, float(GROWN_TEXT_CHARACTERS_MAX))
    name = node.function.partition("(")[0]
    if name in _MEASURED:
        grown = grown_length(name, node.arguments, parts)
        return grown if grown is not None and grown.is_short else measured(parts[0] if parts else UNKNOWN)
    if name in _WITHIN_BOUND:  # their functions count what they make
        return measured(parts[0])
    whole = together(parts)
    if name in _DOUBLING:
        return whole.times(2)
    if name in _JOINING:
        joined = joined_length(name, parts)
        return joined if joined.is_short else Length({}, float(GROWN_TEXT_CHARACTERS_MAX))
    return Length(whole.copies, whole.characters + _SCALAR_CHARACTERS)


def joined_length(name: str, parts: Sequence[Length]) -> Length:
    """Of several texts in a row; the first argument of concat_ws stands between all others."""
    if name != "concat_ws":
        return together(parts)
    return together([*parts[1:], parts[0].times(len(parts))])


def grown_length(name: str, arguments: Sequence[Expression], parts: Sequence[Length]) -> Length | None:
    """Of a function that can grow, where its arguments tell; None where only its values do."""
    if name in ("repeat", "space"):
        times = _number(arguments[-1])
        return None if times is None else (parts[0] if name == "repeat" else Length({}, 1)).times(max(0, times))
    if name in ("lpad", "rpad"):
        wanted = _number(arguments[1])
        return None if wanted is None else Length({}, max(0, wanted))
    if name == "array_to_string":
        between = sum(constant_characters(each) or 0 for each in arguments[1:])
        known = all(constant_characters(each) is not None for each in arguments[1:])
        return parts[0].times(1 + between) if known else None
    new = constant_characters(arguments[2])
    if new is None:
        return None
    old = constant_characters(arguments[1]) if name == "replace" else None
    factor = max(1.0, new / old) if old else max(1.0, new + 1.0)
    return parts[0].times(factor)


def _number(argument: Expression) -> int | None:
    if isinstance(argument, Literal) and isinstance(argument.value, int) and not isinstance(argument.value, bool):
        return argument.value
    return None
