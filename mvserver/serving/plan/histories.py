"""The past of views in pull queries: ``"v$changes"``, and views AS OF a time or a token.

Both read what the history of the view keeps. Whether it goes back as far is asked in the query's own snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from catalog.model import Relation
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.resume_tokens import Token, is_token
from spark_sinks.duckdb.history.log import as_of_name, changes_name

_SUFFIX = "$changes"
_SCHEMA = "_changes"


@dataclass(frozen=True)
class NamedChanges:
    """What ``"v$changes"`` names."""

    view: Relation


def view_name(name: str) -> str | None:
    """That of the view whose changes the name asks for; None for a name that asks for none."""
    return name.removesuffix(_SUFFIX) if name.endswith(_SUFFIX) and name != _SUFFIX else None


def refused(name: str, position: int | None) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f'AS OF is not supported for "{name}"',
        hint="A history is kept of the rows of materialized views.",
        position=position,
    )


def read_changes(table: exp.Table, changes: NamedChanges, database: str) -> None:
    """The table becomes the relation of the changes."""
    table.set("this", exp.to_identifier(changes_name(changes.view.id), quoted=True))
    table.set("db", exp.to_identifier(_SCHEMA, quoted=True))
    table.set("catalog", exp.to_identifier(database, quoted=True))


def rows_as_of(view: Relation, place: str, database: str, alias: exp.TableAlias) -> exp.Subquery:
    """The rows of the view at a time, or behind a token."""
    call = exp.Anonymous(this=as_of_name(view.id), expressions=[*_place(place)])
    source = exp.Table(
        this=call, db=exp.to_identifier(_SCHEMA, quoted=True), catalog=exp.to_identifier(database, quoted=True)
    )
    return exp.Subquery(this=exp.Select(expressions=[exp.Star()]).from_(source), alias=alias)


def _place(text: str) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
    if is_token(text):
        token = Token.read(text)
        return exp.null(), exp.Literal.string(token.incarnation), exp.Literal.number(token.seq)
    moment = exp.cast(exp.Literal.string(text), exp.DataType.Type.TIMESTAMPTZ)
    return moment, exp.null(), exp.null()
