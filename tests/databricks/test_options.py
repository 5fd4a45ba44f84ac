"""The properties of a store, and what they may not name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mvserver.errors import SqlError
from spark_sinks.databricks.delta import Storage
from spark_sinks.databricks.options import DatabricksOptions

PLAIN = {"uris": "https://dbc-1.cloud.databricks.com/", "databricks.app_token": "dapi1"}
S3 = {"aws.access_key_id": "a", "aws.secret_access_key": "hidden"}


def read(properties: dict[str, Any], *roots: Path) -> DatabricksOptions:
    return DatabricksOptions.from_properties(properties, roots)


def test_statements_of_the_dialect(tmp_path: Path) -> None:
    found = read(
        {**PLAIN, **S3, "access_region": "AWS us-east-1", "databricks.warehouse_id": "x",
         "databricks.warehouse_port": 443, "databricks.cloud.s3.bucket": "lake-1",
         "databricks.cloud.region": "us-west-2"}
    )  # fmt: skip
    assert (found.workspace, found.location, found.s3.region) == (
        "https://dbc-1.cloud.databricks.com", "s3://lake-1", "us-west-2",
    )  # fmt: skip
    assert "dapi1" not in repr(found)
    assert "hidden" not in repr(found)
    assert found.table_location(None, "main.web.t") == "s3://lake-1/main/web/t"
    assert found.table_location("s3://other/t/", "main.web.t") == "s3://other/t"
    options = Storage("s", found, 3.0).client_options("s3://lake-1/x")
    assert options == {
        "aws_access_key_id": "a", "aws_secret_access_key": "hidden", "aws_region": "us-west-2", "timeout": "3s",
        "connect_timeout": "3s", "max_retries": "2", "retry_timeout": "3s", "aws_conditional_put": "etag",
    }  # fmt: skip
    assert Storage("s", found, 3.0).client_options("file:///x") == {}


@pytest.mark.parametrize(
    ("properties", "sqlstate", "words"),
    [
        ({"uris": "https://host"}, "22023", 'needs the property "databricks.app_token"'),
        ({"databricks.app_token": "x"}, "22023", 'needs the property "uris"'),
        ({**PLAIN, "uris": "https://ann:secret@host"}, "22023", "is not the address of a workspace"),
        ({**PLAIN, "uris": "https://host/path"}, "22023", "is not the address of a workspace"),
        ({**PLAIN, "uris": "ftp://host"}, "22023", "is not the address of a workspace"),
        ({**PLAIN, "colour": "red"}, "22023", 'property "colour" is not known'),
        ({**PLAIN, "databricks.cloud.s3.bucket": "a/b"}, "22023", "is not the name of a bucket"),
        ({**PLAIN, "databricks.cloud.s3.bucket": "lake", "databricks.location": "x"}, "22023", "not given together"),
        ({**PLAIN, "databricks.location": "/etc"}, "42501", "is not under a configured root"),
        ({**PLAIN, "databricks.location": "gs://bucket/x"}, "0A000", "storage of the kind gs:// is not supported"),
        ({**PLAIN, "aws.access_key_id": "a"}, "22023", "are given together"),
        ({**PLAIN, "s3.endpoint": "http://s3:9000"}, "42501", "the server's own credentials are not used"),
    ],
)
def test_what_is_refused(tmp_path: Path, properties: dict[str, Any], sqlstate: str, words: str) -> None:
    with pytest.raises(SqlError) as caught:
        read(properties, tmp_path)
    assert (caught.value.sqlstate, words in caught.value.message) == (sqlstate, True), caught.value.message


def test_a_table_without_a_place(tmp_path: Path) -> None:
    with pytest.raises(SqlError) as caught:
        read(PLAIN, tmp_path).table_location(None, "main.web.t")
    assert (caught.value.sqlstate, caught.value.message) == ("22023", "a table that is made needs a place")
