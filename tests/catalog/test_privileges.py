"""Privileges in the catalog's file: what a migration makes of an older one, what survives a restart, and the rules by
which lists change, on random lists against a plain model of them."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from catalog import acl, migrations
from catalog.acl import ALL, PUBLIC, Acl, AclItem, ObjectKind, Privilege
from catalog.migrations import m0001_initial, m0002_role_passwords
from catalog.model import Membership, Role
from catalog.store import Catalog
from mvserver.errors import SqlError
from tests.catalog.objects import add_view, relation, store

SELECT, INSERT = frozenset({Privilege.SELECT}), frozenset({Privilege.INSERT})
OWNER, ANNA, BEN, CLEO = 10, 101, 102, 103


def grant(list_: Acl, grantor: int, grantee: int, privileges: acl.Privileges = SELECT, *, option: bool = False) -> Acl:
    return acl.grant(
        list_, grantor=grantor, owner=OWNER, grantee=grantee, privileges=privileges, with_grant_option=option
    )


def revoke(
    list_: Acl, grantor: int, grantee: int, privileges: acl.Privileges = SELECT, *, cascade: bool = False
) -> Acl:
    return acl.revoke(
        list_, grantor=grantor, owner=OWNER, grantee=grantee, privileges=privileges, option_only=False, cascade=cascade
    )


def test_an_older_catalog_opens_as_if_nobody_had_granted_anything(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    old = sqlite3.connect(path)
    m0001_initial.apply(old)
    m0002_role_passwords.apply(old)
    old.execute("INSERT INTO roles (id, oid, name, superuser, created_at) VALUES ('r', 20000, 'anna', 0, 1.0)")
    old.execute("INSERT INTO databases SELECT 'd', 20001, 'hers', 'anna', 1.0")
    old.execute("INSERT INTO schemas SELECT 's', 20002, 'd', 'public', 'anna', 1.0")
    old.execute("INSERT INTO schemas SELECT 't', 20003, 'd', 'own', 'anna', 1.0")
    old.execute(f"PRAGMA application_id = {migrations.APPLICATION_ID}")
    old.execute("PRAGMA user_version = 2")
    old.commit()
    old.close()
    catalog = Catalog.open(path)
    names = {role.oid: role.name for role in catalog.roles.all()}
    found = {(schema.owner, schema.name): schema.acl for schema in catalog.schemas.all()}
    assert {key: None if list_ is None else acl.texts(list_, names) for key, list_ in found.items()} == {
        ("postgres", "public"): ["postgres=UC/postgres", "=U/postgres"],
        ("anna", "public"): ["anna=UC/anna", "=U/anna"],
        ("anna", "own"): None,
    }
    role = catalog.roles.get("anna")
    assert (role.create_store, role.connection_limit, role.valid_until, role.settings) == (False, -1, None, ())
    catalog.close()


def test_what_is_granted_survives_a_restart(tmp_path: Path) -> None:
    catalog = Catalog.open(tmp_path / "c.sqlite")
    with catalog.transaction():
        anna = catalog.roles.add(
            Role("", 0, "anna", superuser=False, create_store=True, connection_limit=2, valid_until=5.5,
                 settings=(("search_path", "a, b"),))
        )  # fmt: skip
        team = catalog.roles.add(Role("", 0, "team", superuser=False))
        kept = catalog.stores.add(store("k"))
        source = catalog.relations.add(relation(catalog, "clicks", store_id=kept.id))
        catalog.memberships.put(Membership(team.oid, anna.oid, 10, admin=True))
    view = add_view(catalog, "visits", source)
    with catalog.transaction():
        things = (view, kept, catalog.databases.get("postgres"), *catalog.schemas.all())
        for thing in things:
            catalog.privileges.set_acl(
                thing, (*catalog.privileges.acl(thing), AclItem(anna.oid, 10, SELECT, SELECT), AclItem(0, 10, INSERT))
            )
    before = [thing.acl for thing in catalog.privileges.things()]
    catalog.close()
    catalog = Catalog.open(tmp_path / "c.sqlite")
    assert catalog.roles.get("anna") == anna
    assert [thing.acl for thing in catalog.privileges.things()] == before
    assert len([list_ for list_ in before if list_]) == 4
    assert catalog.memberships.all() == (Membership(team.oid, anna.oid, 10, admin=True),)
    assert catalog.privileges.authority("anna").oids == {0, anna.oid, team.oid}
    assert {thing.oid for thing in catalog.privileges.given_to(anna)} == {thing.oid for thing in things}
    with catalog.transaction():
        catalog.roles.rename(anna, "bea")
        catalog.privileges.set_owner(view, catalog.roles.get("bea"))
    catalog.close()
    catalog = Catalog.open(tmp_path / "c.sqlite")
    assert catalog.roles.owned_by("bea") == (f"materialized view {view.name}", f"query {catalog.queries.all()[0].id}")
    with catalog.transaction():
        catalog.roles.rename(catalog.roles.get("bea"), "anna")
    assert [row[0] for row in sqlite3.connect(catalog.path).execute("PRAGMA foreign_key_check").fetchall()] == []
    catalog.close()


def test_a_right_to_pass_on_goes_with_what_was_passed_on() -> None:
    list_ = grant(acl.default(ObjectKind.RELATION, OWNER), OWNER, ANNA, option=True)
    list_ = grant(list_, ANNA, BEN, option=True)
    list_ = grant(list_, BEN, CLEO)
    with pytest.raises(SqlError) as raised:
        revoke(list_, OWNER, ANNA)
    assert raised.value.sqlstate == "2BP01"
    assert revoke(list_, OWNER, ANNA, cascade=True) == acl.default(ObjectKind.RELATION, OWNER)
    # who has it from two keeps it when one takes it
    twice = grant(list_, OWNER, BEN, option=True)
    left = revoke(twice, ANNA, BEN)
    assert acl.held(left, {CLEO}) == SELECT


def test_nobody_gives_the_right_back_to_the_one_from_whom_he_has_it() -> None:
    list_ = grant(acl.default(ObjectKind.RELATION, OWNER), OWNER, ANNA, option=True)
    list_ = grant(list_, ANNA, BEN, option=True)
    with pytest.raises(SqlError) as raised:
        grant(list_, BEN, ANNA, option=True)
    assert raised.value.sqlstate == "0LP01"
    with pytest.raises(SqlError):
        grant(list_, OWNER, PUBLIC, option=True)


def test_a_new_owner_has_what_the_old_one_had() -> None:
    list_ = grant(acl.default(ObjectKind.RELATION, OWNER), OWNER, ANNA)
    changed = acl.with_owner(list_, OWNER, ANNA)
    assert changed == (AclItem(ANNA, ANNA, ALL[ObjectKind.RELATION]),)
    assert acl.with_owner(None, OWNER, ANNA) is None


def test_no_list_holds_what_nobody_may_have_given() -> None:
    """Random grants and revokes by those who may: at each moment every grantor of an item is the owner or may pass on
    all that the item gives."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    refusals: set[str] = set()
    for _ in range(60):
        list_: Acl = acl.default(ObjectKind.RELATION, OWNER)
        for _ in range(40):
            grantor, grantee = chance.choice((OWNER, ANNA, BEN, CLEO)), chance.choice((ANNA, BEN, CLEO, PUBLIC))
            may = acl.may_grant(list_, OWNER, {grantor}, ObjectKind.RELATION) & (SELECT | INSERT)
            given = frozenset(p for p in may if chance.random() < 0.7)
            if not given or grantor == grantee:
                continue
            try:
                if chance.random() < 0.6:
                    list_ = grant(list_, grantor, grantee, given, option=chance.random() < 0.5)
                else:
                    list_ = revoke(list_, grantor, grantee, given, cascade=chance.random() < 0.7)
            except SqlError as error:
                refusals.add(error.sqlstate)
            for item in list_:
                allowed = acl.may_grant(list_, OWNER, {item.grantor}, ObjectKind.RELATION)
                assert item.privileges <= allowed, f"seed {seed}: {acl.texts(list_, {})}"
                assert item.grantable <= item.privileges, f"seed {seed}"
    assert refusals <= {"2BP01", "0LP01"}, f"seed {seed}"
