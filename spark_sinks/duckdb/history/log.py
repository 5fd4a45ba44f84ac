"""The tables of a view's history: what each commit did to the rows that the view shows.

A change is one row: its number, the epoch (the number of the commit that changed the view), the time, the kind, and the
view's columns. A row that is replaced comes twice, as it was (``-U``) and as it is (``+U``). The log stands beside the
state that it belongs to, under a name that begins with that of the state, and goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.quoting import quoted
from mvserver.visible_rows import VisibleRows
from spark_sinks.duckdb.changes.change_outbox import GONE, NEW, OLD_OF_UPDATE, UPDATED
from spark_sinks.duckdb.changes.logs import same_values
from spark_sinks.duckdb.history.epochs import KIND
from spark_sinks.duckdb.history.sealing import sealed, unsealed
from spark_sinks.duckdb.history.telling_merge import ShownGroups
from spark_sinks.duckdb.layout import NamedText
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.state.state import HISTORY

SCHEMA = """
CREATE SCHEMA IF NOT EXISTS "_changes";
CREATE TABLE IF NOT EXISTS "_ledger".view_histories (
    query_id VARCHAR PRIMARY KEY, view_id VARCHAR NOT NULL, state_table VARCHAR NOT NULL, incarnation VARCHAR NOT NULL,
    first_seq BIGINT NOT NULL, last_seq BIGINT NOT NULL, last_epoch BIGINT NOT NULL, first_size BIGINT NOT NULL,
    last_size BIGINT NOT NULL, since TIMESTAMPTZ NOT NULL, last_at TIMESTAMPTZ NOT NULL);
"""

TOKEN, EPOCH, TIME = "mv_token", "mv_epoch", "mv_time"
CHANGE_COLUMNS: tuple[NamedText, ...] = (
    (TOKEN, "VARCHAR"),
    (EPOCH, "BIGINT"),
    (TIME, "TIMESTAMPTZ"),
    (KIND, "VARCHAR"),
)
"""What comes before a view's own columns where its changes are shown."""


REFUSED = "view history: "
"""What an error begins with that AS OF raises in DuckDB; behind it the kind, the time and the token of the oldest."""
TOO_OLD, OTHER, AHEAD, NOWHERE = "too old", "other incarnation", "ahead", "nowhere"

ELSEWHERE = "view history: place elsewhere "
"""The same of what looks up one row: it is for places behind a commit that is kept, others are left to AS OF."""

_AT, _INCARNATION, _NUMBER = _PLACE = ("_mv_at", "_mv_incarnation", "_mv_seq")
"""The arguments of AS OF: a time, or what a token names. Whatever is not asked for is NULL."""
_SEALED = "_mv_sealed"


def refuse_taken(names: Iterable[str]) -> None:
    """42701 where a view has a column of a name that its history needs."""
    needed = [name for name, _ in CHANGE_COLUMNS]
    taken = next((name for name in names if name in needed), None)
    if taken is not None:
        raise SqlError(
            sqlstates.DUPLICATE_COLUMN,
            f'column "{taken}" specified more than once',
            detail=f"The changes of a view have columns of their own before those of the view: {', '.join(needed)}.",
            hint="Give the column of the view another name.",
        )


@dataclass(frozen=True)
class LoggedView:
    """A view whose changes are kept. ``columns`` are the user's names and DuckDB types. ``rows`` is a query of the rows
    as the state has them, ``keys`` (by which they are told apart, with their types) and then c0, c1 ...;
    ``changed_rows`` gives those whose keys a batch has touched. A view that is ``appended`` has no keys: its rows do
    not replace each other. ``key_columns`` are the user's names of the columns that tell rows apart, if there are.
    ``looked_up`` is then a query of the rows whose keys hold no NULL. ``groups`` is what the view shows of its state's
    rows, where a merge can tell it."""

    query_id: str
    view_id: str
    state_table: str
    columns: tuple[NamedText, ...]
    keys: tuple[NamedText, ...]
    rows: str
    changed_rows: str
    appended: bool = False
    key_columns: tuple[str, ...] = ()
    looked_up: str = ""
    groups: ShownGroups | None = None

    @property
    def table(self) -> str:
        return f"{self.state_table}{HISTORY}"

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(f"c{i}" for i in range(len(self.columns)))

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.keys)

    @property
    def shown(self) -> str:
        """The values under the user's names."""
        return ", ".join(f"{c} AS {quoted(name)}" for c, (name, _) in zip(self.values, self.columns, strict=True))


def changes_name(view_id: str) -> str:
    """In the schema ``_changes``: the history as a relation, the columns that come before the view's own, and these."""
    return f"{view_id}$changes"


