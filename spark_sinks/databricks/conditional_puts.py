"""Whether a bucket honours conditional writes. Where it does not, writers of a table lose each other's commits."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import urlsplit

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.databricks.options import S3Options

_PROBE = "_mvserver_probe"


def client_of(s3: S3Options, timeout_s: float) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3",
        region_name=s3.region,
        endpoint_url=s3.endpoint,
        aws_access_key_id=s3.key,
        aws_secret_access_key=s3.secret,
        aws_session_token=s3.session,
        config=Config(connect_timeout=timeout_s, read_timeout=timeout_s, retries={"max_attempts": 2}),
    )


def check(store: str, location: str, client: Any) -> None:
    """Writes an object twice where no object is: the second one must be refused. It is removed again."""
    from botocore.exceptions import BotoCoreError, ClientError

    parts = urlsplit(location)
    key = "/".join(part for part in (parts.path.strip("/"), _PROBE, uuid.uuid4().hex) if part)
    place = {"Bucket": parts.netloc, "Key": key}
    try:
        client.put_object(**place, Body=b"", IfNoneMatch="*")
        try:
            client.put_object(**place, Body=b"", IfNoneMatch="*")
        except ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") in (409, 412):
                return
            raise
        finally:
            client.delete_object(**place)
    except (BotoCoreError, ClientError) as error:
        raise SqlError(
            sqlstates.IO_ERROR,
            f'the storage of store "{store}" could not be written to',
            detail=f"{location}: {words_of(error).rstrip('.')}.",
        ) from error
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f'the storage of store "{store}" does not honour conditional writes',
        detail=f"At {location} an object was written over although If-None-Match forbade it.",
        hint="Such storage loses commits of tables; use S3, or a service that has conditional writes.",
    )
