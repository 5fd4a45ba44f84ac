"""Views over another emulator, which has accounts in its ARNs and filters of shards: each record counts once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import psycopg
import pytest

from tests.faults.live import temporary_server
from tests.kinesis.test_views import shaken
from tests.services.kinesis import Stream
from tests.services.kinesis_local import ACCOUNT, KinesisLocal

pytestmark = [pytest.mark.kinesis, pytest.mark.spark, pytest.mark.night]


@pytest.fixture(scope="module")
def local() -> Iterator[KinesisLocal]:
    emulator = KinesisLocal()
    try:
        yield emulator.start()
    finally:
        emulator.stop()


def test_splits_merges_and_kills(local: KinesisLocal) -> None:
    stream = Stream(local.client(), f"s-{uuid.uuid4().hex[:12]}").create(2)
    with temporary_server() as server:
        shaken(server.start(), local, stream, seed=6, changes=6, kills=3)


def test_streams_of_another_account_are_refused(local: KinesisLocal) -> None:
    stream = Stream(local.client(), f"s-{uuid.uuid4().hex[:12]}").create()
    with temporary_server() as server:
        server.start()
        for name, account in (("mine", ACCOUNT), ("others", "111111111111")):
            server.run(f"CREATE STORE {name} WITH ({local.properties}, 'kinesis.account.id' = '{account}')")
        declared = "CREATE STREAM {} (n BIGINT) WITH ('store' = '{}', 'topic' = '{}', 'value.format' = 'json')"
        server.run(declared.format("s", "mine", stream.name))
        with pytest.raises(psycopg.Error) as caught:
            server.run(declared.format("o", "others", stream.name))
        assert "account" in str(caught.value)
