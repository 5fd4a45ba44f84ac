"""Names of Snowflake: what folds to upper case there, and how a table is named as an entity."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.errors import SqlError

_FOLDING = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_FOLDED = re.compile(r"[A-Z_][A-Z0-9_$]*")
_LOWER = re.compile(r"[a-z_][a-z0-9_$]*")
_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')
_LENGTH_MAX = 255
PROGRESS = "_MVSERVER_PROGRESS"  # behind a table's name: the table in which its queries' positions stand


@dataclass(frozen=True)
class TableName:
    """As they are kept there. As text it is the entity's name: parts that fold to themselves are bare."""

    database: str
    schema: str
    table: str

    def __str__(self) -> str:
        return ".".join(map(spelled, self.parts))

    @property
    def parts(self) -> tuple[str, str, str]:
        return self.database, self.schema, self.table

    @property
    def sql(self) -> str:
        return ".".join(map(quoted, self.parts))

    @property
    def schema_sql(self) -> str:
        return f"{quoted(self.database)}.{quoted(self.schema)}"

    @property
    def progress(self) -> TableName:
        return TableName(self.database, self.schema, self.table + PROGRESS)


def parsed(entity: str) -> TableName | None:
    """None for what no table is named: each has one name only, since relations know theirs by it."""
    parts, at = [], 0
    while at <= len(entity):
        found = _PART.match(entity, at)
        if found is None:
            return None
        parts.append(found[1].replace('""', '"') if found[1] else found[2])
        at = found.end() + 1
        if found.end() < len(entity) and entity[found.end()] != ".":
            return None
    name = TableName(*parts) if len(parts) == 3 else None
    return name if name is not None and str(name) == entity else None


def identifier(key: str, text: str) -> str:
    """A name in a property, as a statement of Snowflake has it: it folds unless it is in double quotes."""
    if text.startswith('"'):
        found = _PART.fullmatch(text)
        if found is None or not found[1]:
            raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'property "{key}" is not a name')
        return _short(key, found[1].replace('""', '"'))
    return _short(key, text.upper() if _FOLDING.fullmatch(text) else text)


def _short(key: str, name: str) -> str:
    if len(name) > _LENGTH_MAX - len(PROGRESS):
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'property "{key}" is longer than a name may be')
    return name


def folded(name: str) -> str:
    """A name of this server, which folds to lower case: one that needs no quotes here needs none there."""
    return name.upper() if _LOWER.fullmatch(name) else name


def spelled(name: str) -> str:
    """Quoted where it needs that."""
    return name if _FOLDED.fullmatch(name) else quoted(name)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
