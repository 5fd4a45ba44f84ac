"""The common part of statements about schema registries, and of stores that name one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from catalog.acl import Privilege
from catalog.dependencies import REGISTRY_OF_STORE
from catalog.model import SchemaRegistry, Store
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.routing.store_kinds import read_config_file
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Properties, Value
from spark_sinks.schema_registry.options import TYPES


def type_of(given: Properties) -> str:
    reader = PropertyReader(given, "a schema registry")
    value = reader.text("type")
    hint = f"Types are {', '.join(TYPES)}."
    if value is None:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, 'a schema registry needs the property "type"', hint=hint)
    if value.upper() not in TYPES:
        raise reader.error("type", f'schema registry type "{value}" does not exist', hint=hint)
    return value.upper()


def checked(type_: str, given: Properties, base: Mapping[str, str], services: Services) -> tuple[tuple[str, str], ...]:
    """The properties from ``base``, what the 'config_file' says, and the statement, each over the one before."""
    reader = PropertyReader(given, f"a schema registry of type {type_}")
    reader.take("type")
    file_name = reader.text("config_file")
    merged: dict[str, Value] = dict(base)
    if file_name is not None:
        merged.update(read_config_file(services.store_config_dir, file_name, {}))
    for key in given:
        if key not in ("type", "config_file"):
            merged[key] = reader.take(key)
    return services.schema_registries.check_properties(type_, merged)


def answers(registry: SchemaRegistry, services: Services, work: Work) -> None:
    """The registry is reached once, outside of every lock and transaction."""
    if work.rehearsal:
        return
    try:
        services.schema_registries.client(registry).check()
    except BaseException:
        services.schema_registries.forget(registry.id)
        raise


def refuse_dropping(registry: SchemaRegistry, using: Sequence[Store]) -> None:
    """2BP01 where stores name it."""
    if using:
        raise SqlError(
            sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
            f"cannot drop schema registry {registry.name} because other objects depend on it",
            detail="\n".join(f"store {store.name} depends on schema registry {registry.name}" for store in using),
            hint="Drop the stores first, or give them another registry with UPDATE STORE.",
        )


def check_of_store(properties: Sequence[tuple[str, str]], context: SessionContext, services: Services) -> None:
    """The registry that a store names is there, and may be used by the role; inside the store's transaction too."""
    name = dict(properties).get(REGISTRY_OF_STORE)
    if name is not None:
        privileges.require(services.catalog.schema_registries.get(name), Privilege.USAGE, context, services)


def check_there(properties: Sequence[tuple[str, str]], services: Services) -> None:
    """42704 where the registry that a store names has gone."""
    name = dict(properties).get(REGISTRY_OF_STORE)
    if name is not None:
        services.catalog.schema_registries.get(name)


def of_store(store: Store, services: Services) -> SchemaRegistry | None:
    name = store.property(REGISTRY_OF_STORE)
    return None if name is None else services.catalog.schema_registries.get(name)
