"""Enum types as rows. Their labels keep their oids and order for good: labels are added and renamed, never removed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import replace

from catalog import records
from catalog.connection import CatalogConnection, Row
from catalog.counters import next_oid, next_oid_pair
from catalog.identifiers import check_identifier
from catalog.model import EnumLabel, EnumType
from mvserver import limits, sqlstates
from mvserver.errors import SqlError

_SELECT = "SELECT id, oid, schema_id, name, labels, owner, created_at, acl FROM enum_types"


class Enums:
    def __init__(self, connection: CatalogConnection) -> None:
        self._connection = connection

    def all(self) -> tuple[EnumType, ...]:
        return tuple(map(_enum, self._connection.read(f"{_SELECT} ORDER BY oid")))

    def of_schema(self, schema_id: str) -> tuple[EnumType, ...]:
        return tuple(map(_enum, self._connection.read(f"{_SELECT} WHERE schema_id = ? ORDER BY name", (schema_id,))))

    def find(self, schema_id: str, name: str) -> EnumType | None:
        rows = self._connection.read(f"{_SELECT} WHERE schema_id = ? AND name = ?", (schema_id, name))
        return _enum(rows[0]) if rows else None

    def add(self, schema_id: str, name: str, labels: Sequence[str], owner: str) -> EnumType:
        self._check_name(schema_id, name)
        for at, label in enumerate(labels):
            _check_label(label)
            if label in labels[:at]:
                raise SqlError(
                    sqlstates.UNIQUE_VIOLATION,
                    'duplicate key value violates unique constraint "pg_enum_typid_label_index"',
                    detail=f"The label {label!r} is there twice.",
                )
        _check_count(len(labels))
        oid = next_oid_pair(self._connection)
        made = EnumType(
            id=str(uuid.uuid4()), oid=oid, schema_id=schema_id, name=name, owner=owner, created_at=time.time(),
            labels=tuple(
                EnumLabel(next_oid(self._connection), label, float(order)) for order, label in enumerate(labels, 1)
            ),
        )  # fmt: skip
        self._connection.write(
            "INSERT INTO enum_types (id, oid, schema_id, name, labels, owner, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (made.id, oid, schema_id, name, records.labels_text(made.labels), owner, made.created_at),
        )
        return made

    def add_label(self, enum: EnumType, name: str, neighbour: str | None, *, before: bool) -> None:
        """At the end, or beside the label ``neighbour``."""
        _check_label(name)
        self._check_new_label(enum, name)
        _check_count(len(enum.labels) + 1)
        at = len(enum.labels) if neighbour is None else self._index(enum, neighbour) + (0 if before else 1)
        low = enum.labels[at - 1].order if at else None
        high = enum.labels[at].order if at < len(enum.labels) else None
        label = EnumLabel(next_oid(self._connection), name, _between(low, high))
        labels = (*enum.labels[:at], label, *enum.labels[at:])
        if low is not None and high is not None and not low < label.order < high:  # no number is left between them
            labels = tuple(replace(each, order=float(order)) for order, each in enumerate(labels, 1))
        self._write_labels(enum, labels)

    def rename_label(self, enum: EnumType, old: str, new: str) -> None:
        at = self._index(enum, old)
        _check_label(new)
        self._check_new_label(enum, new)
        self._write_labels(enum, (*enum.labels[:at], replace(enum.labels[at], name=new), *enum.labels[at + 1 :]))

    def rename(self, enum: EnumType, name: str) -> None:
        self._check_name(enum.schema_id, name)
        self._connection.write("UPDATE enum_types SET name = ? WHERE id = ?", (name, enum.id))

    def delete(self, id_: str) -> None:
        self._connection.write("DELETE FROM enum_types WHERE id = ?", (id_,))

    def _check_name(self, schema_id: str, name: str) -> None:
        check_identifier(name)
        if self.find(schema_id, name) is not None:
            raise SqlError(sqlstates.DUPLICATE_OBJECT, f'type "{name}" already exists')

    @staticmethod
    def _check_new_label(enum: EnumType, name: str) -> None:
        if any(label.name == name for label in enum.labels):
            raise SqlError(sqlstates.DUPLICATE_OBJECT, f'enum label "{name}" already exists')

    @staticmethod
    def _index(enum: EnumType, name: str) -> int:
        for at, label in enumerate(enum.labels):
            if label.name == name:
                return at
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'"{name}" is not an existing enum label')

    def _write_labels(self, enum: EnumType, labels: Sequence[EnumLabel]) -> None:
        self._connection.write("UPDATE enum_types SET labels = ? WHERE id = ?", (records.labels_text(labels), enum.id))


def _between(low: float | None, high: float | None) -> float:
    if low is None:
        return 1.0 if high is None else high - 1
    return low + 1 if high is None else (low + high) / 2


def _check_label(name: str) -> None:
    if len(name.encode()) > limits.IDENTIFIER_BYTES_MAX or "\0" in name:
        raise SqlError(
            sqlstates.INVALID_NAME,
            f'invalid enum label "{name[:80]}"',
            detail=f"Labels must be {limits.IDENTIFIER_BYTES_MAX} bytes or less.",
        )


def _check_count(count: int) -> None:
    if count > limits.ENUM_LABELS_MAX:
        raise SqlError(
            sqlstates.PROGRAM_LIMIT_EXCEEDED, f"an enum type can have at most {limits.ENUM_LABELS_MAX} labels"
        )


def _enum(row: Row) -> EnumType:
    return EnumType(row[0], row[1], row[2], row[3], records.labels(row[4]), row[5], row[6], records.acl(row[7]))
