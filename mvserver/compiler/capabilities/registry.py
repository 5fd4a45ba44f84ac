"""All families together, and look-up by name and by overload id."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

from mvserver.compiler.capabilities import (
    arithmetic,
    collections,
    comparison,
    datetimes,
    encoding,
    json,
    logic,
    matching,
    mathematics,
    nested_arrays,
    obfuscation,
    sketches,
    strings,
    text_forms,
)
from mvserver.compiler.capabilities.model import Capability, Overload

_FAMILIES: Mapping[str, tuple[Capability, ...]] = {
    "arithmetic": arithmetic.CAPABILITIES,
    "comparison": comparison.CAPABILITIES,
    "logic": logic.CAPABILITIES,
    "strings": (*strings.CAPABILITIES, *text_forms.CAPABILITIES),
    "matching": matching.CAPABILITIES,
    "mathematics": mathematics.CAPABILITIES,
    "datetimes": datetimes.CAPABILITIES,
    "json": json.CAPABILITIES,
    "collections": (*collections.CAPABILITIES, *nested_arrays.CAPABILITIES),
    "encoding": encoding.CAPABILITIES,
    "obfuscation": obfuscation.CAPABILITIES,
    "sketches": sketches.CAPABILITIES,
}


@functools.cache
def all_capabilities() -> tuple[Capability, ...]:
    return tuple(
        dataclasses.replace(entry, family=family) for family, entries in _FAMILIES.items() for entry in entries
    )


@functools.cache
def _by_name() -> Mapping[tuple[str, bool], Capability]:
    names: dict[tuple[str, bool], Capability] = {}
    for entry in all_capabilities():
        for name in entry.names:
            spelled_as_sign = not name[0].isalpha() or " " in name or name in _WORD_OPERATORS
            key = (name, spelled_as_sign)
            if key in names:
                raise ValueError(f"capability {name} is listed twice")
            names[key] = entry
    return names


_WORD_OPERATORS = frozenset({"and", "or", "not", "in", "between", "like", "ilike"})


@functools.cache
def _by_id() -> Mapping[str, Overload]:
    return {each.id: each for entry in all_capabilities() for each in entry.overloads}


def find(name: str, *, operator: bool = False) -> Capability | None:
    entry = _by_name().get((name, operator))
    return None if entry is None or (entry.internal and not operator) else entry


def overload(identity: str) -> Overload:
    return _by_id()[identity]
