"""Roles in the catalog's file: what a migration makes of the old ones, and who may read the file."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from catalog import migrations
from catalog.migrations import m0001_initial
from catalog.model import Role
from catalog.store import Catalog


def test_roles_of_an_older_catalog_may_log_in_and_have_no_password(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    old = sqlite3.connect(path)
    m0001_initial.apply(old)
    old.execute(f"PRAGMA application_id = {migrations.APPLICATION_ID}")
    old.execute("PRAGMA user_version = 1")
    old.commit()
    old.close()
    catalog = Catalog.open(path)
    (role,) = catalog.roles.all()
    assert (role.name, role.superuser, role.can_login, role.password) == ("postgres", True, True, None)
    with catalog.transaction():
        catalog.roles.update(replace(role, password="verifier"))
    catalog.close()
    catalog = Catalog.open(path)
    assert catalog.roles.bootstrap() == replace(role, password="verifier")
    catalog.close()


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    catalog = Catalog.open(tmp_path / "c.sqlite")
    with catalog.transaction():
        catalog.roles.add(Role("", 0, "anna", superuser=False, can_login=True, password="verifier"))
    modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.iterdir()}
    catalog.close()
    assert set(modes) >= {"c.sqlite", "c.sqlite-wal"}
    assert set(modes.values()) == {0}
