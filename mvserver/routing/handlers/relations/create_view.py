"""CREATE [OR REPLACE] VIEW … AS SELECT: a stored SELECT, planned once to learn its columns and what it reads."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from catalog.model import Column, NamedSource, Relation, Schema, StoredSelect
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.pgcatalog import pgtypes
from mvserver.pgcatalog.pgtypes import PgType
from mvserver.pgcatalog.snapshot import CatalogSnapshot
from mvserver.routing import lookup, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.serving.api import PlanRequest, PullPlan, ReadsStream
from mvserver.session.context import SessionContext
from mvserver.sql.dialect import parse_pull
from mvserver.sql.statements.relations import CreateView
from mvserver.types import oids

FIELDS = None
TAG = "CREATE VIEW"


def run(statement: CreateView, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    lookup.new_relation(statement.name, context, services)
    snapshot = CatalogSnapshot.of(catalog)
    plan = _plan(statement, snapshot, context, services)
    view = Relation(
        id=str(uuid.uuid4()),
        oid=0,
        schema_id="",
        name="",
        kind=lookup.PLAIN_VIEW,
        columns=_columns(statement, plan),
        properties=(),
        definition=statement.text,
        owner=context.role,
        created_at=services.clock(),
        select=StoredSelect(statement.select_text, _sources(plan, statement.select_start)),
    )
    with catalog.transaction():
        schema, name = lookup.new_relation(statement.name, context, services)
        view = replace(view, schema_id=schema.id, name=name)
        old = _replaced(statement, schema, name, context, services)
        _check_sources(view, snapshot, services)
        if old is None:
            catalog.relations.add(view)
        else:
            view = replace(view, id=old.id)
            _check_columns(old, view, statement)
            _check_no_circle(view, services)
            catalog.relations.replace_view(view)
    return done(TAG)


def _sources(plan: PullPlan, start: int) -> tuple[NamedSource, ...]:
    """Counted from the beginning of the SELECT."""
    return tuple(replace(each, start=each.start - start, end=each.end - start) for each in plan.named)


def _plan(statement: CreateView, snapshot: CatalogSnapshot, context: SessionContext, services: Services) -> PullPlan:
    scope = replace(
        context.scope(),
        database=context.database,
        search_path=context.search_path,
        role=context.role,
        reads_streams=False,
    )
    start = statement.select_start
    tree = parse_pull(" " * start + statement.select_text)  # its errors' positions are those in what the client sent
    _refuse_own_types(tree, snapshot)
    try:
        plan = services.pulls.plan(
            PlanRequest(tree, scope, (), statement.select_text, start, context.cancelled, snapshot)
        )
    except ReadsStream as error:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            error.message.replace("cannot read from", "a view cannot read"),
            hint="Create a materialized view over it, and the view over that.",
            position=error.position,
        ) from error
    if plan.parameter_oids:
        raise SqlError(sqlstates.UNDEFINED_PARAMETER, "there is no parameter $1")
    if plan.of_the_past:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "a view cannot read the past of a materialized view",
            hint="Read it in a SELECT of its own; RESET mv.as_of reads views as they are.",
        )
    if plan.sets or plan.signals or plan.sleep_s is not None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "a view cannot change a setting, signal a process or sleep",
            hint="Call the function in a SELECT of its own.",
        )
    return plan


def _refuse_own_types(tree: exp.Expr, snapshot: CatalogSnapshot) -> None:
    own = {each.name for each in snapshot.enums}
    if not own:
        return
    for node in tree.find_all(exp.DataType):
        if str(node.args.get("kind")).rpartition(".")[2].strip('"') in own:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "a view cannot name a type of one's own",
                hint="Compare with text, or name the type in the query that reads the view.",
            )


def _columns(statement: CreateView, plan: PullPlan) -> tuple[Column, ...]:
    fields = plan.fields
    if len(statement.columns) > len(fields):
        raise SqlError(sqlstates.SYNTAX_ERROR, "CREATE VIEW specifies more column names than columns")
    names = [*statement.columns, *(field.name for field in fields[len(statement.columns) :])]
    _check_distinct(names)
    columns = []
    for name, field in zip(names, fields, strict=True):
        if field.type_oid >= oids.OWN_FIRST:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'column "{name}" of a view cannot be of a type of one\'s own',
                hint="Cast it to text.",
            )
        columns.append(Column(name, pgtypes.spelled(PgType(field.type_oid, field.typmod))))
    return tuple(columns)


def _check_distinct(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SqlError(sqlstates.DUPLICATE_COLUMN, f'column "{name}" specified more than once')
        seen.add(name)


def _replaced(
    statement: CreateView, schema: Schema, name: str, context: SessionContext, services: Services
) -> Relation | None:
    found = services.catalog.relations.find(schema.id, name)
    if found is None or not statement.or_replace:
        services.catalog.relations.check_new(schema.id, name)
        return None
    if found.kind != lookup.PLAIN_VIEW:
        raise SqlError(sqlstates.WRONG_OBJECT_TYPE, f'"{name}" is not a view', position=statement.name.position)
    privileges.require_owner(found, context, services, statement.name.position)
    return found


def _check_sources(view: Relation, snapshot: CatalogSnapshot, services: Services) -> None:
    """Nobody has dropped or changed what the plan was made for."""
    assert view.select is not None  # noqa: S101 - of a view
    for source_id in filter(None, (source.relation_id for source in view.select.sources)):
        planned, present = snapshot.relations_by_id[source_id], services.catalog.relations.by_id(source_id)
        if present is None or present.columns != planned.columns:
            raise SqlError(
                sqlstates.SERIALIZATION_FAILURE,
                f'{planned.kind} "{planned.name}" was changed by another session',
                hint="Run the statement again.",
            )


def _check_columns(old: Relation, new: Relation, statement: CreateView) -> None:
    """Whoever reads the view goes on: columns may only be added behind those that are there."""
    if len(new.columns) < len(old.columns):
        raise _not_so("cannot drop columns from view", statement)
    for before, after in zip(old.columns, new.columns, strict=False):
        if before.name != after.name:
            raise _not_so(f'cannot change name of view column "{before.name}" to "{after.name}"', statement)
        if before.type != after.type:
            raise _not_so(
                f'cannot change data type of view column "{before.name}" from {before.type} to {after.type}', statement
            )


def _not_so(message: str, statement: CreateView) -> SqlError:
    return SqlError(
        sqlstates.INVALID_TABLE_DEFINITION,
        message,
        hint="Drop the view, and create it again.",
        position=statement.name.position,
    )


def _check_no_circle(view: Relation, services: Services) -> None:
    """Also through views that the new text names."""
    assert view.select is not None  # noqa: S101 - of a view
    front, seen = [view], set()
    while front:
        for source in (front.pop().select or view.select).sources:
            if source.relation_id == view.id:
                raise SqlError(
                    sqlstates.INVALID_OBJECT_DEFINITION,
                    f'infinite recursion detected in rules for relation "{view.name}"',
                    hint="A view cannot read itself.",
                )
            found = services.catalog.relations.by_id(source.relation_id) if source.relation_id else None
            if found is not None and found.select is not None and found.id not in seen:
                seen.add(found.id)
                front.append(found)
