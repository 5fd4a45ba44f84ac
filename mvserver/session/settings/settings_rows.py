"""pg_settings as the session sees it: ``\\dconfig`` lists what differs from the server's own defaults.

What kind of value a setting has, PostgreSQL's own row of that name tells; the rows of this server's own are made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pyarrow as pa

from mvserver.pgcatalog.static_data import rows_of
from mvserver.session.settings import setting_values as check
from mvserver.session.settings.setting_table import OWN_PREFIX, SETTINGS, Change, Setting
from mvserver.session.settings.settings import SessionSettings

Row = Mapping[str, object]

_TEXTS = (
    "name", "setting", "unit", "category", "short_desc", "extra_desc", "context", "vartype", "source", "min_val",
    "max_val",
)  # fmt: skip
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        ("enumvals", pa.list_(pa.string())),
        ("boot_val", pa.string()),
        ("reset_val", pa.string()),
        ("sourcefile", pa.string()),
        ("sourceline", pa.int32()),
        ("pending_restart", pa.bool_()),
    ]
)
_OWN_CATEGORY = "Customized Options"
_TEXT: Row = {"unit": None, "vartype": "string"}
_OWN_KINDS: Mapping[check.Checker, Row] = {
    check.boolean: {"unit": None, "vartype": "bool"},
    check.duration: {"unit": "ms", "vartype": "integer"},
}


@cache
def _kinds() -> Mapping[str, Row]:
    """By lower-case name: unit, category, type and range."""
    names, rows = rows_of("pg_settings")
    found: dict[str, Row] = {}
    for row in rows:
        kind: dict[str, object] = dict(zip(names, row, strict=True))
        listed = str(kind["enumvals"] or "")
        kind["enumvals"] = [value.strip('"') for value in listed[1:-1].split(",")] if listed else None
        found[str(kind["name"]).lower()] = kind
    return found


def _kind(row: Setting) -> Row:
    return _kinds().get(row.name.lower()) or {"category": _OWN_CATEGORY, **_OWN_KINDS.get(row.check, _TEXT)}


def settings_table(settings: SessionSettings | None = None) -> pa.Table:
    settings = settings or SessionSettings({})
    shown = [key for key in sorted(SETTINGS) if key in _kinds() or key.startswith(f"{OWN_PREFIX}.")]
    return pa.Table.from_pylist([_row(key, settings) for key in shown], schema=_SCHEMA)


def _row(key: str, settings: SessionSettings) -> Row:
    row = SETTINGS[key]
    kind = _kind(row)
    unit = kind["unit"]
    value, reset, boot = (
        text if unit is None else check.in_unit(text, str(unit))
        for text in (settings.current[key], settings.reset_value(key), row.default)
    )
    return {
        **kind,
        "name": row.name,
        "setting": value,
        "short_desc": row.description,
        "context": row.change.value,
        "source": _source(row, value, reset, boot),
        "boot_val": boot,
        "reset_val": reset,
        "pending_restart": False,
    }


def _source(row: Setting, value: str, reset: str, boot: str) -> str:
    if value != reset:
        return "session"
    if value == boot:
        return "default"
    return {Change.NEVER: "override", Change.SERVER: "configuration file"}.get(row.change, "client")
