"""What a SELECT gives: columns with their texts. Those with targets in a field (``AS a.b``) are objects together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mvserver import limits, sqlstates
from mvserver.lenses.problems import Place, ProblemError, problem
from mvserver.lenses.written import Written, joined, written
from mvserver.quoting import constant


@dataclass(frozen=True)
class Output:
    """``inside`` is the path in the column that it is for."""

    column: str
    text: Written
    place: Place
    never_null: bool = False
    inside: tuple[str, ...] = ()


def structure(fields: Sequence[tuple[str, Written]], place: Place) -> Written:
    """An object of the named fields."""
    pairs = [written(constant(name), ", ", text) for name, text in fields]
    return written(place, "named_struct(", joined(", ", pairs), ")")


def with_objects(outputs: Sequence[Output]) -> list[Output]:
    """One output for each column: an object is where its first part is."""
    parts: dict[str, list[Output]] = {}
    for each in outputs:
        if each.inside:
            parts.setdefault(each.column, []).append(each)
    found: list[Output] = []
    for each in outputs:
        if not each.inside:
            if each.column in parts:
                raise _given_twice(each.place, each.column)
            found.append(each)
        elif each is parts[each.column][0]:
            found.append(_object(each.column, parts[each.column]))
    return found


def _object(name: str, parts: Sequence[Output]) -> Output:
    inner = with_objects([Output(each.inside[0], each.text, each.place, inside=each.inside[1:]) for each in parts])
    check_names(inner)
    text = structure([(each.column, each.text) for each in inner], parts[0].place)
    return Output(name, text, parts[0].place, never_null=True)


def check_names(outputs: Sequence[Output]) -> None:
    seen: set[str] = set()
    for each in outputs:
        if each.column in seen:
            raise _given_twice(each.place, each.column)
        if len(each.column.encode()) > limits.IDENTIFIER_BYTES_MAX:
            raise problem(
                each.place,
                sqlstates.INVALID_NAME,
                f"the name of a field has at most {limits.IDENTIFIER_BYTES_MAX} bytes",
                "Give it a name with AS.",
            )
        seen.add(each.column)


def _given_twice(place: Place, name: str) -> ProblemError:
    return problem(
        place, sqlstates.DUPLICATE_COLUMN, f'field "{name}" is given more than once', "Give each its own name with AS."
    )