def as_of_name(view_id: str) -> str:
    """In the schema ``_changes``: a table macro of the view's rows at a time, or behind a token."""
    return f"as_of_{view_id.replace('-', '_')}"  # of letters that need no quotes: it is called


def row_as_of_name(view_id: str) -> str:
    """The same of the row of one key, whose columns' values are further arguments, at some places. It begins with the
    other's name."""
    return f"{as_of_name(view_id)}_row"


def sealed_as_of_name(view_id: str) -> str:
    """That of those who may see some rows alone; its third argument is a sealed number."""
    return f"{as_of_name(view_id)}_sealed"


def sealed_changes_name(view_id: str) -> str:
    return f"{changes_name(view_id)}_sealed"


def _rows_name(view_id: str) -> str:
    return f"{view_id}$rows"


def _looked_up_name(view_id: str) -> str:
    return f"{view_id}$looked_up"


def create_statements(view: LoggedView, incarnation: str) -> list[str]:
    """The last one takes the time of the beginning."""
    values = tuple(zip(view.values, (kind for _, kind in view.columns), strict=True))
    columns = ", ".join(f"{name} {kind}" for name, kind in (*view.keys, *values))
    return [
        f"CREATE TABLE {qualified(view.table)} (_epoch BIGINT, _seq BIGINT, _at TIMESTAMPTZ, _size BIGINT, "
        f"_op VARCHAR, {columns})",
        f"INSERT OR REPLACE INTO \"_ledger\".view_histories VALUES ('{view.query_id}', '{view.view_id}', "
        f"'{view.state_table}', '{incarnation}', 1, 0, 0, 0, 0, $1, $1)",
    ]


def relation_statements(view: LoggedView, incarnation: str, database: str, secret: str) -> list[str]:
    """What reads the log as relations: the changes, and the view at a time. Both are there once more, without numbers
    that count the others, for those who may see some rows alone. The text depends on the view's, and so on the version
    of the server."""
    name, number = as_of_name(view.view_id), unsealed(secret, _INCARNATION, _SEALED)
    statements = [
        _changes(view, changes_name(view.view_id), f"'{incarnation}-' || lower(to_base(_seq, 16))", "_epoch"),
        _changes(
            view,
            sealed_changes_name(view.view_id),
            f"'{incarnation}-' || {sealed(secret, incarnation, '_seq')}",
            "epoch_us(_at)",
        ),
        f"CREATE OR REPLACE VIEW {_relation(_rows_name(view.view_id))} AS {view.rows}",
        f"CREATE OR REPLACE MACRO {_relation(name)}({', '.join(_PLACE)}) AS TABLE "
        + (_appended_as_of if view.appended else _keyed_as_of)(view, quoted(database)),
        f"CREATE OR REPLACE MACRO {_relation(sealed_as_of_name(view.view_id))}({_AT}, {_INCARNATION}, {_SEALED}) "
        f"AS TABLE SELECT * FROM {quoted(database)}.{_relation(name)}({_AT}, {_INCARNATION}, {number})",
    ]
    if view.key_columns:
        statements.append(f"CREATE OR REPLACE VIEW {_relation(_looked_up_name(view.view_id))} AS {view.looked_up}")
        arguments = ", ".join((*_PLACE, *_key_arguments(view)))
        statements.append(
            f"CREATE OR REPLACE MACRO {_relation(row_as_of_name(view.view_id))}({arguments}) AS TABLE "
            + _row_as_of(view, incarnation, quoted(database))
        )
    return statements


def _changes(view: LoggedView, name: str, token: str, epoch: str) -> str:
    before = f"{token} AS {TOKEN}, {epoch} AS {EPOCH}, _at AS {TIME}, _op AS {KIND}"
    return f"CREATE OR REPLACE VIEW {_relation(name)} AS SELECT {before}, {view.shown} FROM {qualified(view.table)}"


def _relation(name: str) -> str:
    return f'"_changes".{quoted(name)}'


def _log(view: LoggedView, database: str) -> str:
    """A macro's names mean what they mean to who calls it, so they are written out."""
    return f"{database}.{qualified(view.table)}"


