"""The serving room as sessions see it: requests, plans and the services that answer them. No duckdb here."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

from sqlglot import exp

from catalog.model import NamedSource, Relation
from mvserver import limits, sqlstates
from mvserver.dialect.signals import Signal
from mvserver.errors import SqlError
from mvserver.front import Field, PlainRows, Result
from mvserver.pgcatalog.snapshot import CatalogSnapshot
from mvserver.resume_tokens import Written, invalid, is_token
from mvserver.sql.statements.queries import Pull
from mvserver.types.oids import NUMERIC
from mvserver.visible_rows import VisibleRows


@dataclass(frozen=True)
class PullScope:
    """A session's names for a pull query: database, schema search path, role and settings."""

    database: str
    search_path: tuple[str, ...]
    role: str
    time_zone: str = "UTC"
    reads_streams: bool = False  # a stream is read to its present end, and not as it flows
    as_of: str = ""  # views are read as they were then; empty: as they are
    session_role: str = ""  # who has logged in, where SET ROLE has made ``role`` another
    row_security: bool = True  # False: a query that policies would take rows from is an error
    claims: tuple[tuple[str, str], ...] = ()  # those of the settings that policies read
    # A plan that looks at these two is not cached, so that sessions which differ in them only share their plans.
    settings: tuple[tuple[str, str], ...] = field(default=(), compare=False)  # lower-case names: for current_setting
    backend_pid: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Owner:
    """A role and one of its sessions, which answer for work."""

    role: str = ""
    session: int = 0


NOBODY = Owner()


def owner_of(scope: PullScope) -> Owner:
    return Owner(scope.session_role or scope.role, scope.backend_pid)


UNPROVED_S = 0.1  # how long a plan is taken to run before it has run
_FADING = 0.8


@dataclass
class PlanRuns:
    """What earlier runs of a plan showed: hints for the next one, shared by all sessions and never relied upon."""

    few: bool  # it returns a few rows
    replaced: bool = False  # the tables that ``direct`` reads are gone
    slowest_s: float = UNPROVED_S  # of the last runs, an older one counting less than a newer one
    large: bool = False  # it returns more than is worth sharing
    kept: bool = False  # a result of it is kept, and of few rows

    def took(self, seconds: float) -> None:
        self.slowest_s = max(seconds, self.slowest_s * _FADING)

    @property
    def short(self) -> bool:
        return self.few and self.slowest_s <= limits.AT_ONCE_S_MAX


@dataclass(frozen=True)
class StreamRead:
    """A stream or changelog that the query reads to its present end: the projection that does so, the table it becomes.
    ``limit`` rows are enough, None for all."""

    name: str
    select: str
    columns: tuple[tuple[str, str], ...]  # names and DuckDB types
    limit: int | None = None


