"""Statements about entities of a FILE store: what they may say, in a directory as among objects."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mvserver import moments, sqlstates
from mvserver.errors import SqlError
from spark_sinks.file.files import record_too_long
from spark_sinks.file.limits import FILE_NAME_BYTES_MAX, FILE_RECORD_BYTES_MAX


def check_entity_name(name: str) -> None:
    if not name or name.startswith(".") or any(mark in name for mark in ("/", "\\", "\0")):
        raise SqlError(
            sqlstates.INVALID_NAME,
            f'invalid entity name "{name}"',
            detail="In a store of type FILE an entity is a directory: its name has no path separator and does not "
            "begin with a dot.",
        )
    if len(name.encode()) > FILE_NAME_BYTES_MAX:
        raise SqlError(
            sqlstates.INVALID_NAME,
            "entity name is too long",
            detail=f"A directory's name has at most {FILE_NAME_BYTES_MAX} bytes.",
        )


def no_entity(name: str, store: str) -> SqlError:
    return SqlError(sqlstates.UNDEFINED_OBJECT, f'entity "{name}" does not exist in store "{store}"')


def entity_exists_already(name: str, store: str) -> SqlError:
    return SqlError(sqlstates.DUPLICATE_OBJECT, f'entity "{name}" already exists in store "{store}"')


def not_empty(name: str, count: int) -> SqlError:
    return SqlError(
        sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
        f'cannot drop entity "{name}" because it is not empty',
        detail=f"It holds {count} {'file' if count == 1 else 'files'}.",
        hint="Use DROP ENTITY ... WITH ('delete.files' = true) to delete the files too.",
    )


def inserted_line(value: str | None, key: str | None, properties: Mapping[str, Any]) -> bytes:
    """The line that INSERT INTO ENTITY writes."""
    if value is None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "records of a store of type FILE have a value",
            hint="A record without a value deletes a key; records of such a store have none.",
        )
    if key is not None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "records of a store of type FILE have no key",
            hint="Give the value alone.",
        )
    for unknown in properties:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{unknown}" is not known for INSERT INTO ENTITY in a store of type FILE',
        )
    if "\n" in value or "\r" in value:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            "the value contains a line break",
            detail="In a store of type FILE each line of a file is a record.",
        )
    content = value.encode() + b"\n"
    if len(content) > FILE_RECORD_BYTES_MAX:
        raise record_too_long("the value")
    return content


def new_file_name() -> str:
    """Files of one writer are read in the order of their names, also where the system's clock is put back meanwhile."""
    return f"{moments.now_ns():020d}-{uuid.uuid4().hex}.txt"


def lines_of(records: Iterable[bytes]) -> Iterator[bytes]:
    for record in records:
        if len(record) >= FILE_RECORD_BYTES_MAX:
            raise record_too_long("a record")
        yield record + b"\n"


def deletes_files(properties: Mapping[str, Any]) -> bool:
    """Whether DROP ENTITY says so."""
    for key in properties:
        if key != "delete.files":
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{key}" is not known for DROP ENTITY in a store of type FILE',
                hint="It has 'delete.files' = true or false.",
            )
    value = properties.get("delete.files", False)
    text = str(value).lower()
    if text not in ("true", "false"):
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f'property "delete.files" must be true or false, not "{value}"'
        )
    return text == "true"


def unknown_start(starting: str) -> SqlError:
    return SqlError(
        sqlstates.INVALID_PARAMETER_VALUE,
        f'unrecognized starting position "{starting}"',
        hint="It is earliest or latest.",
    )
