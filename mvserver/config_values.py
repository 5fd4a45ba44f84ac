"""A setting, and how its text becomes a value: one reader per type, each with the words for what it accepts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENVIRONMENT_PREFIX = "MVSERVER_"
_DURATION_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
_SIZE_UNITS = {"b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3, "tb": 1024**4}
_NUMBER_AND_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_LOG_LEVELS = ("debug", "info", "warning", "error")
_PORT_MAX = 65_535
_LEAST_INTERVAL_S = 0.001
_IMPORT = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+")
_RECORD_BYTES_MIN = 1024
_RECORD_BYTES_MAX = 256 * 1024 * 1024  # Spark's memory holds a record several times


@dataclass(frozen=True)
class ValueType:
    """``read`` raises ValueError with a text that follows ``invalid value for setting "x": ``."""

    label: str
    read: Callable[[object], Any]


@dataclass(frozen=True)
class Row:
    """A setting. ``default`` is text as a variable would have it; ``{data_dir}`` in it is the data directory. A row of
    a kind of stores says ``after`` which other it stands in lists."""

    name: str
    type: ValueType
    default: str
    doc: str
    after: str | None = None

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.upper()


def _text(raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise ValueError(f"{raw!r} is not a text")
    return raw.strip()


def _path(raw: object) -> Path:
    text = _text(raw)
    if "\0" in text:
        raise ValueError("a path has no zero byte")
    return Path(text).expanduser()


def _paths(raw: object) -> tuple[Path, ...]:
    parts = raw if isinstance(raw, list) else _text(raw).split(os.pathsep)
    return tuple(_path(part).resolve() for part in parts)


def _integer(raw: object, least: int, most: int | None = None) -> int:
    if isinstance(raw, bool) or not re.fullmatch(r"\d{1,18}", str(raw).strip().replace("_", "")):
        raise ValueError(f"{raw!r} is not a whole number")
    number = int(str(raw).strip())
    if number < least or (most is not None and number > most):
        bound = f"{least} or more" if most is None else f"between {least} and {most}"
        raise ValueError(f"{number} is not {bound}")
    return number


def _duration(raw: object) -> float:
    """Seconds. A number without a unit is seconds."""
    match = _NUMBER_AND_UNIT.fullmatch(str(raw).strip()) if not isinstance(raw, bool) else None
    unit = _DURATION_UNITS.get(match.group(2).lower() or "s") if match else None
    if match is None or unit is None:
        raise ValueError(f"{raw!r} is not a duration such as 500ms, 30s, 5min or 1h")
    return float(match.group(1)) * unit


def _positive_duration(raw: object) -> float:
    seconds = _duration(raw)
    if seconds < _LEAST_INTERVAL_S:
        raise ValueError(f"{raw!r} is less than {_LEAST_INTERVAL_S * 1000:g}ms")
    return seconds


def _size(raw: object) -> int:
    """Bytes; kB, MB, GB and TB are powers of 1024, as in PostgreSQL."""
    match = _NUMBER_AND_UNIT.fullmatch(str(raw).strip()) if not isinstance(raw, bool) else None
    unit = _SIZE_UNITS.get(match.group(2).lower() or "b") if match else None
    if match is None or unit is None or float(match.group(1)) <= 0:
        raise ValueError(f"{raw!r} is not a size such as 512MB or 2GB")
    return int(float(match.group(1)) * unit)


def _pairs(raw: object) -> tuple[tuple[str, str], ...]:
    if isinstance(raw, dict):
        return tuple((str(key), _scalar_text(value)) for key, value in raw.items())
    pairs = []
    for part in str(raw).split(";"):
        if part.strip():
            key, equals, value = part.partition("=")
            if not equals or not key.strip():
                raise ValueError(f"{part.strip()!r} is not key=value")
            pairs.append((key.strip(), value.strip()))
    return tuple(pairs)


def _scalar_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise ValueError(f"{value!r} is not a text, a number or true or false")


def _log_level(raw: object) -> str:
    level = _text(raw).lower()
    if level not in _LOG_LEVELS:
        raise ValueError(f"{raw!r} is not one of {', '.join(_LOG_LEVELS)}")
    return level


def has_home() -> bool:
    """Whether this user has a home directory; one of a container may have none."""
    try:
        Path.home()
    except RuntimeError:
        return False
    return True


def _optional_path(raw: object) -> Path | None:
    """None for the empty text."""
    return None if raw == "" else _path(raw).resolve()


def _optional_port(raw: object) -> int | None:
    """None for the empty text."""
    return None if raw == "" else _integer(raw, 0, _PORT_MAX)


def _origins(raw: object) -> tuple[str, ...]:
    parts = raw if isinstance(raw, list) else [part for part in str(raw).split(",") if part.strip()]
    found = tuple(_text(part) for part in parts)
    for origin in found:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise ValueError(f"{origin!r} is not an origin such as https://example.org, nor *")
    return found


def choice(*words: str) -> ValueType:
    def read(raw: object) -> str:
        # a bare on or off is a word here, and TOML's true and false mean the same
        word = {True: "on", False: "off"}[raw] if isinstance(raw, bool) else _text(raw).lower()
        if word not in words:
            raise ValueError(f"{raw!r} is not one of {', '.join(words)}")
        return word

    return ValueType("word", read)


def _import(raw: object) -> str | None:
    """None for the empty text: nothing is to be imported."""
    text = raw.strip() if isinstance(raw, str) else ""
    if text == raw == "":
        return None
    if not _IMPORT.fullmatch(text):
        raise ValueError(f"{raw!r} is not of the form package.module:Name")
    return text


def _imports(raw: object) -> tuple[str, ...]:
    parts = raw if isinstance(raw, list) else [part for part in str(raw).split(",") if part.strip()]
    return tuple(text for text in map(_import, parts) if text is not None)


TEXT = ValueType("text", _text)
PATH = ValueType("path", lambda raw: _path(raw).resolve())
OPTIONAL_PATH = ValueType("path", _optional_path)
PATHS = ValueType("paths", _paths)
PORT = ValueType("port", lambda raw: _integer(raw, 0, _PORT_MAX))
OPTIONAL_PORT = ValueType("port", _optional_port)
ORIGINS = ValueType("origins", _origins)
COUNT = ValueType("whole number", lambda raw: _integer(raw, 1))
COUNT_OR_ZERO = ValueType("whole number", lambda raw: _integer(raw, 0))


def _record_size(raw: object) -> int:
    found = _size(raw)
    if not _RECORD_BYTES_MIN <= found <= _RECORD_BYTES_MAX:
        raise ValueError("it must be between 1KB and 256MB")
    return found


DURATION = ValueType("duration", _duration)
POSITIVE_DURATION = ValueType("duration", _positive_duration)
SIZE = ValueType("size", _size)
RECORD_SIZE = ValueType("size", _record_size)
SIZE_OR_ZERO = ValueType("size", lambda raw: 0 if raw in (0, "0") else _size(raw))
PAIRS = ValueType("key=value pairs", _pairs)
LOG_LEVEL = ValueType("level", _log_level)
IMPORT = ValueType("import", _import)
IMPORTS = ValueType("imports", _imports)
