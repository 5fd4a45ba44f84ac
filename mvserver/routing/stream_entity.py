"""The entity under a stream: it is there and as the statement says, or it is made, and taken back if the rest fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from catalog.acl import Privilege
from catalog.model import Store
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.stream_declaration import StreamDeclaration
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Properties, Value
from spark_sinks.kinds import entity_properties
from spark_sinks.store_kind import EntityProperty, StoreKind, check_entity_properties


def check_properties(
    store: Store, given: Iterable[str], services: Services, position: Callable[[str], int | None] = lambda key: None
) -> None:
    """Refuses the properties that no entity of the store has."""
    known = entity_properties(services.stores.kinds())
    check_entity_properties(services.stores.kind(store.type), given, known, position)


def missing(declaration: StreamDeclaration, kind: StoreKind[Any]) -> Sequence[EntityProperty]:
    """What the statement does not say, and without which no entity is made."""
    return [p for p in kind.entity_properties if p.required and p.name not in declaration.entity_properties]


def shown(store: Store, entity: str, properties: Iterable[EntityProperty], services: Services) -> dict[str, Value]:
    """These properties of an existing entity."""
    details = dict(services.stores.client(store).describe_entity(entity).details)
    texts = {p: details[p.shown_as] for p in properties if p.shown_as is not None}
    return {p.name: int(text) if p.is_count else text for p, text in texts.items()}


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

    The statement has the entity's turn until its end: so no other one can take up the entity between its making and,
    should this one fail, its removal.
    """
    wanted = dict(declaration.entity_properties)
    check_properties(store, wanted, services, properties.position)
    kind, client = services.stores.kind(store.type), services.stores.client(store)
    take_turn(store, entity, services, work)
    if client.entity_exists(entity):
        _check_equal(store, entity, wanted, properties, services)
        reading = {p.name: str(wanted[p.name]) for p in kind.reading_properties() if p.name in wanted}
        if reading and kind.check_reading is not None:
            kind.check_reading(client, entity, reading, True)  # whether somebody reads it now is a query's matter
        return
    if not kind.creates_entities:
        raise SqlError(sqlstates.UNDEFINED_OBJECT, f'entity "{entity}" does not exist in store "{store.name}"')
    privileges.require(store, Privilege.CREATE, context, services)
    left_out = missing(declaration, kind)
    if left_out:
        required = " and ".join(f"'{p.name}'" for p in kind.entity_properties if p.required)
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'entity "{entity}" does not exist in store "{store.name}", and cannot be created without '
            + " and ".join(f'"{p.name}"' for p in left_out),
            hint=f"Add {required} to create it, or name an existing one with 'topic'.",
        )
    client.check_create_entity(entity, wanted)
    work.effect(
        f'entity "{entity}" in store "{store.name}"',
        lambda: client.create_entity(entity, wanted),
        lambda: client.drop_entity(entity, {}),
    )


def take_turn(store: Store, entity: str, services: Services, work: Work) -> None:
    """Until the end of the work nobody else makes, checks or drops the entity. A rehearsal changes nothing."""
    if work.rehearsal:
        return
    turns = services.entity_turns
    work.at_end(lambda: turns.end(work))
    turns.take(store.id, entity, work, in_transaction=services.catalog.in_transaction)


def _check_equal(
    store: Store, entity: str, wanted: dict[str, Value], properties: Properties, services: Services
) -> None:
    """The number of partitions is a promise about order, so a difference is never passed over."""
    known = services.stores.kind(store.type).entity_properties
    compared = [p for p in known if p.shown_as is not None and p.name in wanted]
    if any(p.reading is None for p in known) and not compared:
        return
    found = shown(store, entity, compared, services)  # which refuses, too, what is no entity to be read
    for key, value in found.items():
        if wanted[key] != value:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{key}" is {wanted[key]}, but entity "{entity}" has {value}',
                hint="Leave the property out to use the entity as it is.",
                position=properties.position(key),
            )