def _refusal(view: LoggedView, database: str) -> str:
    """The condition of a place that is kept; it raises for others. Each call of a macro costs what its text is long, so
    that the kinds of refusal are told apart only where there is one."""
    nowhere = f"{_AT} IS NULL AND {_NUMBER} IS NULL"
    other = f"incarnation <> {_INCARNATION}"
    too_old = f"since > {_AT} OR {_NUMBER} < first_seq - 1"
    last = f"greatest(last_seq, (SELECT max(_seq) FROM {_log(view, database)}))"
    ahead = f"{_NUMBER} > {last} OR {_AT} > get_current_timestamp()"
    kind = f"CASE WHEN {nowhere} THEN '{NOWHERE}' WHEN {other} THEN '{OTHER}' WHEN {too_old} THEN '{TOO_OLD}' "
    oldest = "' ' || since::VARCHAR || ' ' || incarnation || '-' || printf('%x', first_seq - 1)"
    raised = f"error('{REFUSED}' || {kind}ELSE '{AHEAD}' END || {oldest})"
    return f"CASE WHEN ({nowhere}) OR {other} OR {too_old} OR {ahead} THEN {raised} ELSE true END"


def _asked(view: LoggedView, database: str) -> str:
    """Whether the place is kept."""
    return f"WITH asked AS MATERIALIZED (SELECT {_refusal(view, database)} AS kept FROM {_extent(view, database)})"


def _extent(view: LoggedView, database: str) -> str:
    return f"{database}.\"_ledger\".view_histories WHERE query_id = '{view.query_id}'"


def _later(view: LoggedView, database: str) -> str:
    """The condition of changes behind the place, by whole epochs. Numbers have no gaps: that of a token that is kept is
    in the log, or is that before the first."""
    whole = f"(SELECT coalesce(min(_epoch), 0) FROM {_log(view, database)} WHERE _seq = {_NUMBER})"
    return f"(_at > {_AT} OR ({_NUMBER} IS NOT NULL AND _epoch > {whole}))"


_KEPT = "(SELECT kept FROM asked)"  # in each part, so that it is always asked


def _nulls(view: LoggedView) -> str:
    return ", ".join(f"CAST(NULL AS {kind})" for _, kind in view.columns)


def _never(view: LoggedView) -> str:
    """No rows; but it asks, also where the other parts have nothing to read."""
    return f"SELECT {_nulls(view)} FROM asked WHERE NOT kept"


def _keyed_as_of(view: LoggedView, database: str) -> str:
    """The rows whose keys have not changed since, and of the others what they were before their first change."""
    keys, values, later = view.key_names, ", ".join(view.values), _later(view, database)
    grouped = f" GROUP BY {', '.join(keys)}" if keys else " HAVING count(*) > 0"
    first = f"SELECT {', '.join([*keys, 'min(_seq) AS _first'])} FROM {_log(view, database)} WHERE {later}{grouped}"
    rows = f"{database}.{_relation(_rows_name(view.view_id))}"
    return (
        f"{_asked(view, database)}, first AS MATERIALIZED ({first}) SELECT {view.shown} FROM ("
        f"SELECT {values} FROM {rows} AS r ANTI JOIN first AS f ON {same_values('r', 'f', keys)} WHERE {_KEPT} "
        f"UNION ALL SELECT {values} FROM {_log(view, database)} AS l SEMI JOIN first AS f ON l._seq = f._first "
        f"WHERE _op IN ('{OLD_OF_UPDATE}', '{GONE}') AND {_KEPT} UNION ALL {_never(view)})"
    )


def _key_arguments(view: LoggedView) -> tuple[str, ...]:
    return tuple(f"_mv_key{at}" for at in range(len(view.key_columns)))


def _row_as_of(view: LoggedView, incarnation: str, database: str) -> str:
    """What the key's row was before its first change behind the place; where there is none, what it is. A third part
    asks whether the commit at the place is kept, or the one behind it. Then all later ones are, and the extent need not
    be read. The LIMIT needs a row of each part, so all of them are read, and no condition of who calls moves inside."""
    log = _log(view, database)
    names = [name for name, _ in view.columns]
    columns = [view.values[names.index(column)] for column in view.key_columns]
    of_key = " AND ".join(f"{c} = {given}" for c, given in zip(columns, _key_arguments(view), strict=True))
    values = ", ".join(view.values)
    # of a token also the change behind it: the oldest token is that of a change which is kept no more
    up_to = f"(_seq IN ({_NUMBER}, {_NUMBER} + 1) AND {_INCARNATION} = '{incarnation}') OR _at <= {_AT}"
    last = f"max(CASE WHEN _seq = {_NUMBER} + 1 THEN _epoch - 1 ELSE _epoch END)"
    now = f"{database}.{_relation(_looked_up_name(view.view_id))}"
    asks = f"CASE WHEN _epoch IS NULL OR {_AT} > get_current_timestamp() THEN error('{ELSEWHERE}' || _count) "
    return (
        f"SELECT {view.shown} FROM (SELECT 0 AS _part, _seq AS _number, _op AS _kind, {values} "
        f"FROM {log} WHERE _epoch > (SELECT {last} FROM {log} WHERE {up_to}) AND {of_key} "
        f"UNION ALL SELECT 1, 0, '{UPDATED}', {values} FROM {now} WHERE {of_key} "
        f"UNION ALL SELECT 2, 0, {asks}ELSE '{NEW}' END, {_nulls(view)} "
        f"FROM (SELECT {last} AS _epoch, count(*) AS _count FROM {log} WHERE {up_to}) "
        f"ORDER BY _part, _number LIMIT 1) WHERE _kind <> '{NEW}'"
    )


