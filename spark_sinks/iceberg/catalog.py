"""The client's catalog, opened with bounds on its waits, and its errors in PostgreSQL's terms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests
import sqlalchemy.exc
from pyiceberg import exceptions
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from requests.adapters import HTTPAdapter

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.iceberg.options import IcebergOptions
from spark_sinks.property_values import credentials_refused

_NO_LOGIN = re.compile(r'authentication failed|no pg_hba\.conf entry|no password supplied|role ".*" does not exist')
"""What PostgreSQL's client says of a login; it does not tell the SQLSTATE then."""
_FILE_IO = "pyiceberg.io.pyarrow.PyArrowFileIO"  # no other class, whatever a catalog names


class _BoundedAdapter(HTTPAdapter):
    """The client sets no timeout of its own."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        super().__init__()

    def send(self, request: Any, *arguments: Any, **options: Any) -> Any:
        options["timeout"] = options.get("timeout") or self._timeout_s
        return super().send(request, *arguments, **options)


class _BoundedRest(RestCatalog):
    def __init__(self, name: str, timeout_s: float, **properties: str) -> None:
        self._timeout_s = timeout_s
        super().__init__(name, **properties)

    def _create_session(self) -> requests.Session:
        session = super()._create_session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, _BoundedAdapter(self._timeout_s))
        return session


def open_catalog(options: IcebergOptions, timeout_s: float) -> Catalog:
    seconds = str(max(1, round(timeout_s)))
    properties = {
        **options.client,
        "uri": options.uri,
        "py-io-impl": _FILE_IO,
        "s3.connect-timeout": seconds,
        "s3.request-timeout": seconds,
    }
    if options.warehouse is not None:
        properties["warehouse"] = options.warehouse
    if options.is_rest:
        return _BoundedRest(options.name, timeout_s, **properties)
    wait = "connect_timeout"
    if options.file is not None:
        wait = "timeout"
        options.file.parent.mkdir(parents=True, exist_ok=True)
    return SqlCatalog(options.name, **{**properties, "uri": f"{options.uri}?{wait}={seconds}"})


def load_table(catalog: Catalog, options: IcebergOptions, store: str, entity: str) -> Table:
    """42704 where there is none, 42501 where it lies in a place of this machine that is not open."""
    if "." not in entity:
        raise no_entity(store, entity)
    try:
        table = catalog.load_table(entity)
    except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError) as error:
        raise no_entity(store, entity) from error
    options.check_location(table.location())
    if table.metadata_location:
        options.check_location(table.metadata_location)
    return table


@contextmanager
def reported(store: str) -> Iterator[None]:
    """What the client raises, as errors of the store."""
    try:
        yield
    except (exceptions.CommitFailedException, exceptions.ValidationException) as error:
        raise SqlError(
            sqlstates.SERIALIZATION_FAILURE,
            f'a table of store "{store}" was changed by another writer meanwhile',
            detail=_sentence(error),
        ) from error
    except exceptions.CommitStateUnknownException as error:
        raise SqlError(
            sqlstates.TRANSACTION_RESOLUTION_UNKNOWN,
            f'store "{store}" did not say whether a commit was made',
            detail=_sentence(error),
        ) from error
    except exceptions.ForbiddenError as error:
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE, f'store "{store}" does not allow the request', detail=_sentence(error)
        ) from error
    except (exceptions.UnauthorizedError, exceptions.AuthorizationExpiredError, exceptions.OAuthError) as error:
        raise credentials_refused(store, _sentence(error)) from error
    except (exceptions.RESTError, requests.RequestException, sqlalchemy.exc.SQLAlchemyError) as error:
        if isinstance(error, sqlalchemy.exc.OperationalError) and _NO_LOGIN.search(words_of(error)):
            raise credentials_refused(store, _sentence(error)) from error
        raise SqlError(
            sqlstates.CONNECTION_FAILURE, f'could not connect to store "{store}"', detail=_sentence(error)
        ) from error
    except ValueError as error:  # also of pydantic, for what is no catalog
        raise SqlError(
            sqlstates.SYSTEM_ERROR, f'store "{store}" gave an answer that is not understood', detail=_sentence(error)
        ) from error
    except OSError as error:
        raise SqlError(
            sqlstates.IO_ERROR, f'a file of store "{store}" could not be read or written', detail=_sentence(error)
        ) from error


def no_entity(store: str, entity: str) -> SqlError:
    return SqlError(
        sqlstates.UNDEFINED_OBJECT,
        f'entity "{entity}" does not exist in store "{store}"',
        hint=None if "." in entity else "A table is named with its namespace: namespace.table.",
    )


def _sentence(error: BaseException) -> str | None:
    """The first line of what the client says."""
    first = next((line.strip() for line in words_of(error).splitlines() if line.strip()), "")
    return f"{first[:500].rstrip('.')}." if first else None
