"""Which tables the client writes to rightly, by the features that their protocol names."""

from __future__ import annotations

from deltalake import DeltaTable

from mvserver import sqlstates
from mvserver.errors import SqlError

_WRITTEN = frozenset({"appendOnly", "invariants", "timestampNtz", "checkConstraints", "deletionVectors"})
_WRITER_VERSION_MAX = 3  # above it versions stand for features that are not written, up to the one that names them
_NAMED_VERSION = 7


def check_features(table: DeltaTable, *, is_keyed: bool, entity: str) -> None:
    """0A000 for a table that the server does not write to; ``is_keyed`` where rows are replaced and deleted."""
    protocol = table.protocol()
    features = frozenset(protocol.writer_features or ())
    if protocol.min_writer_version == _NAMED_VERSION:
        odd = sorted(features - _WRITTEN)
    else:
        odd = [f"writer version {protocol.min_writer_version}"] * (protocol.min_writer_version > _WRITER_VERSION_MAX)
    if is_keyed and "deletionVectors" in features:
        odd.append("deletionVectors")
    if is_keyed and table.metadata().configuration.get("delta.appendOnly", "").lower() == "true":
        odd.append("appendOnly")
    if odd:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'entity "{entity}" has features that a query like this does not write with',
            detail=f"They are {', '.join(odd)}.",
            hint="Take them away there with ALTER TABLE ... DROP FEATURE, or let CREATE TABLE AS make a table.",
        )
