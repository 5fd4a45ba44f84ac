"""What sessions may ask of the serving room. No duckdb here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from sqlglot import exp

from mvserver.pgwire.backend import Field, Result


@dataclass(frozen=True)
class PullScope:
    """By what a pull query's names are resolved: session's database, schema search path, role, settings."""

    database: str
    search_path: tuple[str, ...]
    role: str
    time_zone: str = "UTC"
    # A plan that looks at these two is not cached, so that sessions which differ in them only share their plans.
    settings: tuple[tuple[str, str], ...] = field(default=(), compare=False)  # lower-case names: for current_setting
    backend_pid: int = field(default=0, compare=False)


@dataclass(frozen=True)
class PullPlan:
    """A bound pull query: ready-to-run text over DuckDB, its fields and parameter oids, and which views it reads.

    ``kind`` says point look-up, key range or other: a seam for an index of finished rows.
    """

    sql: str
    fields: tuple[Field, ...]
    parameter_oids: tuple[int, ...]
    view_ids: tuple[str, ...]
    catalog_only: bool = False
    kind: str = "other"
    time_zone: str = "UTC"
    reads_system: bool = False  # pg_catalog, information_schema or functions that look into them
    live_relations: tuple[str, ...] = ()  # of mv_catalog, filled anew for each run
    arrow_types: tuple[Any, ...] = ()  # of the columns, where ``kind`` is "point"
    sets: tuple[tuple[str, str, bool], ...] = ()  # set_config(name, value, is_local): the session applies them at run
    sleep_s: float | None = None  # pg_sleep's constant argument, where ``kind`` is "sleep"


class Snapshot(Protocol):
    """A session's own DuckDB cursor: a statement sees one committed state; inside ``begin`` ... ``end`` (REPEATABLE
    READ) all statements see the same one."""

    def begin(self) -> None: ...

    def end(self) -> None: ...

    def run(self, plan: PullPlan, parameters: Sequence[Any], *, timeout_s: float | None = None) -> Result: ...

    def interrupt(self) -> None:
        """Stops the running statement within a second (57014); callable from any thread."""

    def close(self) -> None: ...


class PullService(Protocol):
    def plan(
        self,
        select: exp.Expression,
        scope: PullScope,
        parameter_oids: Sequence[int] = (),
        *,
        text: str | None = None,
    ) -> PullPlan:
        """Binds names and types without running; SqlError with SQLSTATE and position for what is wrong. With the
        statement's ``text`` the plan is cached by text, scope and catalog generation. ``select`` is left as it is."""

    def cached(self, text: str, scope: PullScope, parameter_oids: Sequence[int] = ()) -> PullPlan | None:
        """The plan of an equal text, without parsing it; None when there is none."""

    def explain(self, plan: PullPlan) -> Sequence[str]: ...

    def snapshot(self, own: Mapping[str, Callable[[], Any]] = MappingProxyType({})) -> Snapshot:
        """``own`` makes the rows (an Arrow table) of live relations that show the session itself, as pg_cursors."""
