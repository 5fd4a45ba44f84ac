"""The common part of statements about stores: kinds, the properties every kind has, and 'config_file'."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catalog.model import Store
from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.routing.config_folder import cannot_read, read_file
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.routing.work import Work
from mvserver.sql.statements.base import Properties, Value
from spark_sinks.store_kind import StoreKind

_CONFIG_FILE = "config_file"


def kind(reader: PropertyReader, services: Services) -> StoreKind[Any]:
    """That of the checked 'type'."""
    kinds = {kind.name: kind for kind in services.stores.kinds()}
    value = reader.text("type")
    if value is None:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            'a store needs the property "type"',
            hint=f"Types are {', '.join(kinds)}.",
        )
    if value.upper() in kinds:
        return kinds[value.upper()]
    raise reader.error("type", f'store type "{value}" does not exist', hint=f"Types are {', '.join(kinds)}.")


def checked(
    kind_: StoreKind[Any], given: Properties, base: Mapping[str, str], services: Services
) -> tuple[tuple[str, str], ...]:
    """A store's properties from ``base``, what its 'config_file' says, and the statement, each over the one before."""
    reader = PropertyReader(given, f"a store of type {kind_.name}")
    reader.take("type")
    file_name = reader.text(_CONFIG_FILE)
    merged: dict[str, Value] = dict(base)
    if file_name is not None:
        merged.update(read_config_file(services.store_config_dir, file_name, kind_.aliases))
    for key in given:
        if key not in ("type", _CONFIG_FILE):
            merged[kind_.aliases.get(key, key)] = reader.take(key)
    return services.stores.check_properties(kind_.name, merged)


def answers(store: Store, services: Services, work: Work) -> None:
    """The store is reached once, as it would be used."""
    if not work.rehearsal:
        services.stores.check(store)


def read_config_file(folder: Path, name: str, aliases: Mapping[str, str]) -> dict[str, Value]:
    """A properties file of the configured folder, ``key = value`` a line: a place for what no statement should show."""
    content = read_file(folder, name, _CONFIG_FILE, limits.CONFIG_FILE_BYTES_MAX)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise cannot_read(name, _CONFIG_FILE, "It is not UTF-8 text") from error
    return _parse(text, name, aliases)


def _parse(text: str, name: str, aliases: Mapping[str, str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        content = line.strip()
        if not content or content[0] in "#!":
            continue
        while content.endswith("\\"):  # the value goes on in the next line
            content = content[:-1] + next(lines, (0, ""))[1].strip()
        ends = [at for at in (content.find("="), content.find(":")) if at >= 0]
        key = content[: min(ends)].strip().lower() if ends else ""
        if not key:
            raise SqlError(
                sqlstates.CONFIG_FILE_ERROR,
                f'config_file "{name}" is not a properties file',
                detail=f"Line {number} is not of the form key = value.",
            )
        if key in found:
            raise SqlError(
                sqlstates.CONFIG_FILE_ERROR,
                f'config_file "{name}" has the key "{key}" more than once',
                detail=f"The second one is in line {number}.",
            )
        key = aliases.get(key, key)
        if key in ("type", _CONFIG_FILE):
            raise SqlError(
                sqlstates.CONFIG_FILE_ERROR,
                f'config_file "{name}" cannot have the key "{key}"',
                hint="Give it in the statement.",
            )
        found[key] = content[min(ends) + 1 :].strip()
    return found
