"""The past of views in pull queries: ``"v$changes"``, and views AS OF a time or a token.

Both read what the history of the view keeps. Whether it goes back as far is asked in the query's own snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from catalog.model import Relation
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.resume_tokens import Written, invalid, is_token
from mvserver.serving.api import KeyRead, Place
from mvserver.serving.fast import classify
from mvserver.serving.fast.key_reads import key_read
from spark_sinks.duckdb.history.log import (
    as_of_name,
    changes_name,
    row_as_of_name,
    sealed_as_of_name,
    sealed_changes_name,
)

_SUFFIX = "$changes"
_SCHEMA = "_changes"
_TIME = exp.DType.TIMESTAMPTZ


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


def read_changes(table: exp.Table, changes: NamedChanges, database: str, *, sealed: bool) -> None:
    """The table becomes the relation of the changes; ``sealed`` for who may see some rows alone."""
    name = sealed_changes_name if sealed else changes_name
    table.set("this", exp.to_identifier(name(changes.view.id), quoted=True))
    table.set("db", exp.to_identifier(_SCHEMA, quoted=True))
    table.set("catalog", exp.to_identifier(database, quoted=True))


def rows_as_of(
    view: Relation, place: str | Place, database: str, alias: exp.TableAlias, *, sealed: bool
) -> exp.Subquery:
    """The rows of the view at a time, or behind a token; ``sealed`` for who may see some rows alone."""
    arguments = _of_parameters(place) if isinstance(place, Place) else _of_text(place, sealed=sealed)
    name = sealed_as_of_name if sealed else as_of_name
    call = exp.Anonymous(this=name(view.id), expressions=list(arguments))
    source = exp.Table(
        this=call, db=exp.to_identifier(_SCHEMA, quoted=True), catalog=exp.to_identifier(database, quoted=True)
    )
    return exp.Subquery(this=exp.Select(expressions=[exp.Star()]).from_(source), alias=alias)


def _of_text(text: str, *, sealed: bool) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
    if is_token(text):
        token = Written.read(text)
        if (token.sealed if sealed else token.seq) is None:
            raise invalid(text)
        number = exp.Literal.string(token.sealed) if sealed else exp.Literal.number(token.seq)
        return exp.null(), exp.Literal.string(token.incarnation), number
    return exp.cast(exp.Literal.string(text), _TIME), exp.null(), exp.null()


def _of_parameters(place: Place) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
    """As ``Place.values`` gives them."""
    numbers = (place.parameter, place.incarnation, place.number)
    asked, incarnation, number = (exp.Parameter(this=exp.Literal.number(each)) for each in numbers)
    kinds = exp.DataType.Type
    kind = kinds.TEXT if place.sealed else kinds.BIGINT
    return exp.cast(exp.cast(asked, kinds.TEXT), _TIME), exp.cast(incarnation, kinds.TEXT), exp.cast(number, kind)


def by_key(tree: exp.Expr, view: Relation) -> exp.Expr | None:
    """A query of a view as of a place (bound), which compares the whole key with constants, with what reads the changes
    of that key alone. None for others."""
    made = tree.copy()
    source = made.args["from_"].this if isinstance(made, exp.Select) else None
    where = made.args.get("where")
    if not isinstance(source, exp.Subquery) or where is None:
        return None
    call = source.this.args["from_"].this.this
    values = {name: value for term in classify.key_terms(where.this, view) for name, value in _equal(term)}
    given = [value for name in view.key_columns if (value := values.get(name)) is not None and _is_constant(value)]
    if not isinstance(call, exp.Anonymous) or len(given) < len(view.key_columns):
        return None
    call.set("this", row_as_of_name(view.id))
    for value in given:
        call.append("expressions", value.copy())
    return made


def read_as_of(tree: exp.Expr, view: Relation, place: str | Place | None) -> KeyRead | None:
    """What such a query asks, where the rows of its keys can answer it."""
    source = tree.args["from_"].this if isinstance(tree, exp.Select) and tree.args.get("from_") else None
    if place is None or not isinstance(source, exp.Subquery):
        return None
    made = tree.copy()
    alias = source.args.get("alias")
    of_the_present = exp.Table(this=exp.to_identifier(view.id, quoted=True), alias=alias.copy() if alias else None)
    made.args["from_"].set("this", of_the_present)
    found = key_read(made, view)
    if found is None or not found.is_whole:  # by a part of the key only the keys of now are found
        return None
    return replace(found, as_of=place)


def _equal(term: exp.Expr) -> list[tuple[str, exp.Expr]]:
    if not isinstance(term, exp.EQ):
        return []
    column, value = (term.left, term.right) if isinstance(term.left, exp.Column) else (term.right, term.left)
    return [(classify.column_name(column), value)] if isinstance(column, exp.Column) else []


def _is_constant(value: exp.Expr) -> bool:
    inner = value.this if isinstance(value, exp.Neg) else value
    return isinstance(inner, exp.Literal | exp.Parameter)