@dataclass(frozen=True)
class Together:
    """A look-up for several keys at once: by how many, its text. Its rows begin with the key's ``width`` columns."""

    width: int
    texts: dict[int, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A key column (by its place in the key) with a constant, or with the parameter of a number from 1."""

    column: int
    operator: str  # = < <= > >=
    constant: int | str | None = None
    parameter: int = 0


@dataclass(frozen=True, slots=True)
class Further:
    """The same of a column that is not of the key, by its name."""

    column: str
    operator: str
    constant: int | str | None = None
    parameter: int = 0


@dataclass(frozen=True, slots=True)
class Members:
    """A key column (by its place in the key) that is one of some values: constants, parameters (by numbers from 1),
    and those of the parameter that is an array."""

    column: int
    constants: tuple[int | str, ...] = ()
    parameters: tuple[int, ...] = ()
    array: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """A parameter that says AS OF what a view is read, and the two further ones that DuckDB is given of it (numbers
    from 1). ``sealed``: by one who may see some rows alone."""

    parameter: int
    incarnation: int
    number: int
    sealed: bool = False

    def split(self, text: Any) -> tuple[Any, str | None, int | str | None]:
        """The time, or what the token names. 22023 for a token of the wrong kind."""
        if not isinstance(text, str) or not is_token(text):
            return text, None, None
        token = Written.read(text)
        number = token.sealed if self.sealed else token.seq
        if number is None:
            raise invalid(text)
        return None, token.incarnation, number


@dataclass(frozen=True, eq=False, slots=True)
class KeyRead:
    """A query of columns of one view, by conditions of which some compare its key: one that finished rows can answer.

    ``members`` are conditions that a column of the key is one of some values, ``further`` those of other columns. All
    conditions hold for each row.
    ``as_of`` is the place, or the text of it, as of which the view is read.
    """

    view_id: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    members: tuple[Members, ...] = ()
    as_of: Place | str | None = None
    further: tuple[Further, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether each column of the key has one value or some."""
        equal = {each.column for each in self.comparisons if each.operator == "="}
        return len(equal | {each.column for each in self.members}) == len(self.key)


@dataclass(frozen=True)
class PullPlan:
    """A bound pull query: ready-to-run text over DuckDB, its fields and parameter oids, and which views it reads.

    ``kind`` says point look-up, key range or other, ``key_read`` what the first two ask, where finished rows can answer
    it. ``direct`` is the same query over the view's state tables, for as long as they are there.
    """

    sql: str
    fields: tuple[Field, ...]
    parameter_oids: tuple[int, ...]
    view_ids: tuple[str, ...]
    direct: str | None = None
    generation: int = 0  # of the catalog that it was made with
    catalog_only: bool = False
    kind: str = "other"
    time_zone: str = "UTC"
    reads_system: bool = False  # pg_catalog, information_schema or functions that look into them
    live_relations: tuple[str, ...] = ()  # of mv_catalog, filled anew for each run
    streams: tuple[StreamRead, ...] = ()  # whose rows the session reads for each run
    arrow_types: tuple[Any, ...] = ()  # of the columns, where all can be made of Python's values
    plain_types: tuple[type, ...] = ()  # of Python's values, where all columns are numbers and texts
    together: Together | None = field(default=None, compare=False)  # the same for several keys
    key_read: KeyRead | None = field(default=None, compare=False)
    runs: PlanRuns = field(default_factory=lambda: PlanRuns(few=False), compare=False)
    signals: tuple[tuple[int, Signal], ...] = ()  # columns of processes, to which the session sends that
    sets: tuple[tuple[str, str, bool], ...] = ()  # set_config(name, value, is_local): the session applies them at run
    reads_now: bool = False  # now() and its like
    steady: bool = False  # equal texts have equal answers, to whomever, until a view that they read is changed
    constants: tuple[int, ...] = ()  # parameters without whose values there is no plan: this one only describes
    named: tuple[NamedSource, ...] = field(default=(), compare=False)  # what the names in its text mean
    of_the_past: bool = False  # a view's history, or a view as it was
    places: tuple[Place, ...] = ()  # as of parameters
    secured: bool = False  # policies decide which rows it sees
    flat: tuple[int, ...] = ()  # parameters that are arrays of one dimension
    sleep_s: float | None = None  # pg_sleep's constant argument, where ``kind`` is "sleep"

    @cached_property
    def numerics(self) -> tuple[int, ...]:
        """The parameters of type numeric."""
        return tuple(at for at, oid in enumerate(self.parameter_oids, start=1) if oid == NUMERIC)

    def refuse_dimensions(self, parameters: Sequence[Any]) -> None:
        """0A000 for an array of more dimensions than the query has for it, whose rows would be taken for its items."""
        for at in self.flat:
            value = parameters[at - 1]
            if isinstance(value, list) and isinstance(next((item for item in value if item is not None), None), list):
                raise SqlError(
                    sqlstates.FEATURE_NOT_SUPPORTED,
                    f"parameter ${at} has more than one dimension",
                    hint=f"Cast it to its dimensions, as ${at}::text[][].",
                )

    def values(self, parameters: Sequence[Any]) -> list[Any]:
        """What DuckDB is given for the parameters."""
        found = list(parameters)
        for place in self.places:  # in the order of their further parameters
            at, *named = place.split(found[place.parameter - 1])
            found[place.parameter - 1] = at
            found += named
        return found

    @cached_property
    def rows_alone(self) -> bool:
        """Whether a run of it asks DuckDB for rows, and the session for nothing else."""
        return not (self.sets or self.signals or self.streams or self.constants)


@dataclass(eq=False, slots=True)
class Asked:
    """A look-up that waits to be answered together with others."""

    plan: PullPlan
    parameters: tuple[Any, ...]
    rows: PlainRows | None = None  # once answered; still None where it has to run by itself

    def is_of(self, plan: PullPlan, parameters: Sequence[Any]) -> bool:
        return self.plan is plan and self.parameters == tuple(parameters)


class Gathering(Protocol):
    """Look-ups of several sessions, answered together; for the event loop's thread alone."""

    @property
    def waiting(self) -> bool: ...

    def ask(self, plan: PullPlan, parameters: Sequence[Any]) -> Asked | None:
        """None for one that is not worth waiting."""

    def answer(self) -> None:
        """All that have asked."""

    def result(self, asked: Asked) -> Result | None: ...

    def interrupt(self) -> None: ...


Version = tuple[int, ...]  # two equal ones have no commit between them


class Seat(Protocol):
    """Of one who waits for an evaluation that may be several people's. ``snapshot`` is to be taken back afterwards by
    who has given it; None where that is another, or it is at work still."""

    snapshot: Any

    def interrupt(self) -> None:
        """From any thread: ``wait`` raises 57014. The others go on waiting."""

    def wait(self) -> Result | None:
        """None where the query has to be run by itself."""

    def give_up(self) -> None:
        """After an error, whosever it is."""


class Sharing(Protocol):
    """Answers of ``steady`` plans, shared by those who ask the same while no view is changed; for any thread."""

    def version(self, plan: PullPlan) -> Version | None:
        """Of the rows that it reads; None while a commit is being made."""

    def kept(self, plan: PullPlan, parameters: Sequence[Any]) -> Result | None:
        """The answer, where it is at hand."""

    def keep(self, plan: PullPlan, parameters: Sequence[Any], version: Version | None, result: Result) -> None:
        """What was found after ``version`` was asked for."""

    def seat(self, plan: PullPlan, parameters: Sequence[Any], snapshot: Callable[[], Any], owner: Owner) -> Seat | None:
        """None where the query has to be run by itself. ``snapshot`` gives one of the session's, where nobody evaluates
        the same yet."""


class FinishedRows(Protocol):
    """Rows of views that are asked for often, kept beside DuckDB. Each method may be called from any thread."""

    def knows(self, plan: PullPlan) -> bool:
        """Whether ``find`` is likely to answer."""

    def find(self, plan: PullPlan, parameters: Sequence[Any]) -> Result | None:
        """The whole result, of the last committed state; None where DuckDB has to be asked."""


class Snapshot(Protocol):
    """A session's own DuckDB cursor: a statement sees one committed state; inside ``begin`` ... ``end`` (REPEATABLE
    READ) all statements see the same one."""

    def begin(self) -> None: ...

    def end(self) -> None: ...

    def run(
        self,
        plan: PullPlan,
        parameters: Sequence[Any],
        *,
        timeout_s: float | None = None,
        tables: Mapping[str, Any] = MappingProxyType({}),
        now: dt.datetime | None = None,
    ) -> Result:
        """``tables`` are the rows of ``plan.streams``, as Arrow tables by name; ``now`` is when the transaction began,
        None where the statement is one by itself."""

    def run_at_once(self, plan: PullPlan, parameters: Sequence[Any]) -> Result | None:
        """For plans whose runs are short: the whole result; None where it would have to wait or has more rows."""

    def interrupt(self) -> None:
        """Stops the running statement within a second (57014); callable from any thread."""

    @property
    def lost(self) -> bool:
        """Whether its cursor was left to a statement that did not stop: then it cannot be used any more."""

    def close(self) -> None: ...


def never() -> bool:
    """Of work that nobody stops."""
    return False


def refuse_if_stopped(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")


@dataclass(frozen=True, eq=False)
class PlanRequest:
    """A SELECT to be planned. ``select`` is left as it is; ``stopped`` may be asked from any thread.

    With the statement's ``text``, which begins at ``start`` of what the client sent, the plan is cached by text, scope
    and catalog generation.
    """

    select: exp.Expression
    scope: PullScope
    parameter_oids: Sequence[int] = ()  # 0 for one that the client leaves open
    text: str | None = None
    start: int = 0
    stopped: Callable[[], bool] = never
    snapshot: CatalogSnapshot | None = None  # of a transaction that is open; such a plan is not kept

    @property
    def sent(self) -> str | None:
        """The text where it stood in what the client sent: places are counted from the beginning of that."""
        return None if self.text is None else " " * self.start + self.text


class ReadsStream(SqlError):  # noqa: N818 - also a finding: the query is of another kind
    """The query names a relation whose rows are not kept: it is no pull query, but perhaps a push query."""

    def __init__(self, kind: str, name: str, position: int | None) -> None:
        super().__init__(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'cannot read from {kind} "{name}" here',
            hint="SELECT ... FROM it by itself shows its rows as they come; create a materialized view to query them.",
            position=position,
        )


class ReadsChanges(ReadsStream):
    """The same, found by a clause of its text."""

    def __init__(self, clause: SqlError) -> None:
        SqlError.__init__(self, clause.sqlstate, clause.message, hint=clause.hint, position=clause.position)


def refuse_continuous(query: Pull, scope: PullScope) -> None:
    """A query that says by a clause that it is about rows as they come: no pull query, however streams are read."""
    if query.continuous is None:
        return
    found = ReadsChanges(query.continuous)
    if scope.reads_streams:
        raise SqlError(
            found.sqlstate,
            found.message,
            hint="RESET mv.stream_reads makes it a push query; GROUP BY date_trunc(...) is a window of what is there.",
            position=found.position,
        )
    raise found


class RowShaper(Protocol):
    """Rows that Spark has made, as a pull query would give them: JSON for what is nested, and the like."""

    fields: tuple[Field, ...]

    def shape(self, batch: Any) -> Any:
        """An Arrow record batch of these columns."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class PlanNode:
    """A step of a plan with PostgreSQL's name for its kind; ``rows`` is a guess."""

    type: str
    rows: int | None = None
    width: int = 0  # of a row in bytes, about; 0 is not known
    details: tuple[tuple[str, Any], ...] = ()
    children: tuple[PlanNode, ...] = ()


class PullService(Protocol):
    @property
    def gathering(self) -> Gathering: ...

    @property
    def sharing(self) -> Sharing: ...

    @property
    def finished(self) -> FinishedRows: ...

    @property
    def generation(self) -> int:
        """Of the catalog: that of the plans that are made now."""

    def plan(self, request: PlanRequest) -> PullPlan:
        """Binds names and types without running. SqlError with SQLSTATE and position for what is wrong, 57014 as soon
        as the request is stopped."""

    def cached(self, text: str, scope: PullScope, parameter_oids: Sequence[int] = ()) -> PullPlan | None:
        """The plan of an equal text, without parsing it; None when there is none."""

    def known(self, text: str, scope: PullScope) -> tuple[PullPlan, Sequence[Any]] | None:
        """The plan of a text without parameters, and the values that it is to be run with: texts that differ in the
        values that their columns are compared with have one plan. None where the text has to be planned."""

    def explain(
        self, plan: PullPlan, *, owner: Owner = NOBODY, stopped: Callable[[], bool] = never, costs: bool = True
    ) -> Sequence[str]: ...

    def plan_nodes(self, plan: PullPlan, *, owner: Owner = NOBODY, stopped: Callable[[], bool] = never) -> PlanNode:
        """The same as the root of a tree."""

    def check_policy(self, view: Relation, condition: str) -> None:
        """SqlError where the text is none of a row policy of the view."""

    def hides_rows(self, view_id: str, role: str) -> bool:
        """Whether policies say which rows of a materialized view the role sees."""

    def visible_rows(self, view_id: str, scope: PullScope) -> VisibleRows | None:
        """Which rows of a materialized view its policies let the session see; None for all. 42501 where policies hide
        some and ``scope`` has row security off."""

    def shaper(self, columns: Sequence[tuple[str, str]]) -> RowShaper:
        """For rows of these names and DuckDB types."""

    def snapshot(self, own: Mapping[str, Callable[[], Any]] = MappingProxyType({}), owner: Owner = NOBODY) -> Snapshot:
        """``own`` makes the rows (an Arrow table) of live relations that show the session itself, as pg_cursors;
        ``owner`` is who answers for what is left at work."""
