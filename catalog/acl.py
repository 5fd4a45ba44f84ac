"""Access control lists, by PostgreSQL's rules: who gave which privilege to whom, and with what right to pass it on.

An object's list is None as long as nobody has granted or revoked anything: then its owner has all, and PUBLIC what the
kind of object gives everybody. The first GRANT or REVOKE writes that down, so that an owner may take rights from
himself, and what everybody has may be taken away. Roles are named by their oids, 0 is PUBLIC.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.quoting import quoted

PUBLIC = 0


class Privilege(enum.Enum):
    """The value is the letter by which PostgreSQL writes it; the order is the one in which it does."""

    INSERT = "a"
    SELECT = "r"
    UPDATE = "w"
    DELETE = "d"
    TRUNCATE = "D"
    REFERENCES = "x"
    TRIGGER = "t"
    EXECUTE = "X"
    USAGE = "U"
    CREATE = "C"
    TEMPORARY = "T"
    CONNECT = "c"


Privileges = frozenset[Privilege]
NOTHING: Privileges = frozenset()


class ObjectKind(enum.Enum):
    """The value is the word of messages."""

    RELATION = "relation"
    SCHEMA = "schema"
    DATABASE = "database"
    STORE = "store"
    SCHEMA_REGISTRY = "schema registry"
    DESCRIPTOR_SOURCE = "descriptor source"
    TYPE = "type"
    FUNCTION = "function"


ALL: Mapping[ObjectKind, Privileges] = {
    # Rows of views are never written by a client: UPDATE and the like are there because scripts grant them.
    ObjectKind.RELATION: frozenset(
        {
            Privilege.INSERT, Privilege.SELECT, Privilege.UPDATE, Privilege.DELETE, Privilege.TRUNCATE,
            Privilege.REFERENCES, Privilege.TRIGGER,
        }
    ),
    ObjectKind.SCHEMA: frozenset({Privilege.USAGE, Privilege.CREATE}),
    ObjectKind.DATABASE: frozenset({Privilege.CREATE, Privilege.TEMPORARY, Privilege.CONNECT}),
    # USAGE reads what is in the store, INSERT writes records to it, CREATE makes and removes its entities.
    ObjectKind.STORE: frozenset({Privilege.USAGE, Privilege.INSERT, Privilege.CREATE}),
    ObjectKind.SCHEMA_REGISTRY: frozenset({Privilege.USAGE}),
    ObjectKind.DESCRIPTOR_SOURCE: frozenset({Privilege.USAGE}),
    ObjectKind.TYPE: frozenset({Privilege.USAGE}),
    ObjectKind.FUNCTION: frozenset({Privilege.EXECUTE}),
}  # fmt: skip

OF_PUBLIC: Mapping[ObjectKind, Privileges] = {
    ObjectKind.RELATION: NOTHING,
    ObjectKind.SCHEMA: NOTHING,
    ObjectKind.DATABASE: frozenset({Privilege.TEMPORARY, Privilege.CONNECT}),
    ObjectKind.STORE: NOTHING,
    ObjectKind.SCHEMA_REGISTRY: NOTHING,
    ObjectKind.DESCRIPTOR_SOURCE: NOTHING,
    ObjectKind.TYPE: frozenset({Privilege.USAGE}),
    ObjectKind.FUNCTION: frozenset({Privilege.EXECUTE}),
}


@dataclass(frozen=True)
class AclItem:
    """What one role has given to another; ``grantable`` is the part that may be passed on."""

    grantee: int
    grantor: int
    privileges: Privileges
    grantable: Privileges = NOTHING


Acl = tuple[AclItem, ...]


def default(kind: ObjectKind, owner: int) -> Acl:
    """What holds as long as nothing was granted or revoked."""
    to_public = (AclItem(PUBLIC, owner, OF_PUBLIC[kind]),) if OF_PUBLIC[kind] else ()
    return (*to_public, AclItem(owner, owner, ALL[kind]))


def of_public_schema(owner: int) -> Acl:
    """Every database has the schema public, in which all may look."""
    return (*default(ObjectKind.SCHEMA, owner), AclItem(PUBLIC, owner, frozenset({Privilege.USAGE})))


def held(acl: Iterable[AclItem], roles: Collection[int]) -> Privileges:
    """What any of the roles has."""
    return frozenset(p for item in acl if item.grantee in roles for p in item.privileges)


def may_grant(acl: Iterable[AclItem], owner: int, roles: Collection[int], kind: ObjectKind) -> Privileges:
    """What any of the roles may pass on; an owner may all, also what he has taken from himself."""
    if owner in roles:
        return ALL[kind]
    return frozenset(p for item in acl if item.grantee in roles for p in item.grantable)


def grant(acl: Acl, *, grantor: int, owner: int, grantee: int, privileges: Privileges, with_grant_option: bool) -> Acl:
    if with_grant_option:
        if grantee == PUBLIC:
            raise SqlError(sqlstates.INVALID_GRANT_OPERATION, "grant options can only be granted to roles")
        _refuse_circle(acl, grantor, owner, grantee, privileges)
    for at, item in enumerate(acl):
        if (item.grantee, item.grantor) == (grantee, grantor):
            grantable = item.grantable | privileges if with_grant_option else item.grantable
            changed = replace(item, privileges=item.privileges | privileges, grantable=grantable)
            return (*acl[:at], changed, *acl[at + 1 :])
    return (*acl, AclItem(grantee, grantor, privileges, privileges if with_grant_option else NOTHING))


def revoke(
    acl: Acl, *, grantor: int, owner: int, grantee: int, privileges: Privileges, option_only: bool, cascade: bool
) -> Acl:
    """Takes what this grantor gave. What the grantee has passed on goes with it by CASCADE; without, it is refused."""
    for at, item in enumerate(acl):
        if (item.grantee, item.grantor) != (grantee, grantor):
            continue
        left = item.privileges if option_only else item.privileges - privileges
        changed = replace(item, privileges=left, grantable=item.grantable - privileges)
        kept = (changed,) if left else ()
        lost = item.grantable & privileges
        return _after_loss((*acl[:at], *kept, *acl[at + 1 :]), grantee, owner, lost, cascade=cascade)
    return acl


def _after_loss(acl: Acl, role: int, owner: int, lost: Privileges, *, cascade: bool) -> Acl:
    """``role`` may no longer pass on what it has ``lost``, unless it has the right from another grantor."""
    if role == owner:
        return acl
    lost -= frozenset(p for item in acl if item.grantee == role for p in item.grantable)
    while True:
        dependent = next((item for item in acl if item.grantor == role and item.privileges & lost), None)
        if dependent is None:
            return acl
        if not cascade:
            raise SqlError(
                sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
                "dependent privileges exist",
                hint="Use CASCADE to revoke them too.",
            )
        acl = revoke(
            acl, grantor=role, owner=owner, grantee=dependent.grantee, privileges=lost, option_only=False, cascade=True
        )


def _refuse_circle(acl: Acl, grantor: int, owner: int, grantee: int, privileges: Privileges) -> None:
    """Nobody gives the right to pass on to the one from whom he has it: neither could ever be taken from them."""
    if grantor == owner:
        return
    without: Acl = acl
    while True:
        given = next((item for item in without if item.grantee == grantee and item.grantable), None)
        if given is None:
            break
        without = revoke(
            without, grantor=given.grantor, owner=owner, grantee=grantee, privileges=given.grantable,
            option_only=True, cascade=True,
        )  # fmt: skip
    own = frozenset(p for item in without if item.grantee == grantor for p in item.grantable)
    if privileges - own:
        raise SqlError(sqlstates.INVALID_GRANT_OPERATION, "grant options cannot be granted back to your own grantor")


def merged(left: Acl, right: Acl) -> Acl:
    """What both lists give together."""
    found: dict[tuple[int, int], AclItem] = {}
    for item in (*left, *right):
        known = found.get((item.grantee, item.grantor))
        if known is not None:
            item = replace(
                known, privileges=known.privileges | item.privileges, grantable=known.grantable | item.grantable
            )
        found[item.grantee, item.grantor] = item
    return tuple(found.values())


def with_owner(acl: Acl | None, old: int, new: int) -> Acl | None:
    """The list after a change of owner: what the old one had and gave is the new one's."""
    if acl is None or old == new:
        return acl
    renamed = {old: new}
    items = (
        replace(item, grantee=renamed.get(item.grantee, item.grantee), grantor=renamed.get(item.grantor, item.grantor))
        for item in acl
    )
    return merged((), tuple(items))


def roles_in(acl: Acl | None, owner: int) -> frozenset[int]:
    """The roles other than the owner that something was given to or by."""
    return frozenset(r for item in acl or () for r in (item.grantee, item.grantor)) - {owner, PUBLIC}


def letters(privileges: Privileges, grantable: Privileges = NOTHING) -> str:
    """``r*w``: as PostgreSQL writes them, a star behind what may be passed on."""
    return "".join(p.value + ("*" if p in grantable else "") for p in Privilege if p in privileges)


def texts(acl: Acl, names: Mapping[int, str]) -> list[str]:
    """``anna=r/postgres``: PostgreSQL's aclitems."""
    return [
        f"{_name(item.grantee, names)}={letters(item.privileges, item.grantable)}/{_name(item.grantor, names)}"
        for item in acl
    ]


def _name(role: int, names: Mapping[int, str]) -> str:
    if role == PUBLIC:
        return ""
    name = names.get(role, str(role))
    plain = name.replace("_", "a").isalnum() and name.isascii()
    return name if plain else quoted(name)
