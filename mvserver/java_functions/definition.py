"""A function in Java, as the rooms pass it on: frozen, and its digest is its identity."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from mvserver.java_functions.interfaces import INTERFACES
from mvserver.python_functions.definition import kind_of, type_document
from mvserver.sql.types import Kind, SqlType


@dataclass(frozen=True)
class JavaFunction:
    """``jar`` is the file that the server keeps, ``jar_digest`` what it holds. ``strict``: NULL where an argument is
    NULL. ``method`` is that of the class, or the interface of Lenses by which the class is called.

    An ``aggregate`` is called once for a group, with the list of its first argument's values; the others are constants.
    """

    id: str
    name: str
    parameters: tuple[tuple[str, SqlType], ...]
    result: SqlType
    jar: str
    jar_digest: str
    class_name: str
    method: str
    strict: bool
    aggregate: bool = False

    @property
    def by_interface(self) -> bool:
        return self.method in INTERFACES

    @property
    def given(self) -> tuple[SqlType, ...]:
        """The types that a call has: of an aggregate's first argument, a list of them."""
        types = tuple(type_ for _, type_ in self.parameters)
        return (SqlType(Kind.ARRAY, element=types[0]), *types[1:]) if self.aggregate else types

    @cached_property
    def digest(self) -> str:
        """Part of each plan that calls it: another jar, or another class, is another plan."""
        told = {
            "name": self.name,
            "kinds": [kind_of(type_) for _, type_ in self.parameters],
            "result": type_document(self.result),
            "jar": self.jar_digest,
            "class": self.class_name,
            "method": self.method,
            "strict": self.strict,
        }
        if self.aggregate:  # what is told of other functions is part of plans that are kept
            told["aggregate"] = True
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:32]
