"""One session's settings: values, SET LOCAL, and their rollback with the transaction.

Values are an immutable layer that is replaced whole when one changes, so that a transaction or savepoint remembers the
settings of its moment by keeping a reference, and ``parameter_status`` can be compared by identity.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mvserver import limits, sqlstates
from mvserver.claims import is_claim
from mvserver.errors import SqlError
from mvserver.session.settings.setting_table import ALIASES, OWN_PREFIX, SETTINGS, Change, Setting
from mvserver.session.settings.setting_values import milliseconds, split_identifiers

_CUSTOM_NAME = re.compile(r"[a-z_][a-z0-9_$]*(\.[a-z_][a-z0-9_$]*)+")
_DEFAULTS: Mapping[str, str] = MappingProxyType({key: row.default for key, row in SETTINGS.items()})


@dataclass(frozen=True)
class SettingsState:
    """What a transaction restores: session values, and those of SET LOCAL over them."""

    values: Mapping[str, str]
    local: Mapping[str, str]


class SessionSettings:
    def __init__(self, fixed: Mapping[str, str]) -> None:
        """``fixed`` are values of this session that no client changes, and starting values (lower-case names)."""
        self._reset: dict[str, str] = {**_DEFAULTS, **fixed}
        self._state = SettingsState(dict(self._reset), {})
        self._start: SettingsState | None = self._state  # of the last ``reset_all``, while RESET has its values
        self._refresh()

    def _refresh(self) -> None:
        self.current: Mapping[str, str] = {**self._state.values, **self._state.local}
        self._reported: Mapping[str, str] | None = None

    # --- reading ----------------------------------------------------------------------------------------------------
    def get(self, name: str) -> str:
        """What SHOW prints; 42704 for a name that is none."""
        key = canonical(name)
        value = self.current.get(key)
        if value is None:
            raise unrecognized(name)
        return value

    def reset_value(self, key: str) -> str:
        """What RESET goes back to."""
        return self._reset[key]

    def flag(self, name: str) -> bool:
        return self.current[name] == "on"

    def seconds(self, name: str) -> float | None:
        """A duration setting in seconds; None for 0, which is no limit."""
        amount = milliseconds(self.current[name])
        return amount / 1000 if amount else None

    def search_path(self) -> tuple[str, ...]:
        """The schemas of ``search_path``; ``"$user"`` stands for a schema that no role has here."""
        names = split_identifiers("search_path", self.current["search_path"])
        return tuple(name for name in names if name and name != "$user")

    def reported(self) -> Mapping[str, str]:
        """The settings whose changes the client is told of, by their proper names."""
        if self._reported is None:
            self._reported = MappingProxyType(
                {row.name: self.current[key] for key, row in SETTINGS.items() if row.reported}
            )
        return self._reported

    def rows(self) -> list[tuple[str, str, str]]:
        """SHOW ALL: name, value, description; invented settings are left out, as in PostgreSQL."""
        ordered = sorted(SETTINGS.items(), key=lambda item: item[0])
        return [(row.name, self.current[key], row.description) for key, row in ordered]

    # --- writing ----------------------------------------------------------------------------------------------------
    def check(self, name: str, value: str | None) -> tuple[str, str]:
        """The key and canonical value of a SET; raises what PostgreSQL raises. None is the session's default."""
        key = canonical(name)
        row = SETTINGS.get(key)
        if len((value or "").encode()) > limits.SETTING_VALUE_BYTES_MAX:
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED,
                f'value of parameter "{name}" is longer than {limits.SETTING_VALUE_BYTES_MAX} bytes',
            )
        if row is None:
            return key, self._check_custom(name, key, value)
        refuse_fixed(row)
        return key, self._reset[key] if value is None else row.check(row.name, value)

    def _check_custom(self, name: str, key: str, value: str | None) -> str:
        if key == _OF_PG_DUMP:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "pg_dump is not supported",
                detail=f"It is known by its setting, {key}.",
                hint="COPY (SELECT ...) TO STDOUT gives rows, DESCRIBE RELATION a definition. A backup is a copy of "
                "the data directory of a server that is stopped.",
            )
        if not _CUSTOM_NAME.fullmatch(key):
            raise unrecognized(name)
        prefix = key.split(".", 1)[0]
        if prefix == OWN_PREFIX and not is_claim(key):
            raise SqlError(
                sqlstates.INVALID_NAME,
                f'invalid configuration parameter name "{name}"',
                detail=f'"{OWN_PREFIX}" is a reserved prefix.',
            )
        invented = sum(1 for known in self.current if "." in known and known not in SETTINGS)
        if key not in self.current and invented >= limits.CUSTOM_SETTINGS_MAX:
            raise SqlError(
                sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
                f"a session may define at most {limits.CUSTOM_SETTINGS_MAX} parameters of its own",
            )
        return self._reset.get(key, "") if value is None else value

    def set(self, name: str, value: str | None, *, local: bool = False) -> str:
        """SET or SET LOCAL; returns the canonical key."""
        key, text = self.check(name, value)
        self.force(key, text, local=local)
        return key

    def force(self, key: str, text: str, *, local: bool = False) -> None:
        """Sets without checks: what the session itself reports (transaction_isolation ...)."""
        if local:
            self._state = SettingsState(self._state.values, {**self._state.local, key: text})
        else:
            left = {name: value for name, value in self._state.local.items() if name != key}
            self._state = SettingsState({**self._state.values, key: text}, left)
        self._refresh()

    def fix(self, key: str, text: str) -> None:
        """A value that is the session's own and no client's to change: RESET does not bring back the old one."""
        self._begin_with(key, text)

    def start_with(self, name: str, value: str) -> None:
        """A start-up option: what RESET goes back to."""
        self._begin_with(*self.check(name, value))

    def _begin_with(self, key: str, text: str) -> None:
        self._reset[key] = text
        self._start = None
        self.force(key, text)

    def reset(self, name: str) -> str:
        return self.set(name, None)

    def reset_all(self) -> None:
        self._state = self._start = SettingsState(dict(self._reset), {})
        self._refresh()

    @property
    def is_reset(self) -> bool:
        """Whether nothing was set since ``reset_all``."""
        return self._state is self._start

    # --- transactions -----------------------------------------------------------------------------------------------
    def state(self) -> SettingsState:
        return self._state

    def restore(self, state: SettingsState) -> None:
        if state is not self._state:
            self._state = state
            self._refresh()

    def end_local(self) -> bool:
        """At COMMIT: SET LOCAL ends. True where there was one."""
        if not self._state.local:
            return False
        self._state = SettingsState(self._state.values, {})
        self._refresh()
        return True


