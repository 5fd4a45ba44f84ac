"""A kind of store as one frozen record: its properties, what it can do, and how its clients are made.

A kind is a folder of this package with a ``kind.py``, and a row of ``spark_sinks.kinds.KINDS``. The rest of the server
asks the record for capabilities and never compares names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mvserver import sqlstates
from mvserver.config_values import Row
from mvserver.errors import SqlError
from spark_sinks.jars import Connector

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from spark_sinks.base import (
        KeptPosition,
        KeyedCopies,
        KnownColumns,
        SourceReader,
        StoreClient,
        TableClient,
        TableShape,
        TableSink,
        TransactionalSink,
    )
    from spark_sinks.decode.columns import DecodeColumn
    from spark_sinks.schema_registry.book import SchemaBook
    from spark_sinks.table_options import TableOptions

REGION = ("access.region", "access_region", "availability_zone")
"""Properties that say where a store of a cloud is. Each kind takes them; they never change."""
_ALIASES = {"access_region": "access.region"}  # the older spelling of the dialect

Options = TypeVar("Options")  # a kind's own record of a store's checked properties


@dataclass(frozen=True)
class StoreSettings:
    """What the server's configuration says to its stores. ``values`` are those of the kinds' own rows, by name."""

    values: Mapping[str, Any]
    certificate_folders: tuple[Path, ...]
    jar_directory: Path | None
    record_bytes_max: int


@dataclass(frozen=True)
class EntityProperty:
    """A property of an entity, in CREATE ENTITY and in the declaration of a relation over it.

    One with ``reading`` says how an entity is read, in a declaration and behind a relation's name in FROM. Queries that
    differ in it have readings of their own.
    """

    name: str  # one that ends in "*" stands for all that begin so
    is_count: bool = False  # a whole number of 1 or more
    required: bool = False  # a declaration makes no entity without it
    shown_as: str | None = None  # its name in describe_entity's details: an entity that is there must agree
    older_name: str | None = None  # which CREATE ENTITY takes, too
    reading: Callable[[str], None] | None = None  # of one that says how the entity is read: checks a value

    @property
    def prefix(self) -> str | None:
        return self.name[:-1] if self.name.endswith("*") else None

    def matches(self, key: str) -> bool:
        prefix = self.prefix
        return key == self.name if prefix is None else key.startswith(prefix) and key != prefix


@dataclass(frozen=True)
class Source(Generic[Options]):
    """What a reader is made for."""

    store: str
    options: Options
    entity: str
    work: Path  # a folder of the reader's own
    schema: StructType | None  # of records that Spark types itself; None for those that the server decodes
    format: str = ""  # of values
    changelog: bool = False  # whether it reads rows by their keys
    schemas: SchemaBook | None = None  # of a store that names a schema registry
    reading: Mapping[str, str] = field(default_factory=dict)  # what the query says of it


@dataclass(frozen=True)
class Target(Generic[Options]):
    """What a sink is made for."""

    store: str
    options: Options
    entity: str
    query_id: str
    kept: KeptPosition  # for a sink without transactions
    format: str = "json"  # of values
    columns: tuple[DecodeColumn, ...] = ()  # of a value
    letters: str | None = None  # the entity for refused records (``SinkRecords.refusals``); None: they are left


@dataclass(frozen=True)
class TableTarget(Generic[Options]):
    """What a sink of rows is made for. ``properties`` are the kind's own, as the statement gave them."""

    store: str
    options: Options
    entity: str
    query_id: str
    shape: TableShape
    table: TableOptions
    properties: Mapping[str, str]


@dataclass(frozen=True)
class Tables(Generic[Options]):
    """Of a kind whose entities are tables that queries write to."""

    client: Callable[[StoreClient], TableClient]  # what the kind's client is, too
    sink: Callable[[TableTarget[Options], StoreSettings], TableSink]  # opened
    entity: Callable[[Options, Mapping[str, str], str], str]  # the table's name, by ``properties`` and the relation's
    properties: tuple[str, ...] = ()  # of CREATE TABLE, besides those of all kinds
    aliases: Mapping[str, str] = field(default_factory=dict)  # other spellings of those of all kinds
    places: tuple[str, ...] = ()  # of ``properties``, those that do not name the table: CREATE ENTITY has them


@dataclass(frozen=True)
class Extra:
    """Packages that are not installed with the server: ``pip install 'mvserver[name]'``. One of them is ``module``."""

    name: str
    module: str


CheckReading = Callable[["StoreClient", str, Mapping[str, str], bool], None]
"""Asks a client whether an entity can be read as these properties say. The last says whether it is read so already."""


