"""What a reader of a view's history is told where it cannot go on: why, and from where it could."""

from __future__ import annotations

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from spark_sinks.duckdb.history.reading import Kept

SNAPSHOT_HINT = "SUBSCRIBE ... WITH (SNAPSHOT) begins with the rows as they are."


def to_who_sees_some_rows(error: SqlError) -> SqlError:
    """Without what is kept: the places of commits count those that he does not see."""
    return SqlError(error.sqlstate, error.message, hint=error.hint)


def too_old(view: str, kept: Kept | None) -> SqlError:
    """The changes behind a token are not there."""
    if kept is None:
        return SqlError(
            sqlstates.SNAPSHOT_TOO_OLD,
            f'the history of materialized view "{view}" is not kept',
            detail="Nobody has watched it for as long as it is kept then.",
            hint=f"{SNAPSHOT_HINT} WITH ('history.millis' = n) keeps a view's history whether it is watched or not.",
        )
    return SqlError(
        sqlstates.SNAPSHOT_TOO_OLD,
        f'the changes of materialized view "{view}" behind this token are gone',
        detail=f"They are kept from {kept.since.isoformat(timespec='milliseconds')} on, behind token {kept.oldest}.",
        hint=SNAPSHOT_HINT,
    )


def other_incarnation(view: str, kept: Kept) -> SqlError:
    return SqlError(
        sqlstates.SNAPSHOT_TOO_OLD,
        f'the token is of no history that materialized view "{view}" has now',
        detail="The view was built anew since, its history was not kept for some time, or the token is another view's. "
        f"Changes are kept from {kept.since.isoformat(timespec='milliseconds')} on, behind token {kept.oldest}.",
        hint=SNAPSHOT_HINT,
    )


def other_rows(view: str) -> SqlError:
    """The holder of the token has not seen the rows that he may see now."""
    return SqlError(
        sqlstates.SNAPSHOT_TOO_OLD,
        f'the token is of other rows of materialized view "{view}" than those that may be seen now',
        detail="Its row policies, the role or its claims were others then.",
        hint=SNAPSHOT_HINT,
    )


def not_reached(view: str, kept: Kept) -> SqlError:
    return SqlError(
        sqlstates.INVALID_PARAMETER_VALUE,
        f'materialized view "{view}" has not come to this token yet',
        detail=f"Its last change has token {kept.latest}.",
    )


def too_many_watches() -> SqlError:
    return SqlError(
        sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
        f"at most {limits.WATCHES_MAX} readers may watch views at a time",
        hint="End one that is not needed any more.",
    )


def too_many_histories() -> SqlError:
    return SqlError(
        sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
        f"at most {limits.HISTORIES_MAX} views may be watched at a time",
        detail="Views with 'history.millis' do not count.",
        hint="The history of a view that is watched no more ends by itself.",
    )


def rebuilding(view: str) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'materialized view "{view}" has no content yet',
        detail="It is being made or rebuilt at this moment.",
        hint="mv_catalog.queries shows the state of its query.",
    )
