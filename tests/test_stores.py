"""The clients of stores: one for all statements about a store, and one of its own for each check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from catalog.model import Store
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.stores import StoreRegistry
from spark_sinks.file.kind import FILE
from spark_sinks.store_kind import StoreSettings

STORE = Store("id", 0, "s", "FILE", (("uris", "here"),), "postgres", 1.0, 1.0)
MOVED = replace(STORE, properties=(("uris", "nowhere"),), updated_at=2.0)


@dataclass
class Client:
    place: str
    closed: bool = False

    def check(self) -> None:
        if self.place == "nowhere":
            raise SqlError(sqlstates.CONNECTION_FAILURE, "it does not answer")

    def close(self) -> None:
        self.closed = True


def test_a_check_leaves_the_client_that_is_in_use() -> None:
    made: list[Client] = []

    def client(name: str, options: Any, settings: StoreSettings) -> Any:
        made.append(Client(options["uris"]))
        return made[-1]

    kind = replace(FILE, options=lambda properties, settings: cast(Any, dict(properties)), client=client)
    stores = StoreRegistry(StoreSettings({}, (), None, 1), [kind])
    used = stores.client(STORE)
    with pytest.raises(SqlError, match="08006"):
        stores.check(MOVED)
    stores.check(STORE)
    assert [each.closed for each in made] == [False, True, True]
    assert stores.client(STORE) is used
    assert stores.client(replace(STORE, updated_at=2.0)) is not used
    assert made[0].closed
