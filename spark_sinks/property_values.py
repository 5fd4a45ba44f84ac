"""Values of stores' properties that several kinds check in the same way."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError

_REGION_OF_S3 = re.compile(r"(?!\d+$)(?!-)[A-Za-z0-9-]{1,63}(?<!-)")  # services that speak its protocol have others


def boolean(properties: Mapping[str, Any], key: str, *, default: bool | None) -> bool | None:
    value = properties.get(key)
    if value is None:
        return default
    return one_of(key, str(value).lower(), ("true", "false")) == "true"


def one_of(key: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{key}" cannot be "{value}"',
            hint=f"It is one of {', '.join(allowed)}.",
        )
    return value


def printable(properties: Mapping[str, Any], key: str) -> str | None:
    value = properties.get(key)
    if value is not None and (not isinstance(value, str) or not value or not value.isprintable()):
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'property "{key}" must be text without control characters')
    return value


def stripped(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'property "{key}" must be a text')
    return value.strip()


def credentials_refused(store: str, detail: str | None) -> SqlError:
    """Where a store does not know who asks."""
    return SqlError(
        sqlstates.INSUFFICIENT_PRIVILEGE,
        f'store "{store}" refuses the credentials',
        detail=detail,
        hint="Check the properties of the store that say who the server is, and where the store is.",
    )


def region_of_s3(texts: Mapping[str, str], keys: Sequence[str]) -> str | None:
    """The first of them that is given. The dialect has 'AWS us-east-1', too."""
    found = next(((key, texts[key]) for key in keys if key in texts), None)
    if found is None:
        return None
    name = found[1].removeprefix("AWS ")
    if not _REGION_OF_S3.fullmatch(name):
        raise no_region(*found)
    return name


def no_region(key: str, name: str) -> SqlError:
    return SqlError(
        sqlstates.INVALID_PARAMETER_VALUE,
        f'property "{key}" has "{name}", which is not a region',
        hint="It is a name as us-east-2.",
    )


def check_keys_of_address(texts: Mapping[str, str], key: str, secret: str, others: Sequence[str]) -> None:
    """Keys of S3 are given together. With ``others``, which say that it is another service, they are needed (42501)."""
    if (key in texts) != (secret in texts):
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{key}" and property "{secret}" are given together, or not at all',
        )
    if key not in texts and any(other in texts for other in others):
        raise own_credentials_elsewhere(f"Give '{key}' and '{secret}'.")


def own_credentials_elsewhere(hint: str) -> SqlError:
    return SqlError(
        sqlstates.INSUFFICIENT_PRIVILEGE,
        "the server's own credentials are not used for an address that is not the service's",
        hint=hint,
    )


def refuse_unknown(kind: str, properties: Mapping[str, Any], accepted: Sequence[str]) -> None:
    """22023 for a key that no store of the kind has."""
    for key in properties:
        if key not in accepted:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{key}" is not known for a store of type {kind}',
                hint="Such a store has " + ", ".join(f"'{name}'" for name in accepted if name != "type") + ".",
            )


def conflict(first: str, second: str) -> SqlError:
    return SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'properties "{first}" and "{second}" contradict each other')


def configured_file(key: str, value: object, folders: Sequence[Path]) -> Path:
    """The file that a property names, links followed; 42501 for one that is not under a configured folder."""
    given = Path(str(value))
    for folder in (folder.resolve() for folder in folders):
        path = (folder / given).resolve()
        if path.is_relative_to(folder) and path.is_file():
            return path
    raise SqlError(
        sqlstates.INSUFFICIENT_PRIVILEGE,
        f'file "{given}" is not under a configured folder',
        hint=f"The property '{key}' names a file, relative to a folder of the server's configuration.",
    )
