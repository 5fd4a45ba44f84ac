"""Relations whose records have schemas in a registry: the columns of the newest one, and that there is a registry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from catalog.dependencies import REGISTRY_OF_STORE
from catalog.model import SchemaRegistry, Store
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing import schema_registries
from mvserver.routing.ports import Services
from spark_sinks.base import DeclaredColumn
from spark_sinks.decode import format_of
from spark_sinks.decode.formats import FORMATS
from spark_sinks.encode.avro_form import WHOLE_KEY, WHOLE_VALUE
from spark_sinks.schema_registry.base import RegisteredSchema


def has(format_: str) -> bool:
    return format_of(format_).columns is not None


def subject_of(entity: str, *, key: bool = False) -> str:
    """The name under which Confluent's clients register what they write to a topic."""
    return f"{entity}-{'key' if key else 'value'}"


def of_entity(store: Store, entity: str, format_: str, services: Services) -> Sequence[DeclaredColumn]:
    """42704 where nothing is registered for the entity's values."""
    require_registry(store, (format_,))
    subject = subject_of(entity)
    registry, found = _latest(store, subject, services)
    if found is None:
        raise SqlError(
            sqlstates.UNDEFINED_OBJECT,
            f'subject "{subject}" does not exist in schema registry "{registry.name}"',
            hint="Declare the columns, or register a schema.",
        )
    return _columns(found, subject, format_)


def key_of_entity(
    store: Store, entity: str, format_: str | None, services: Services
) -> tuple[str, Sequence[DeclaredColumn]] | None:
    """The format of the entity's keys, and their fields; None where nothing is registered for them, or the format
    that is given has no schemas."""
    if store.property(REGISTRY_OF_STORE) is None or (format_ is not None and not has(format_)):
        return None
    subject = subject_of(entity, key=True)
    _, found = _latest(store, subject, services)
    if found is None:
        return None
    of_kind = next((each.name for each in FORMATS if each.of_keys and each.registered == found.kind), None)
    wanted = format_ or of_kind
    if wanted is None:
        return None
    require_registry(store, (wanted,))
    columns = _columns(found, subject, wanted)
    if [each.name for each in columns] == [WHOLE_VALUE]:
        columns = [replace(columns[0], name=WHOLE_KEY)]
    return wanted, columns


def _latest(store: Store, subject: str, services: Services) -> tuple[SchemaRegistry, RegisteredSchema | None]:
    registry = schema_registries.of_store(store, services)
    assert registry is not None  # noqa: S101 - just asked
    return registry, services.schema_registries.client(registry).latest(subject)


def _columns(found: RegisteredSchema, subject: str, format_: str) -> Sequence[DeclaredColumn]:
    known = format_of(format_)
    assert known.columns is not None  # noqa: S101 - just asked
    if found.kind != known.registered:
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH,
            f'subject "{subject}" has schemas of kind {found.kind}, not {known.registered}',
        )
    try:
        return known.columns(found)
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'schema {found.id} of subject "{subject}" cannot be used',
            detail=f"{type(error).__name__}: {error}"[:500],
            hint="Declare the columns: CREATE STREAM name (column type, ...) WITH (...).",
        ) from error


def require_registry(store: Store, formats: Iterable[str | None]) -> None:
    """55000 where a format has its schemas in a registry, and the store names none."""
    for name in formats:
        required = None if name is None else format_of(name).required
        if required is not None:
            required()
        if name is not None and format_of(name).registered is not None and store.property(REGISTRY_OF_STORE) is None:
            raise SqlError(
                sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                f'store "{store.name}" names no schema registry, which the format {name} needs',
                hint="Name one with UPDATE STORE name WITH ('schema_registry.name' = registry).",
            )