@dataclass(frozen=True)
class StoreKind(Generic[Options]):
    """``options`` checks a store's properties: 22023 for what is wrong in them, 42501 for a place that is not open to
    stores. The builders raise nothing and reach nothing; they import what they need when they are called."""

    name: str  # upper case, as the property 'type' has it
    options: Callable[[Mapping[str, Any], StoreSettings], Options]
    client: Callable[[str, Options, StoreSettings], StoreClient]  # the first is the store's name
    reader: Callable[[Source[Options], StoreSettings], SourceReader] | None = None  # None where nothing is read of it
    formats: tuple[str, ...] = ()  # value formats that it is read in
    described_formats: tuple[str, ...] = ()  # the same, read and written, where a relation says by which descriptor
    metadata: str | None = None  # the type of what it knows of a record besides key and value, a struct
    tables: Tables[Options] | None = None
    extra: Extra | None = None
    sink: Callable[[Target[Options], StoreSettings], TransactionalSink] | None = None  # opened
    written_formats: tuple[str, ...] = ()  # value formats that a query may write; none where there is no sink
    deletion_field: str | None = None  # where records have no key: of a value that says that its row is gone
    written_identity: str | None = None  # a field that tells a record from all others; no column has its name
    secret_keys: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=lambda: _ALIASES)  # other spellings of properties
    fixed_keys: tuple[str, ...] = REGION  # UPDATE STORE does not change them
    entity_properties: tuple[EntityProperty, ...] = ()
    entity_hint: str = "An entity of such a store has no properties."  # under a property that its entities do not have
    changelog_properties: Mapping[str, str] = field(default_factory=dict)  # of an entity that is made for a changelog
    has_keys: bool = False  # records have a key, by which they are replaced and deleted
    written_keys: str = (
        ""  # what the keys are that a sink gives records: "bytes" or "text"; nothing where it gives none
    )
    written_headers: bool = False  # a sink gives records headers
    key_formats: tuple[str, ...] = ()  # of these keys, the first where none is said; all formats where it is empty
    default_format: str | None = None  # of values, where none is said; None where it must be said
    changelogs_apart: bool = False  # a changelog's records of an entity are others than a stream's
    known_columns: Callable[[StoreClient], KnownColumns] | None = None  # of a client; None where entities have none
    check_reading: CheckReading | None = None  # of a kind whose entities have properties of reading
    reads_bounded: bool = True  # what an entity has now can be read once, up to its end
    exactly_once: bool = False  # a sink's transaction can hold where its reading stands, so nothing is written twice
    sink_exactly_once: bool = True  # a sink has transactions; else a record may be written again after a failure
    starts_at_moments: bool = False  # a client gives positions by moments, too
    reads_live: bool = False  # its readers have a live reading
    takes_schema_registry: bool = False  # a store may name one, by which its records are read and written
    creates_entities: bool = True
    takes_copies: bool = True  # COPY FROM can write to it
    keyed_copies: Callable[[StoreClient], KeyedCopies] | None = None  # of a client, the same for records with keys
    partitions: bool = False  # columns may be in the names of folders
    forget: Callable[[Target[Options], StoreSettings], None] | None = None  # what a query that is dropped left there
    connector: Connector | None = None  # jars that Spark needs
    spark_settings: tuple[tuple[str, str], ...] = ()  # of the session, for what its jars do
    settings: tuple[Row, ...] = ()  # of the server

    def entity_property(self, key: str) -> EntityProperty | None:
        return next((known for known in self.entity_properties if known.matches(key)), None)

    def reading_properties(self) -> Sequence[EntityProperty]:
        """Those that say how an entity is read."""
        return [known for known in self.entity_properties if known.reading is not None]

    def in_order(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """An entity's properties in the order of the kind's own list; others come last."""
        places = {known: at for at, known in enumerate(self.entity_properties)}

        def place(key: str) -> int:
            known = self.entity_property(key)
            return len(places) if known is None else places[known]

        return {key: properties[key] for key in sorted(properties, key=place)}


def require_extra(kind: StoreKind[Any]) -> None:
    """0A000 where the kind's packages are not installed."""
    if kind.extra is None or _is_installed(kind.extra.module):
        return
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"stores of type {kind.name} need packages that are not installed",
        detail=f"There is no package {kind.extra.module}.",
        hint=f"pip install 'mvserver[{kind.extra.name}]' installs them; then start the server anew.",
    )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False


def check_entity_properties(
    kind: StoreKind[Any],
    given: Iterable[str],
    known: Sequence[EntityProperty],
    position: Callable[[str], int | None] = lambda key: None,
) -> None:
    """``known`` are those of all kinds. 22023 for one that the kind's entities do not have; 0A000 where its entities
    have none at all and another kind's have it."""
    names = {name for own in kind.entity_properties for name in (own.name, own.older_name)}
    for key in given:
        if key in names or kind.entity_property(key) is not None:
            continue
        if not kind.entity_properties and any(key == other.older_name or other.matches(key) for other in known):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'property "{key}" is not supported for a store of type {kind.name}',
                hint=kind.entity_hint,
                position=position(key),
            )
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{key}" is not known for an entity of a store of type {kind.name}',
            hint=kind.entity_hint if kind.entity_properties else None,
            position=position(key),
        )
