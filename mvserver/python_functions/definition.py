"""A function that a user has written, as the rooms pass it on: frozen, and its digest is its identity."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mvserver import limits
from mvserver.sql.types import Kind, SqlType

SCALARS = frozenset(kind for kind in Kind if kind.row.spark is not None or SqlType(kind).is_exact)


def is_collected(type_: SqlType) -> bool:
    """Whether an argument of an aggregate may have the type: its values are kept one by one."""
    return type_.kind in SCALARS


def is_supported(type_: SqlType) -> bool:
    """Whether an argument or an answer may have the type: scalars, and arrays of them."""
    if type_.kind is Kind.ARRAY:
        return type_.element is not None and type_.element.kind in SCALARS
    return type_.kind in SCALARS


@dataclass(frozen=True)
class PythonFunction:
    """``id`` is the catalog's; ``name`` is as messages say it. ``strict``: NULL where an argument is NULL.

    An ``aggregate`` is called once for a group, and its arguments are the lists of the group's values. A strict one
    does not see the records with a NULL among them, and is NULL where none is left.
    """

    id: str
    name: str
    parameters: tuple[tuple[str, SqlType], ...]
    result: SqlType
    body: str
    strict: bool
    timeout_ms: int
    memory_bytes: int
    confined: bool = True  # not run where the system does not deny it files and network
    aggregate: bool = False

    @cached_property
    def document(self) -> str:
        """What the process that runs it is told: everything that its answers depend on."""
        told: dict[str, Any] = {
            "name": self.name,
            "parameters": [name for name, _ in self.parameters],
            "kinds": [kind_of(type_) for _, type_ in self.parameters],
            "result": type_document(self.result),
            "body": self.body,
            "strict": self.strict,
            "memory_bytes": self.memory_bytes,
            "characters_max": limits.GROWN_TEXT_CHARACTERS_MAX,
        }
        if self.aggregate:  # what is told of other functions is part of plans that are kept
            told["aggregate_values_max"] = limits.AGGREGATE_VALUES_MAX
        return json.dumps(told, sort_keys=True)

    @cached_property
    def digest(self) -> str:
        """Part of each plan that calls it, so that another text is another plan."""
        return hashlib.sha256(f"{self.document}\n{self.timeout_ms}\n{self.confined}".encode()).hexdigest()[:32]


def kind_of(type_: SqlType) -> str:
    """A type without length and precision."""
    return str(type_.kind.value) if type_.element is None else f"{type_.kind.value}<{kind_of(type_.element)}>"


def type_document(type_: SqlType) -> dict[str, Any]:
    return {
        "kind": type_.kind.value,
        "precision": type_.precision,
        "scale": type_.scale,
        "element": None if type_.element is None else type_document(type_.element),
    }
