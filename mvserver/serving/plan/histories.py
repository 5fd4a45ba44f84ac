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
from mvserver.serving.api import Place
from mvserver.serving.fast import classify
from spark_sinks.duckdb.history.log import as_of_name, changes_name, row_as_of_name

_SUFFIX = "$changes"
_SCHEMA = "_changes"
_TIME = exp.DataType.Type.TIMESTAMPTZ


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


def rows_as_of(view: Relation, place: str | Place, database: str, alias: exp.TableAlias) -> exp.Subquery:
    """The rows of the view at a time, or behind a token."""
    arguments = _of_parameters(place) if isinstance(place, Place) else _of_text(place)
    call = exp.Anonymous(this=as_of_name(view.id), expressions=list(arguments))
    source = exp.Table(
        this=call, db=exp.to_identifier(_SCHEMA, quoted=True), catalog=exp.to_identifier(database, quoted=True)
    )
    return exp.Subquery(this=exp.Select(expressions=[exp.Star()]).from_(source), alias=alias)


def _of_text(text: str) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
    if is_token(text):
        token = Token.read(text)
        return exp.null(), exp.Literal.string(token.incarnation), exp.Literal.number(token.seq)
    return exp.cast(exp.Literal.string(text), _TIME), exp.null(), exp.null()


def _of_parameters(place: Place) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
    """As ``Place.values`` gives them."""
    numbers = (place.parameter, place.incarnation, place.seq)
    asked, incarnation, seq = (exp.Parameter(this=exp.Literal.number(number)) for number in numbers)
    kinds = exp.DataType.Type
    return exp.cast(exp.cast(asked, kinds.TEXT), _TIME), exp.cast(incarnation, kinds.TEXT), exp.cast(seq, kinds.BIGINT)


def by_key(tree: exp.Expr, view: Relation) -> bool:
    """Gives the values of the key, which a simple query compares for equality, to what reads the view as of a place:
    it then reads the changes of that key alone. False where they are no constants."""
    source = tree.args["from_"].this if isinstance(tree, exp.Select) else None
    where = tree.args.get("where")
    if not isinstance(source, exp.Subquery) or where is None:
        return False
    call = source.this.args["from_"].this.this
    values = {name: value for term in classify.key_terms(where.this, view) for name, value in _equal(term)}
    given = [values.get(name) for name in view.key_columns]
    if not isinstance(call, exp.Anonymous) or not all(map(_is_constant, given)):
        return False
    call.set("this", row_as_of_name(view.id))
    for value in given:
        assert value is not None  # noqa: S101 - looked at above
        call.append("expressions", value.copy())
    return True


def _equal(term: exp.Expr) -> list[tuple[str, exp.Expr]]:
    if not isinstance(term, exp.EQ):
        return []
    column, value = (term.left, term.right) if isinstance(term.left, exp.Column) else (term.right, term.left)
    return [(classify.column_name(column), value)] if isinstance(column, exp.Column) else []


def _is_constant(value: exp.Expr | None) -> bool:
    inner = value.this if isinstance(value, exp.Neg) else value
    return isinstance(inner, exp.Literal | exp.Parameter)
