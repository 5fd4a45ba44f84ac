"""At a start: do the catalog and the views' file belong together?

The engine removes the rows of queries that the catalog does not know. Beside an empty catalog, or that of another
directory, it would remove all of them. So the server refuses to start there and changes nothing.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import duckdb

from catalog.store import Catalog
from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.duckdb.ledger import identity

_SETTING = "data_identity"


def agree(catalog: Catalog, cursor: duckdb.DuckDBPyConnection, directory: Path) -> None:
    """Gives both the identity that one of them lacks; F0000 where they do not belong together."""
    own, of_views = catalog.settings.get(_SETTING), identity.read(cursor)
    if own is not None and own == of_views:
        return
    kept = identity.kept_queries(cursor)
    if kept and not _are_known(kept, catalog, differing=own is not None and of_views is not None):
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR,
            f"the catalog and the views in {directory} do not belong together",
            detail=f"views.duckdb has the rows of {len(kept)} queries, which catalog.db does not know: the catalog is "
            "new, or that of another data directory. Nothing has been changed.",
            hint="Put back catalog.db from a backup of this directory. If the rows of the views are not wanted, move "
            "views.duckdb and views.duckdb.wal away instead: the views of the catalog are built anew.",
        )
    wanted = own or (of_views if kept else None) or uuid.uuid4().hex
    if own is None:
        with catalog.transaction():
            catalog.settings.set(_SETTING, wanted)
    identity.write(cursor, wanted)


def _are_known(kept: frozenset[str], catalog: Catalog, *, differing: bool) -> bool:
    """Of directories that were made before there were identities, the queries tell: one that is in both files, or a
    catalog from which the last query was dropped just before the server ended."""
    if differing:
        return False
    known = {query.id for query in catalog.queries.all()}
    return bool(kept & known) or (not known and not catalog.is_new)
