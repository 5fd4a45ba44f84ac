"""The kinds of stores: a new one is a folder of this package and a row here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spark_sinks.databricks.kind import DATABRICKS
from spark_sinks.file.kind import FILE
from spark_sinks.iceberg.kind import ICEBERG
from spark_sinks.kafka.kind import CONFLUENT_KAFKA, KAFKA
from spark_sinks.kinesis.kind import KINESIS
from spark_sinks.postgresql.kind import POSTGRESQL
from spark_sinks.snowflake.kind import SNOWFLAKE
from spark_sinks.store_kind import EntityProperty, StoreKind

KINDS: tuple[StoreKind[Any], ...] = (
    FILE, KAFKA, CONFLUENT_KAFKA, KINESIS, POSTGRESQL, ICEBERG, DATABRICKS, SNOWFLAKE,
)  # fmt: skip


def entity_properties(kinds: Sequence[StoreKind[Any]] = KINDS) -> tuple[EntityProperty, ...]:
    """Of all kinds, each once."""
    return tuple(dict.fromkeys(known for kind in kinds for known in kind.entity_properties))


def secret_keys(kinds: Sequence[StoreKind[Any]] = KINDS) -> frozenset[str]:
    """The properties of stores whose values are shown to nobody."""
    return frozenset(key for kind in kinds for key in kind.secret_keys)


def class_path(jar_directory: Path | None, kinds: Sequence[StoreKind[Any]] = KINDS) -> Sequence[Path]:
    """The jars of connectors that are on this machine already: Spark has them from its start on."""
    connectors = dict.fromkeys(kind.connector for kind in kinds if kind.connector is not None)
    return [path for connector in connectors for path in connector.files(jar_directory)]


def spark_settings(kinds: Sequence[StoreKind[Any]] = KINDS) -> tuple[tuple[str, str], ...]:
    """What Spark's session is started with for the sake of stores."""
    return tuple(pair for kind in kinds for pair in kind.spark_settings)