def _appended_as_of(view: LoggedView, database: str) -> str:
    """The rows less those that came since, with those that went."""
    values = ", ".join(view.values)
    rows = f"{database}.{_relation(_rows_name(view.view_id))}"
    changed = (
        f"SELECT {values}, sum(CASE WHEN _op = '{NEW}' THEN -1 ELSE 1 END)::BIGINT AS w "
        f"FROM {_log(view, database)} WHERE {_later(view, database)} GROUP BY ALL"
    )
    same = same_values("r", "f", view.values)
    there = ", ".join(f"f.{value}" for value in view.values)
    of_changed = f"SELECT {values}, count(*) AS n FROM {rows} AS r SEMI JOIN changed AS f ON {same} GROUP BY ALL"
    return (
        f"{_asked(view, database)}, changed AS MATERIALIZED ({changed}) SELECT {view.shown} FROM ("
        f"SELECT {values} FROM {rows} AS r ANTI JOIN changed AS f ON {same} WHERE {_KEPT} "
        f"UNION ALL SELECT {values} FROM (SELECT {there}, unnest(range(f.w + coalesce(r.n, 0))) AS i FROM changed AS f "
        f"LEFT JOIN ({of_changed}) AS r ON {same} WHERE {_KEPT}) UNION ALL {_never(view)})"
    )


def drop_statements(query_id: str, view_id: str, state_table: str) -> list[str]:
    return [
        f"DROP MACRO TABLE IF EXISTS {_relation(as_of_name(view_id))}",
        f"DROP MACRO TABLE IF EXISTS {_relation(row_as_of_name(view_id))}",
        f"DROP MACRO TABLE IF EXISTS {_relation(sealed_as_of_name(view_id))}",
        f"DROP VIEW IF EXISTS {_relation(changes_name(view_id))}",
        f"DROP VIEW IF EXISTS {_relation(sealed_changes_name(view_id))}",
        f"DROP VIEW IF EXISTS {_relation(_rows_name(view_id))}",
        f"DROP VIEW IF EXISTS {_relation(_looked_up_name(view_id))}",
        f"DROP TABLE IF EXISTS {qualified(state_table + HISTORY)}",
        f"DELETE FROM \"_ledger\".view_histories WHERE query_id = '{query_id}'",
    ]


def extent_query(view: LoggedView) -> str:
    """What is there, as a row of ``Extent``. A commit that only adds changes writes no more than these: the row of the
    history has the last change as of when some were removed."""
    last = ", ".join(f"max(_{name}) AS {name}" for name in ("seq", "epoch", "size", "at"))
    return (
        "SELECT incarnation, first_seq, greatest(last_seq, l.seq), greatest(last_epoch, l.epoch), first_size, "
        'greatest(last_size, l.size), since, greatest(last_at, l.at) FROM "_ledger".view_histories, '
        f"(SELECT {last} FROM {qualified(view.table)}) AS l "
        f"WHERE query_id = '{view.query_id}' AND state_table = '{view.state_table}'"
    )


def read_statement(view: LoggedView) -> str:
    """The changes behind number $1, at most $2; under the names that readers know."""
    return (
        f"SELECT _epoch, _seq, _at, _op AS {KIND}, {view.shown} FROM {qualified(view.table)} "
        "WHERE _seq > $1 ORDER BY _seq LIMIT $2"
    )


def rows_before_statement(view: LoggedView, database: str, columns: Iterable[str]) -> str:
    """Of the changes behind number $1: number, epoch, microseconds since 1970, kind, and these columns; for a cursor of
    any database."""
    value_of = dict(zip((name for name, _ in view.columns), view.values, strict=True))
    values = ", ".join(value_of[name] for name in columns)
    return (
        f"SELECT _seq, _epoch, epoch_us(_at), _op, {values} FROM {_log(view, quoted(database))} "
        "WHERE _seq > $1 ORDER BY _seq"
    )


def read_seen_statement(view: LoggedView, visible: VisibleRows) -> str:
    """The same, with a column _seen of whether the row may be seen."""
    seen = f"SELECT *, ({visible.condition}) AS _seen FROM ({read_statement(view)}) AS {quoted(visible.name)}"
    return f"{seen} ORDER BY _seq"