_OF_PG_DUMP = "synchronize_seqscans"  # what it sets first of all that nobody else does


def canonical(name: str) -> str:
    key = " ".join(name.lower().split())
    return ALIASES.get(key, key)


def unrecognized(name: str) -> SqlError:
    return SqlError(sqlstates.UNDEFINED_OBJECT, f'unrecognized configuration parameter "{name}"')


def refuse_fixed(row: Setting) -> None:
    reasons = {
        Change.NEVER: "cannot be changed",
        Change.SERVER: "cannot be changed without restarting the server",
        Change.BACKEND: "cannot be set after connection start",
    }
    reason = reasons.get(row.change)
    if reason is not None:
        raise SqlError(sqlstates.CANT_CHANGE_RUNTIME_PARAM, f'parameter "{row.name}" {reason}')


def parse_options(options: str) -> list[tuple[str, str]]:
    """``-c name=value``, ``-cname=value`` and ``--name=value`` of the start-up packet; a backslash escapes a blank."""
    words = [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r"(?:\\.|\S)+", options)]
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "-c" and at < len(words):
            word = words[at]
            at += 1
        elif word.startswith(("--", "-c")):
            word = word[2:]
        else:
            raise SqlError(
                sqlstates.SYNTAX_ERROR, f"invalid command-line argument for server process: {word}", severity="FATAL"
            )
        name, equals, value = word.partition("=")
        if not equals:
            raise SqlError(sqlstates.SYNTAX_ERROR, f"-c {name} requires a value", severity="FATAL")
        found.append((name.replace("-", "_"), value))
    return found
