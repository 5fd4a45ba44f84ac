"""Refusals for roles without rights: PostgreSQL's words and SQLSTATEs, for every room that asks the catalog."""

from __future__ import annotations

from catalog.authority import kind_of
from catalog.model import Relation
from catalog.privileges import Thing
from mvserver import sqlstates
from mvserver.errors import SqlError


def word(thing: Thing) -> str:
    """The kind of an object in messages."""
    if isinstance(thing, Relation):
        return thing.kind
    return kind_of(thing).value


def denied_for(what: str, position: int | None = None) -> SqlError:
    """``what`` has the kind and the name, as in ``schema s``."""
    return SqlError(sqlstates.INSUFFICIENT_PRIVILEGE, f"permission denied for {what}", position=position)


def denied(thing: Thing, position: int | None = None) -> SqlError:
    return denied_for(f"{word(thing)} {thing.name}", position)


def no_connect(database: str, position: int | None = None) -> SqlError:
    error = denied_for(f'database "{database}"', position)
    error.detail = "User does not have CONNECT privilege."
    return error


def not_owner(what: str, position: int | None = None) -> SqlError:
    return SqlError(sqlstates.INSUFFICIENT_PRIVILEGE, f"must be owner of {what}", position=position)
