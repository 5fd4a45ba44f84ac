"""The options of EXPLAIN, with PostgreSQL's words for those that are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.errors import SqlError

NAMES = frozenset({"analyze", "verbose", "costs", "settings", "buffers", "wal", "timing", "summary", "format"})
_FORMATS = ("text", "json")
_OTHER_FORMATS = ("xml", "yaml")
_BOOLEANS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
_OF_ANALYZE = ("wal", "timing")


@dataclass(frozen=True)
class ExplainOptions:
    format: str = "text"
    analyze: bool = False
    costs: bool = True
    timing: bool = False
    summary: bool = False


def explain_options(given: Sequence[tuple[str, str]]) -> ExplainOptions:
    """Of two of a name the last one counts."""
    for name, value in given:
        _check(name, value)
    options = dict(given)
    analyze = _flag(options, "analyze", otherwise=False)
    for name in _OF_ANALYZE:
        if not analyze and _flag(options, name, otherwise=False):
            raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f"EXPLAIN option {name.upper()} requires ANALYZE")
    return ExplainOptions(
        options.get("format", "text"),
        analyze,
        _flag(options, "costs", otherwise=True),
        _flag(options, "timing", otherwise=analyze),
        _flag(options, "summary", otherwise=analyze),
    )


def _check(name: str, value: str) -> None:
    if name not in NAMES:
        raise SqlError(sqlstates.SYNTAX_ERROR, f'unrecognized EXPLAIN option "{name}"')
    if name != "format":
        if value.lower() not in _BOOLEANS:
            raise SqlError(sqlstates.SYNTAX_ERROR, f"{name} requires a Boolean value")
    elif not value:
        raise SqlError(sqlstates.SYNTAX_ERROR, "format requires a parameter")
    elif value in _OTHER_FORMATS:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"EXPLAIN format {value} is not supported",
            hint="Use FORMAT JSON, or leave it out: then it is text.",
        )
    elif value not in _FORMATS:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'unrecognized value for EXPLAIN option "format": "{value}"')


def _flag(options: Mapping[str, str], name: str, *, otherwise: bool) -> bool:
    value = options.get(name)
    return otherwise if value is None else _BOOLEANS[value.lower()]
