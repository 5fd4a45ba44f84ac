"""Plug-ins for buenavista, found by the names that the settings ``rewriter`` and ``extensions`` give.

A plug-in that cannot be loaded stops the server: one that starts without its rewriter would answer other questions than
the ones that its users ask.
"""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Sequence
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError

_log = logging.getLogger(__name__)


def load_rewriter(place: str | None) -> Any:
    """The object with ``rewrite(sql)``, or None where none is set."""
    return None if place is None else _load("rewriter", place, ("rewrite",))


def load_extensions(places: Sequence[str]) -> tuple[Any, ...]:
    """The objects with ``type()`` and ``apply(params, session)``; no two of one type."""
    found: dict[str, str] = {}
    loaded = []
    for place in places:
        extension = _load("extensions", place, ("type", "apply"))
        kind = extension.type()
        if kind in found:
            raise _refused("extensions", place, f'It has type "{kind}", as has {found[kind]}.')
        found[kind] = place
        loaded.append(extension)
    return tuple(loaded)


def _load(setting: str, place: str, methods: Sequence[str]) -> Any:
    """A class is made an object without arguments; anything else is taken as it is."""
    module_name, _, name = place.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
        plugin = found() if inspect.isclass(found) else found
    except Exception as error:  # whatever a module does when it is imported
        _log.debug("%s could not be loaded", place, exc_info=error)
        raise _refused(setting, place, f"{type(error).__name__}: {error}.") from error
    missing = [method for method in methods if not callable(getattr(plugin, method, None))]
    if missing:
        raise _refused(setting, place, f"It has no method {' and no method '.join(missing)}.")
    return plugin


def _refused(setting: str, place: str, detail: str) -> SqlError:
    return SqlError(
        sqlstates.CONFIG_FILE_ERROR,
        f'"{place}" of setting "{setting}" cannot be loaded',
        detail=detail,
        hint="It must be importable by the server's Python; PYTHONPATH says where else modules lie.",
    )
