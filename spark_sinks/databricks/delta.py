"""Delta tables where they lie, opened with bounds on waits, and the client's errors in PostgreSQL's terms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as arrow_files
from deltalake import DeltaTable
from deltalake.exceptions import (
    CommitFailedError,
    DeltaError,
    DeltaProtocolError,
    SchemaMismatchError,
    TableNotFoundError,
)

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.databricks.options import DatabricksOptions
from spark_sinks.databricks.unity import RegisteredTable, UnityCatalog
from spark_sinks.open_folders import LOCAL_SCHEMES

EXTERNAL, DELTA = "EXTERNAL", "DELTA"
_RETRIES = 2  # by the client; then the commit is tried again as a whole
_DECORATION = re.compile("\x1b\\[[0-9;]*m|\u21b3")


@dataclass(frozen=True)
class Storage:
    """How a store's tables are reached."""

    store: str
    options: DatabricksOptions
    timeout_s: float

    def table(self, location: str) -> DeltaTable:
        """42704 where there is no Delta table, 42501 where it lies in a place that is not open."""
        self.options.check_location(location)
        with self.reported():
            return DeltaTable(path_of(location), storage_options=self.client_options(location))

    def is_table(self, location: str) -> bool:
        """Not by the client's own question, which keeps every thread of the process waiting for the answer."""
        try:
            self.table(location)
        except SqlError as error:
            if error.sqlstate != sqlstates.UNDEFINED_OBJECT:
                raise
            return False
        return True

    def files(self, location: str) -> tuple[arrow_files.FileSystem, str]:
        """The place's file system, and the table's folder in it. Arrow's own: the Delta client's keeps every thread of
        the process waiting for an answer."""
        if urlsplit(location).scheme in LOCAL_SCHEMES:
            return arrow_files.LocalFileSystem(), path_of(location)
        s3, parts = self.options.s3, urlsplit(location)
        endpoint = urlsplit(s3.endpoint) if s3.endpoint else None
        system = arrow_files.S3FileSystem(
            access_key=s3.key,
            secret_key=s3.secret,
            session_token=s3.session,
            region=s3.region,
            endpoint_override=endpoint.netloc if endpoint else None,
            scheme=endpoint.scheme if endpoint else "https",
            connect_timeout=self.timeout_s,
            request_timeout=self.timeout_s,
        )
        return system, f"{parts.netloc}{parts.path}"

    def client_options(self, location: str) -> dict[str, str]:
        if urlsplit(location).scheme in LOCAL_SCHEMES:
            return {}
        s3, seconds = self.options.s3, f"{max(1, round(self.timeout_s))}s"
        given = {
            "aws_access_key_id": s3.key,
            "aws_secret_access_key": s3.secret,
            "aws_session_token": s3.session,
            "aws_region": s3.region,
            "aws_endpoint_url": s3.endpoint,
            "aws_allow_http": "true" if urlsplit(s3.endpoint or "").scheme == "http" else None,
        }
        bounds = {
            "timeout": seconds,
            "connect_timeout": seconds,
            "max_retries": str(_RETRIES),
            "retry_timeout": seconds,
            "aws_conditional_put": "etag",
        }
        return {**{key: value for key, value in given.items() if value is not None}, **bounds}

    @contextmanager
    def reported(self) -> Iterator[None]:
        """What the client raises, as errors of the store."""
        try:
            yield
        except CommitFailedError as error:
            raise SqlError(
                sqlstates.SERIALIZATION_FAILURE,
                f'a table of store "{self.store}" was changed by another writer meanwhile',
                detail=_sentence(error),
            ) from error
        except TableNotFoundError as error:
            raise SqlError(
                sqlstates.UNDEFINED_OBJECT, f'store "{self.store}" has no Delta table at that place',
                detail=_sentence(error),
            ) from error  # fmt: skip
        except DeltaProtocolError as error:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'a table of store "{self.store}" has features that are not supported',
                detail=_sentence(error),
                hint="Write to another table, or take the features away there.",
            ) from error
        except (SchemaMismatchError, pa.ArrowInvalid) as error:
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f'a table of store "{self.store}" does not take the rows',
                detail=_sentence(error),
            ) from error
        except (DeltaError, OSError) as error:
            raise self.unreadable(error) from error

    def unreadable(self, error: BaseException) -> SqlError:
        return SqlError(
            sqlstates.IO_ERROR,
            f'a file of store "{self.store}" could not be read or written',
            detail=_sentence(error),
        )


def registered(catalog: UnityCatalog, store: str, entity: str) -> RegisteredTable:
    """42704 where there is none, 0A000 for one that is not the server's to write to."""
    found = catalog.table(entity) if entity.count(".") == 2 else None
    if found is None:
        raise SqlError(
            sqlstates.UNDEFINED_OBJECT,
            f'entity "{entity}" does not exist in store "{store}"',
            hint=None if entity.count(".") == 2 else "A table is named with its catalog: catalog.schema.table.",
        )
    return found


def written_location(found: RegisteredTable) -> str:
    """Where a table lies that queries may write to."""
    if found.type != EXTERNAL or found.format != DELTA or found.location is None:
        kind = "managed" if found.type == "MANAGED" else found.type.lower().replace("_", " ")
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'entity "{found.name}" is a {kind} table of format {found.format or "unknown"}, '
            "and cannot be written from outside of Databricks",
            hint="Name an external table of format DELTA, or one that is not there yet.",
        )
    return found.location


def path_of(location: str) -> str:
    parts = urlsplit(location)
    if parts.scheme in LOCAL_SCHEMES:
        return unquote(parts.path)
    return location.replace("s3a://", "s3://", 1)


def _sentence(error: BaseException) -> str | None:
    """What the client says: a line for each cause, in colours."""
    lines = (_DECORATION.sub("", line).strip() for line in words_of(error).splitlines())
    said = " ".join(line for line in lines if line)
    return f"{said[:500].rstrip('.')}." if said else None
