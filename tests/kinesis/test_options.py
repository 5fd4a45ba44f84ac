"""The properties of a KINESIS store: what is accepted, what is refused, and that secrets are not shown."""

from __future__ import annotations

from typing import Any

import pytest

from mvserver.errors import SqlError
from spark_sinks.kinesis.options import KinesisOptions
from spark_sinks.kinesis.properties import shards_of

KEYS = {"kinesis.access_key_id": "AKIA", "kinesis.secret_access_key": "s3cr3t"}


def read(**properties: Any) -> KinesisOptions:
    return KinesisOptions.from_properties({key.replace("_", "."): value for key, value in properties.items()})


def test_the_published_statement() -> None:
    options = KinesisOptions.from_properties(
        {
            "type": "KINESIS",
            "availability_zone": "us-east-2",
            "uris": "https://kinesis.us-east-2.amazonaws.com:443",
            **KEYS,
        }
    )
    assert (options.region, options.endpoint) == ("us-east-2", "https://kinesis.us-east-2.amazonaws.com:443")
    assert "s3cr3t" not in repr(options)


def test_without_keys_boto3_looks_for_them_at_the_services_own_addresses() -> None:
    assert read(access_region="eu-west-1") == KinesisOptions("eu-west-1")
    assert read(uris="https://kinesis.eu-west-1.amazonaws.com").region == "eu-west-1"
    for address in ("http://127.0.0.1:4567", "https://kinesis.eu-west-1.amazonaws.com.example.org",
                    "http://kinesis.eu-west-1.amazonaws.com", "https://example.org"):  # fmt: skip
        with pytest.raises(SqlError) as refused:
            read(uris=address, access_region="eu-west-1")
        assert refused.value.sqlstate == "42501"
        assert KinesisOptions.from_properties({"uris": address, "access.region": "eu-west-1", **KEYS}).endpoint


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, 'a store of type KINESIS needs the property "access.region"'),
        ({"access.region": "Ohio"}, 'property "access.region" has "Ohio", which is not a region'),
        ({"access.region": "us-east-1", "availability_zone": "us-east-2"},
         "the store is said to be in region us-east-1 and in region us-east-2"),
        ({"access.region": "us-east-1", "uris": "https://kinesis.us-east-2.amazonaws.com"},
         "the store is said to be in region us-east-1 and in region us-east-2"),
        ({"access.region": "us-east-1", "uris": "ftp://x"}, 'property "uris" has "ftp://x", which is not an address'),
        ({"access.region": "us-east-1", "uris": "https://a/b"},
         'property "uris" has "https://a/b", which is not an address'),
        ({"access.region": "us-east-1", "uris": "https://a:99999"},
         'property "uris" has "https://a:99999", which is not an address'),
        ({"access.region": "us-east-1", "uris": "http://u:p@a"},
         'property "uris" has "http://u:p@a", which is not an address'),
        ({"access.region": "us-east-1", "kinesis.access_key_id": "A"},
         'a store with a key of access needs the property "kinesis.secret_access_key"'),
        ({"access.region": "us-east-1", "kinesis.secret_access_key": "A"},
         'a store with a key of access needs the property "kinesis.access_key_id"'),
        ({"access.region": "us-east-1", "kinesis.session_token": "A"},
         'property "kinesis.session_token" needs the property "kinesis.access_key_id"'),
        ({"access.region": "us-east-1", "kinesis.account.id": "12"},
         'property "kinesis.account.id" has "12", which is not an account'),
        ({"access.region": "us-east-1", "kinesis.access_key_id": 5, "kinesis.secret_access_key": "a"},
         'property "kinesis.access_key_id" must be text without control characters'),
        ({"access.region": "us-east-1", "profile_name": "admin"},
         'property "profile_name" is not known for a store of type KINESIS'),
    ],
)  # fmt: skip
def test_wrong_properties(properties: dict[str, Any], message: str) -> None:
    with pytest.raises(SqlError) as refused:
        KinesisOptions.from_properties(properties)
    assert (refused.value.sqlstate, refused.value.message) == ("22023", message)


def test_the_number_of_shards() -> None:
    assert shards_of({"topic.shards": 3, "kinesis.shards": "3"}) == 3
    for wrong in ({}, {"topic.shards": 0}, {"topic.shards": "x"}, {"topic.shards": True}, {"kinesis.shards": 20_001},
                  {"topic.shards": 1, "kinesis.shards": 2}):  # fmt: skip
        with pytest.raises(SqlError) as refused:
            shards_of(wrong)
        assert refused.value.sqlstate == "22023"
