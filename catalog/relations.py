"""Relations as rows: streams and materialized views share one space of names in each schema."""

from __future__ import annotations

from dataclasses import replace

from catalog import records
from catalog.acl import ObjectKind
from catalog.connection import CatalogConnection, Row
from catalog.counters import next_oid
from catalog.default_privileges import DefaultPrivileges
from catalog.identifiers import check_identifier
from catalog.model import Index, Relation
from mvserver import sqlstates
from mvserver.errors import SqlError

_SELECT = (
    "SELECT id, oid, schema_id, name, kind, columns, properties, definition, owner, created_at, store_id, entity, "
    "key_columns, row_type_oid, acl, stored_select, indexes, row_security, row_security_forced FROM relations"
)


class Relations:
    def __init__(self, connection: CatalogConnection, defaults: DefaultPrivileges) -> None:
        self._connection = connection
        self._defaults = defaults

    def all(self) -> tuple[Relation, ...]:
        return tuple(map(_relation, self._connection.read(f"{_SELECT} ORDER BY oid")))

    def of_schema(self, schema_id: str) -> tuple[Relation, ...]:
        return tuple(
            map(_relation, self._connection.read(f"{_SELECT} WHERE schema_id = ? ORDER BY name", (schema_id,)))
        )

    def of_store(self, store_id: str) -> tuple[Relation, ...]:
        return tuple(map(_relation, self._connection.read(f"{_SELECT} WHERE store_id = ? ORDER BY oid", (store_id,))))

    def find(self, schema_id: str, name: str) -> Relation | None:
        rows = self._connection.read(f"{_SELECT} WHERE schema_id = ? AND name = ?", (schema_id, name))
        return _relation(rows[0]) if rows else None

    def by_id(self, id_: str) -> Relation | None:
        rows = self._connection.read(f"{_SELECT} WHERE id = ?", (id_,))
        return _relation(rows[0]) if rows else None

    def by_oid(self, oid: int) -> Relation | None:
        rows = self._connection.read(f"{_SELECT} WHERE oid = ?", (oid,))
        return _relation(rows[0]) if rows else None

    def check_new(self, schema_id: str, name: str) -> None:
        check_identifier(name)
        if self.find(schema_id, name) is not None or self.find_index(schema_id, name) is not None:
            raise SqlError(sqlstates.DUPLICATE_TABLE, f'relation "{name}" already exists')

    def find_index(self, schema_id: str, name: str) -> tuple[Relation, Index] | None:
        """With the relation whose index it is."""
        for relation in self.of_schema(schema_id):
            for index in relation.indexes:
                if index.name == name:
                    return relation, index
        return None

    def add_index(self, relation: Relation, index: Index) -> None:
        """``oid`` is replaced by a new one."""
        self.check_new(relation.schema_id, index.name)
        self._put_indexes(relation, (*relation.indexes, replace(index, oid=next_oid(self._connection))))

    def delete_index(self, relation: Relation, index: Index) -> None:
        self._put_indexes(relation, tuple(each for each in relation.indexes if each != index))

    def _put_indexes(self, relation: Relation, indexes: tuple[Index, ...]) -> None:
        ordered = sorted(indexes, key=lambda index: index.name)
        self._connection.write(
            "UPDATE relations SET indexes = ? WHERE id = ?", (records.indexes_text(ordered), relation.id)
        )

    def add(self, relation: Relation) -> Relation:
        """``oid`` and ``row_type_oid`` are replaced by new ones."""
        self.check_new(relation.schema_id, relation.name)
        stored = replace(
            relation,
            oid=next_oid(self._connection),
            row_type_oid=next_oid(self._connection),
            acl=relation.acl or self._defaults.of_new(ObjectKind.RELATION, relation.owner, relation.schema_id),
        )
        self._connection.write(
            "INSERT INTO relations (id, oid, schema_id, name, kind, columns, properties, definition, owner, "
            "created_at, store_id, entity, key_columns, row_type_oid, acl, stored_select) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                stored.id,
                stored.oid,
                stored.schema_id,
                stored.name,
                stored.kind,
                records.columns_text(stored.columns),
                records.pairs_text(stored.properties),
                stored.definition,
                stored.owner,
                stored.created_at,
                stored.store_id,
                stored.entity,
                records.names_text(stored.key_columns),
                stored.row_type_oid,
                records.acl_text(stored.acl),
                records.select_text(stored.select),
            ),
        )
        return stored

    def replace_view(self, view: Relation) -> None:
        """Another text and more columns of a view, which stays what it is to those that read it."""
        self._connection.write(
            "UPDATE relations SET columns = ?, definition = ?, stored_select = ? WHERE id = ?",
            (records.columns_text(view.columns), view.definition, records.select_text(view.select), view.id),
        )

    def set_row_security(self, relation: Relation, *, enabled: bool, forced: bool) -> None:
        self._connection.write(
            "UPDATE relations SET row_security = ?, row_security_forced = ? WHERE id = ?",
            (enabled, forced, relation.id),
        )

    def move(self, relation: Relation, schema_id: str, name: str) -> None:
        """Another name or schema."""
        self.check_new(schema_id, name)
        self._connection.write(
            "UPDATE relations SET schema_id = ?, name = ? WHERE id = ?", (schema_id, name, relation.id)
        )

    def redefine(self, id_: str, relation: Relation) -> None:
        """Another relation in its place, with its OIDs and so its comments, and with the indexes of columns that it
        has too. No query may read it or write to it."""
        names = {column.name for column in relation.columns}
        kept = [index for index in relation.indexes if names.issuperset(column.name for column in index.columns)]
        self._connection.write(
            "UPDATE relations SET id = ?, columns = ?, properties = ?, definition = ?, key_columns = ?, indexes = ? "
            "WHERE id = ?",
            (
                relation.id,
                records.columns_text(relation.columns),
                records.pairs_text(relation.properties),
                relation.definition,
                records.names_text(relation.key_columns),
                records.indexes_text(kept),
                id_,
            ),
        )

    def delete(self, id_: str) -> None:
        """No query may read it or write to it."""
        self._connection.write("DELETE FROM relations WHERE id = ?", (id_,))


def _relation(row: Row) -> Relation:
    return Relation(
        id=row[0],
        oid=row[1],
        schema_id=row[2],
        name=row[3],
        kind=row[4],
        columns=records.columns(row[5]),
        properties=records.pairs(row[6]),
        definition=row[7],
        owner=row[8],
        created_at=row[9],
        store_id=row[10],
        entity=row[11],
        key_columns=records.names(row[12]),
        row_type_oid=row[13],
        acl=records.acl(row[14]),
        select=records.select(row[15]),
        indexes=records.indexes(row[16]),
        row_security=bool(row[17]),
        row_security_forced=bool(row[18]),
    )
