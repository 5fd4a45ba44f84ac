"""The entity under a stream: it is there and as the statement says, or it is made, and taken back if the rest fails."""

from __future__ import annotations

from catalog.acl import Privilege
from catalog.model import Store
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.stream_declaration import StreamDeclaration
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Properties

KAFKA = "KAFKA"
FILE = "FILE"


def partitions_and_replicas(store: Store, entity: str, services: Services) -> tuple[int, int]:
    """Of an existing topic."""
    details = dict(services.stores.client(store).describe_entity(entity).details)
    return int(details["partitions"]), int(details["replicas"])


def ensure(
    store: Store,
    entity: str,
    declaration: StreamDeclaration,
    properties: Properties,
    context: SessionContext,
    services: Services,
    work: Work,
) -> None:
    """Checks the entity, or makes it as an effect of the statement.

    Called inside the transaction that adds the stream: so no other statement can take up the entity between its making
    and, should this statement fail, its removal.
    """
    if store.type == FILE:
        _refuse_topic_properties(declaration, properties)
    client = services.stores.client(store)
    if client.entity_exists(entity):
        if store.type == KAFKA:
            _check_equal(store, entity, declaration, properties, services)
        else:
            client.describe_entity(entity)  # which refuses a link out of the store's root
        return
    privileges.require(store, Privilege.CREATE, context, services)
    wanted = declaration.entity_properties()
    if store.type == KAFKA:
        missing = [key for key in ("topic.partitions", "topic.replicas") if key not in wanted]
        if missing:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'entity "{entity}" does not exist in store "{store.name}", and cannot be created without '
                + " and ".join(f'"{key}"' for key in missing),
                hint="Add 'topic.partitions' and 'topic.replicas' to create it, or name an existing one with 'topic'.",
            )
    client.check_create_entity(entity, wanted)
    work.effect(
        f'entity "{entity}" in store "{store.name}"',
        lambda: client.create_entity(entity, wanted),
        lambda: _remove_unused(store, entity, services),
    )


def _remove_unused(store: Store, entity: str, services: Services) -> None:
    """Another statement may have found the entity and declared a stream over it."""
    with services.catalog.transaction():
        if not any(relation.entity == entity for relation in services.catalog.relations.of_store(store.id)):
            services.stores.client(store).drop_entity(entity, {})


def _refuse_topic_properties(declaration: StreamDeclaration, properties: Properties) -> None:
    for key in declaration.entity_properties():
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'property "{key}" is not supported for a store of type FILE',
            hint="An entity of such a store is a directory; it has no partitions, replicas or topic settings.",
            position=properties.position(key),
        )


def _check_equal(
    store: Store, entity: str, declaration: StreamDeclaration, properties: Properties, services: Services
) -> None:
    """The number of partitions is a promise about order, so a difference is never passed over."""
    if declaration.partitions is None and declaration.replicas is None:
        return
    partitions, replicas = partitions_and_replicas(store, entity, services)
    for key, given, found in (
        ("topic.partitions", declaration.partitions, partitions),
        ("topic.replicas", declaration.replicas, replicas),
    ):
        if given is not None and given != found:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{key}" is {given}, but entity "{entity}" has {found}',
                hint="Leave the property out to use the entity as it is.",
                position=properties.position(key),
            )
