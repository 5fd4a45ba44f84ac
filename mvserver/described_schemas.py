"""The schema of a relation's records where a descriptor source has it: from catalog records to what decodes them."""

from __future__ import annotations

from catalog.dependencies import DESCRIPTORS
from catalog.model import DescriptorSource, Relation
from catalog.store import Catalog
from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.decode import columns_of_descriptor
from spark_sinks.schema_registry.descriptors import DescribedSchema, Descriptors, schema_of

MESSAGES, CONTENT = "messages", "content"  # properties that a source is kept with


def described(relation: Relation, key: str, catalog: Catalog) -> DescribedSchema | None:
    """What the property ``key`` of a relation names; None where it has none."""
    full_name = relation.property(key)
    return None if full_name is None else schema_named(full_name, catalog)


def schema_named(full_name: str, catalog: Catalog) -> DescribedSchema:
    """``full_name`` is ``source.message``, as relations keep it."""
    source, _, message = full_name.partition(".")
    return schema_of(_descriptors(source_named(source, catalog)), message)


def has_field(relation: Relation, name: str, catalog: Catalog) -> bool:
    """Whether the values of a relation have a place for one more field. Without a descriptor they have."""
    found = described(relation, DESCRIPTORS[0], catalog)
    return found is None or any(column.name == name for column in columns_of_descriptor(found))


def source_named(name: str, catalog: Catalog, position: int | None = None) -> DescriptorSource:
    """42704 where there is none."""
    found = catalog.descriptor_sources.find(name)
    if found is None:
        raise SqlError(sqlstates.UNDEFINED_OBJECT, f'descriptor source "{name}" does not exist', position=position)
    return found


def messages(source: DescriptorSource) -> list[str]:
    return (source.property(MESSAGES) or "").split()


def _descriptors(source: DescriptorSource) -> Descriptors:
    return Descriptors(source.type, tuple(messages(source)), source.property(CONTENT) or "")
