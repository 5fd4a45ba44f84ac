"""The table of store kinds: what is asked of it, and that nobody outside of it names a kind."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path

import pytest

from mvserver.errors import SqlError
from spark_sinks.decode.formats import VALUE_FORMATS
from spark_sinks.file.kind import FILE
from spark_sinks.kafka.kind import CONFLUENT_KAFKA, KAFKA
from spark_sinks.kinds import KINDS, entity_properties, secret_keys
from spark_sinks.store_kind import check_entity_properties

KNOWN = entity_properties()


@pytest.mark.parametrize(
    "key", ["topic.partitions", "topic.replicas", "kafka.topic.retention.ms", "kafka.partitions", "topic.shards"]
)
def test_properties_of_other_kinds_are_refused_with_a_hint(key: str) -> None:
    with pytest.raises(SqlError) as caught:
        check_entity_properties(FILE, [key], KNOWN)
    assert (caught.value.sqlstate, caught.value.message) == (
        "0A000",
        f'property "{key}" is not supported for a store of type FILE',
    )
    assert caught.value.hint is not None


@pytest.mark.parametrize("key", ["topic.shards", "kafka.topic."])
def test_unknown_properties_of_entities(key: str) -> None:
    with pytest.raises(SqlError) as caught:
        check_entity_properties(KAFKA, [key], KNOWN)
    assert (caught.value.sqlstate, caught.value.message) == (
        "22023",
        f'property "{key}" is not known for an entity of a store of type KAFKA',
    )
    check_entity_properties(KAFKA, ["topic.partitions", "kafka.replicas", "kafka.topic.retention.ms"], KNOWN)


def test_every_kind_has_a_name_of_its_own() -> None:
    names = [kind.name for kind in KINDS]
    assert len(set(names)) == len(names)
    assert all(name == name.upper() for name in names)


def test_secret_keys_are_those_of_all_kinds() -> None:
    assert secret_keys() == {
        "kafka.sasl.password",
        "sasl.password",
        "sasl.oauthbearer.client.secret",
        "kinesis.secret_access_key",
        "kinesis.session_token",
        "postgres.password",
        "aws.secret_access_key",
        "aws.session_token",
        "azure.account_key",
        "azure.sas_token",
        "gcs.service_account_key",
        "gcs.token",
        "databricks.app_token",
        "iceberg.password",
        "iceberg.credential",
        "iceberg.token",
        "s3.secret_access_key",
        "s3.session_token",
        "snowflake.client.key",
        "snowflake.client.key_passphrase",
        "snowflake.password",
    }


def test_kinds_that_share_a_connector_have_its_settings_once() -> None:
    names = [row.name for kind in KINDS for row in kind.settings]
    assert len(set(names)) == len(names)
    assert CONFLUENT_KAFKA.connector is KAFKA.connector
    assert CONFLUENT_KAFKA.entity_properties == KAFKA.entity_properties


def test_what_can_be_written_can_be_read() -> None:
    for kind in KINDS:
        assert (kind.reader is None) == (not kind.formats)
        assert kind.reader is not None or kind.tables is not None
        assert set(kind.written_formats) <= set(kind.formats) <= set(VALUE_FORMATS)
        assert bool(kind.written_formats) == (kind.sink is not None)


# --- nobody outside of spark_sinks names a kind that there is -------------------------------------------------------
ROOT = Path(__file__).resolve().parents[1]
# FILE stands there for any file's name, in a usage line and in a command of openssl: no store is meant.
PLACEHOLDERS = ('metavar="FILE"', "openssl pkey -in FILE -out FILE.")
WORDS = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))


def named_kinds(path: Path) -> list[str]:
    """The lines in which a text or a comment has a kind's name as a word of its own."""
    names = re.compile(rf"\b({'|'.join(kind.name for kind in KINDS)})\b")
    found = []
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            placeholder = any(words in token.line for words in PLACEHOLDERS)
            if token.type in WORDS and names.search(token.string) and not placeholder:
                found.append(f"{path.relative_to(ROOT)}:{token.start[0]}: {token.line.strip()}")
    return found


def test_no_kind_is_named_outside_of_its_folder() -> None:
    rooms = [path for room in ("mvserver", "catalog") for path in sorted((ROOT / room).rglob("*.py"))]
    watched = [path for path in rooms if ROOT / "mvserver" / "demo" not in path.parents]
    assert [line for path in watched for line in named_kinds(path)] == []
    assert named_kinds(ROOT / "spark_sinks" / "kafka" / "kind.py")
