"""CREATE INDEX: kept for those who ask for indexes. What is read is found by the view's key, with or without one."""

from __future__ import annotations

from catalog.model import Index, IndexColumn, Relation
from mvserver import limits, sqlstates
from mvserver.compiler.tables import TABLE
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import lookup, notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateIndex

FIELDS = None
TAG = "CREATE INDEX"
_METHODS = frozenset({"btree", "hash", "gist", "gin", "spgist", "brin"})
_FOREIGN = "foreign tables"
_NOT_FOR = {lookup.STREAM: _FOREIGN, lookup.CHANGELOG: _FOREIGN, TABLE: _FOREIGN, lookup.PLAIN_VIEW: "views"}


def run(statement: CreateIndex, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        view = lookup.relation(statement.on, context, services)
        _check(statement, view)
        privileges.require_owner(view, context, services, statement.on.position)
        name = statement.name or _free_name(view, statement, services)
        if statement.if_not_exists and _is_there(view, name, services):
            notices.skipped(context, sqlstates.DUPLICATE_TABLE, f'relation "{name}" already exists')
            return done(TAG)
        columns = tuple(IndexColumn(c.name, c.descending, c.nulls_first) for c in statement.columns)
        index = Index(0, name, columns, statement.unique, statement.method, statement.nulls_distinct)
        catalog.relations.add_index(view, index)
    key = ", ".join(view.key_columns)
    context.notice(
        f'index "{name}" has no effect on how materialized view "{view.name}" is read',
        detail=f"The view is indexed by its key already: {key}." if key else "Rows of the view have no key.",
    )
    return done(TAG)


def _is_there(view: Relation, name: str, services: Services) -> bool:
    relations = services.catalog.relations
    return relations.find(view.schema_id, name) is not None or relations.find_index(view.schema_id, name) is not None


def _free_name(view: Relation, statement: CreateIndex, services: Services) -> str:
    """As PostgreSQL makes it: ``visits_url_idx``, and a number behind it where that is taken."""
    columns = "_".join(column.name for column in statement.columns)
    for number in range(limits.INDEXES_MAX + 1):
        end = f"_idx{number or ''}"
        stem = f"{view.name}_{columns}".encode()[: limits.IDENTIFIER_BYTES_MAX - len(end)].decode(errors="ignore")
        if not _is_there(view, stem + end, services):
            return stem + end
    raise SqlError(sqlstates.DUPLICATE_TABLE, f'relation "{stem + end}" already exists')


def _check(statement: CreateIndex, view: Relation) -> None:
    if view.kind != lookup.VIEW:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f'cannot create index on relation "{view.name}"',
            detail=f"This operation is not supported for {_NOT_FOR[view.kind]}.",
            position=statement.on.position,
        )
    if statement.method not in _METHODS:
        raise SqlError(sqlstates.UNDEFINED_OBJECT, f'access method "{statement.method}" does not exist')
    names = {column.name for column in view.columns}
    for column in statement.columns:
        if column.name not in names:
            raise SqlError(
                sqlstates.UNDEFINED_COLUMN, f'column "{column.name}" does not exist', position=column.position
            )
    if len(view.indexes) >= limits.INDEXES_MAX:
        raise SqlError(
            sqlstates.PROGRAM_LIMIT_EXCEEDED,
            f'materialized view "{view.name}" has too many indexes',
            detail=f"The limit is {limits.INDEXES_MAX}.",
        )
    key = set(view.key_columns)
    if statement.unique and not (key and key.issubset(column.name for column in statement.columns)):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'a unique index on materialized view "{view.name}" must have all columns of its key',
            detail=f"Its key is {', '.join(view.key_columns)}." if key else "Its rows have no key.",
            hint="Rows are unique by the key alone; leave out UNIQUE.",
            position=statement.on.position,
        )
