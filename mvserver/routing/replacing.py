"""OR REPLACE: which relation may get another definition, and what of it stays."""

from __future__ import annotations

import uuid
from dataclasses import replace

from catalog.model import Comment, Relation, Schema
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import ObjectName


def replaced(
    kind: str, written: ObjectName, place: tuple[Schema, str], context: SessionContext, services: Services
) -> Relation | None:
    """The relation that is there; None where the name is free. Not one that something reads or writes: the meaning of
    that would change unseen."""
    schema, name = place
    found = services.catalog.relations.find(schema.id, name)
    if found is None:
        services.catalog.relations.check_new(schema.id, name)
        return None
    if found.kind != kind:
        raise SqlError(sqlstates.WRONG_OBJECT_TYPE, f'"{name}" is not a {kind}', position=written.position)
    privileges.require_owner(found, context, services, written.position)
    dependents = services.catalog.dependencies.of_relation(found)
    if dependents.relations or dependents.queries:
        raise SqlError(
            sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
            f'cannot replace {kind} "{name}" because other objects depend on it',
            detail=dependents.detail() or f"Terminated query {dependents.queries[0].id} names it.",
            hint=f"Drop them first, and create them again over the new {kind}.",
            position=written.position,
        )
    return found


def redefined(old: Relation, new: Relation, services: Services) -> Relation:
    """``new`` in the place of ``old``, with its OID, owner, privileges and comments. Its id is another one, so that
    nobody meets old rows under new columns. Inside a transaction."""
    relation = replace(
        new,
        id=str(uuid.uuid4()),
        oid=old.oid,
        row_type_oid=old.row_type_oid,
        owner=old.owner,
        acl=old.acl,
        created_at=old.created_at,
        indexes=old.indexes,
    )
    services.catalog.relations.redefine(old.id, relation)
    names = [column.name for column in relation.columns]
    for number, column in enumerate(old.columns, start=1):
        if names[number - 1 : number] != [column.name]:
            services.catalog.comments.put(Comment("relation", old.oid, number, ""))
    return relation


def redeclared(
    relation: Relation, written: ObjectName, schema: Schema, context: SessionContext, services: Services
) -> Relation | None:
    """The stream or changelog that ``relation`` takes the place of."""
    old = replaced(relation.kind, written, (schema, relation.name), context, services)
    if old is not None and (old.store_id, old.entity) != (relation.store_id, relation.entity):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'{old.kind} "{old.name}" cannot be replaced by one over another entity',
            detail=f'It is over entity "{old.entity}".',
            hint="Drop it, and create it again.",
            position=written.position,
        )
    return old


def put(relation: Relation, old: Relation | None, services: Services, work: Work) -> None:
    """A new stream or changelog, or another definition of the old one. Inside a transaction."""
    if old is None:
        services.catalog.relations.add(relation)
        return
    redefined(old, relation, services)
    work.after_commit(services.engine.reconcile)  # push queries over the old one end
