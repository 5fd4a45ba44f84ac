"""Pull queries: from sqlglot's tree of PostgreSQL text to a bound plan over DuckDB.

guard → names → dialect → column names → parameters → types. Nothing is executed here.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import duckdb
from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.pgcatalog import pgtypes
from mvserver.pgcatalog.session_functions import SessionFacts
from mvserver.pgcatalog.snapshot import CatalogSnapshot, CatalogSource
from mvserver.pgcatalog.system import LiveRelations, SystemCatalog
from mvserver.pgwire.backend import Field
from mvserver.serving import aggregates, binding, casts, classify, division, duck_types, guard, naming, shim
from mvserver.serving.api import PlanRuns, PullPlan, PullScope, RowShaper, Snapshot, StreamRead
from mvserver.serving.binding import Bound
from mvserver.serving.database import SYSTEM_CATALOG, Database
from mvserver.serving.direct import StateReader
from mvserver.serving.duck_errors import translate
from mvserver.serving.duck_types import OutputType
from mvserver.serving.missing import Cause, MissingViews
from mvserver.serving.names import NameResolver, Reads
from mvserver.serving.origins import origins
from mvserver.serving.shaping import DuckShaper
from mvserver.serving.snapshot import DuckSnapshot, reader_settings
from mvserver.serving.streams import register_empty
from mvserver.serving.turns import Turns
from mvserver.serving.typed import TypedRewriting, concerns, is_mark

_Key = tuple[str, PullScope, tuple[int, ...], int]
_SYSTEM_PREFIXES = (
    "pg_", "has_", "format_type", "obj_", "col_", "_reg", "to_reg", "_is_visible", "_has_", "_seen", "shobj_",
    "row_sec",
)  # fmt: skip


class DuckPullService:
    """Implements ``serving.api.PullService``."""

    def __init__(
        self,
        database: Database,
        source: CatalogSource,
        live: LiveRelations | None = None,
        *,
        concurrency: int = limits.PULL_CONCURRENCY,
        why_missing: Cause = lambda view_id: None,
    ) -> None:
        """``concurrency`` bounds the queries at work at the same time, not those that are open."""
        self._database = database
        self._source = source
        self._turns = Turns(concurrency)
        self._missing = MissingViews(source, why_missing)
        self._system = SystemCatalog(database, SYSTEM_CATALOG, source, live or {})
        self._lock = threading.Lock()  # the binding cursor has one user at a time
        self._cursor = database.cursor()
        for setting in reader_settings(self._system):
            self._cursor.execute(setting)
        self._state = StateReader(self._cursor, database.name)
        self._plans: OrderedDict[_Key, PullPlan] = OrderedDict()

    def warm_up(self) -> None:
        """Build the system catalog now (some 0.2 s) instead of at the first query."""
        self._system.refresh()

    def close(self) -> None:
        with self._lock:
            self._system.close()
            self._cursor.close()

    def snapshot(self, own: Mapping[str, Callable[[], Any]] = MappingProxyType({})) -> Snapshot:
        return DuckSnapshot(self._database, self._system, self._turns, self._missing, own)

    # --- plans ------------------------------------------------------------------------------------------------------
    def cached(self, text: str, scope: PullScope, parameter_oids: Sequence[int] = ()) -> PullPlan | None:
        key = (text, scope, tuple(parameter_oids), self._source.generation())
        with self._lock:
            found = self._plans.get(key)
            if found is not None:
                self._plans.move_to_end(key)
            return found

    def plan(
        self,
        select: exp.Expression,
        scope: PullScope,
        parameter_oids: Sequence[int] = (),
        *,
        text: str | None = None,
    ) -> PullPlan:
        if text is not None:
            found = self.cached(text, scope, parameter_oids)
            if found is not None:
                return found
        self._system.build()
        snapshot = self._source.snapshot()
        facts = SessionFacts(
            snapshot, scope.database, scope.search_path, scope.role, dict(scope.settings), scope.backend_pid,
            scope.session_role,
        )  # fmt: skip
        plan = self._plan(select, scope, tuple(parameter_oids), snapshot, facts)
        if text is not None and not facts.volatile:
            with self._lock:
                self._plans[text, scope, tuple(parameter_oids), snapshot.generation] = plan
                while len(self._plans) > limits.PLAN_CACHE_ENTRIES:
                    self._plans.popitem(last=False)
        return plan

    def _plan(
        self,
        select: exp.Expr,
        scope: PullScope,
        oids: tuple[int, ...],
        snapshot: CatalogSnapshot,
        facts: SessionFacts,
    ) -> PullPlan:
        guard.check(select)
        asleep = classify.sleep_argument(select)
        if asleep is not None:
            return _sleep_plan(asleep)
        tree = select.copy()
        resolver = NameResolver(snapshot, scope, self._system, self._database.name)
        names_from = tree.copy()
        resolver_root = exp.Paren(this=tree)
        resolver.resolve(tree)
        tree = resolver_root.this.pop()
        reads = resolver.reads
        naming.name_outputs(tree)
        tree = shim.adapt(tree, facts, catalog=bool(reads.system))
        kind = classify.kind_of(select, reads.views)
        with self._lock:
            try:
                tree, bound = self._bind(tree, oids, reads, scope.time_zone)
                direct = self._direct(tree, bound, reads, kind)
            except SqlError as error:
                raise self._missing.explained(_with_position(error, names_from), reads.views) from error
        return _finish(tree, direct, bound, scope, oids, reads, facts, kind)

    def _direct(self, tree: exp.Expr, bound: Bound, reads: Reads, kind: str) -> exp.Expr | None:
        """A look-up over the view's state; None where it cannot be made, or would not mean the same types."""
        if kind not in (classify.POINT, classify.RANGE):
            return None
        (view,) = reads.views.values()
        made = self._state.direct(tree, view.id, view.key_columns, point=kind == classify.POINT)
        if made is None:
            return None
        found = binding.bind(self._cursor, made.sql(dialect="duckdb"))
        return made if found.types == bound.types and found.parameters == bound.parameters else None

    # --- types ------------------------------------------------------------------------------------------------------
    def _bind(self, tree: exp.Expr, oids: Sequence[int], reads: Reads, time_zone: str) -> tuple[exp.Expr, Bound]:
        for name in reads.live:
            self._cursor.register(self._system.live_name(name), self._system.live_schema(name).empty_table())
        register_empty(self._cursor, reads.streams)
        numbers = binding.parameter_numbers(tree)
        sql = tree.sql(dialect="duckdb")
        bound = binding.bind(self._cursor, sql)
        if numbers:
            casts = binding.client_casts(numbers, oids, bound.parameters)
            unknown = [n for n in numbers if bound.parameters.get(n) == binding.UNKNOWN and n not in casts]
            if unknown:
                arrays = binding.array_types(self._cursor, tree)
                casts = {**{n: arrays[n] for n in unknown if n in arrays}, **casts}
                unknown = [n for n in unknown if n not in arrays]
            if casts or unknown:
                tree, bound = self._bind_cast(tree, casts, unknown)
        if _needs_types(tree, reads) and TypedRewriting(self._cursor, tree, bound.parameters, time_zone).apply():
            bound = binding.bind(self._cursor, tree.sql(dialect="duckdb"))
        if tree.find(exp.Sum, exp.Avg) is not None:
            aggregates.type_aggregates(self._cursor, tree)
            bound = binding.bind(self._cursor, tree.sql(dialect="duckdb"))
        if tree.find(exp.Div) is not None and division.type_divisions(self._cursor, tree):
            bound = binding.bind(self._cursor, tree.sql(dialect="duckdb"))
        if binding.UNKNOWN in bound.parameters.values():
            bound = self._bind_open(tree, bound)
        return tree, bound

    def _bind_cast(self, tree: exp.Expr, casts: dict[int, str], unknown: Sequence[int]) -> tuple[exp.Expr, Bound]:
        """With the casts, and for parameters of unknown type the first guess that binds."""
        failure: SqlError | None = None
        for guess in binding.guessed_types(tree, unknown) if unknown else ({},):
            candidate = tree.copy()
            root = exp.Paren(this=candidate)
            binding.cast_parameters(root, {**guess, **casts})
            candidate = root.this.pop()
            try:
                return candidate, binding.bind(self._cursor, candidate.sql(dialect="duckdb"))
            except SqlError as error:
                failure = failure or error
        assert failure is not None  # noqa: S101 - there is at least one guess
        raise failure

    def _bind_open(self, tree: exp.Expr, bound: Bound) -> Bound:
        casts = binding.cast_types(tree)
        types = dict(bound.parameters)
        for number, kind in types.items():
            if kind == binding.UNKNOWN and number in casts:
                types[number] = binding.bind(self._cursor, f"SELECT CAST(NULL AS {casts[number]})").types[0]
        return binding.bind_with_nulls(self._cursor, tree.sql(dialect="duckdb"), types)

    # --- push queries -----------------------------------------------------------------------------------------------
    def shaper(self, columns: Sequence[tuple[str, str]]) -> RowShaper:
        return DuckShaper(self._database, columns)

    # --- EXPLAIN ----------------------------------------------------------------------------------------------------
    def explain(self, plan: PullPlan) -> Sequence[str]:
        """DuckDB's physical plan as text, after a line that says which kind of read it is."""
        text = plan.direct if plan.direct and not plan.runs.replaced else plan.sql
        head = [
            f"Pull query ({plan.kind}) over {len(plan.view_ids)} view(s)",
            *(f"Read by Spark, to the present end: {read.select}{_at_most(read)}" for read in plan.streams),
            f"DuckDB: {text}",
        ]
        if plan.kind == classify.SLEEP:
            return head
        statement = binding.without_parameters(text)
        with self._lock:
            try:
                for name in plan.live_relations:
                    self._cursor.register(self._system.live_name(name), self._system.live_schema(name).empty_table())
                register_empty(self._cursor, plan.streams)
                rows = self._cursor.execute(f"EXPLAIN {statement}").fetchall()
            except duckdb.Error as error:
                raise translate(error) from error
        return [*head, *(line for row in rows for line in str(row[-1]).splitlines())]


def _finish(
    tree: exp.Expr,
    direct: exp.Expr | None,
    bound: Bound,
    scope: PullScope,
    oids: Sequence[int],
    reads: Reads,
    facts: SessionFacts,
    kind: str,
) -> PullPlan:
    outputs = [duck_types.output_type(kind_name) for kind_name in bound.types]
    if len(outputs) > limits.COLUMNS_MAX:
        raise SqlError(sqlstates.TOO_MANY_COLUMNS, f"target lists can have at most {limits.COLUMNS_MAX} entries")
    arrow = [duck_types.arrow_type(output.cast or name) for name, output in zip(bound.types, outputs, strict=True)]
    fields = tuple(
        Field(name, output.pg.oid, output.pg.size, output.pg.typmod if keeps else -1, *origin)
        for name, output, origin, keeps in zip(
            _names(tree, bound), outputs, origins(tree, len(outputs)), _keep_modifiers(tree, len(outputs)), strict=True
        )
    )
    count = max([*bound.parameters, len(oids)], default=0)
    return PullPlan(
        sql=_text(tree, outputs),
        direct=None if direct is None else _text(direct, outputs),
        fields=fields,
        parameter_oids=tuple(_parameter_oid(number, oids, bound) for number in range(1, count + 1)),
        view_ids=tuple(reads.views),
        generation=facts.snapshot.generation,
        catalog_only=bool(reads.system) and not reads.views,
        kind=kind,
        time_zone=scope.time_zone,
        reads_system=bool(reads.system) or _uses_system_functions(tree),
        live_relations=tuple(sorted(reads.live)),
        streams=tuple(reads.streams),
        arrow_types=tuple(arrow) if None not in arrow else (),
        runs=PlanRuns(few=kind in (classify.POINT, classify.RANGE)),
        sets=facts.sets,
    )


def _at_most(read: StreamRead) -> str:
    return "" if read.limit is None else f" LIMIT {read.limit}"


def _text(tree: exp.Expr, outputs: Sequence[OutputType]) -> str:
    """The query as DuckDB runs it: its columns as types that the wire has."""
    sql = tree.sql(dialect="duckdb")
    if not any(output.cast for output in outputs):
        return sql
    columns = ", ".join(
        f"CAST(#{at} AS {output.cast})" if output.cast else f"#{at}" for at, output in enumerate(outputs, start=1)
    )
    return f"SELECT {columns} FROM ({sql}) AS _result"


def _keep_modifiers(tree: exp.Expr, count: int) -> Sequence[bool]:
    """A column and an explicit cast to numeric(p, s) have a type modifier, an expression of numbers has none."""
    items = tree.expressions if isinstance(tree, exp.Select) else []
    if len(items) != count or any(item.is_star for item in items):
        return [True] * count
    bare = [item.unalias() for item in items]
    return [isinstance(item, exp.Column | exp.Subquery) or bool(item.meta.get(casts.DECLARED)) for item in bare]


def _needs_types(tree: exp.Expr, reads: Reads) -> bool:
    """Clients' own queries of the catalog are many and long, and cast what DuckDB writes as PostgreSQL does."""
    wanted = concerns if reads.views or not reads.system else is_mark
    return any(wanted(node) for node in tree.walk())


def _names(tree: exp.Expr, bound: Bound) -> Sequence[str]:
    if isinstance(tree, exp.Values):
        return [f"column{number}" for number in range(1, len(bound.names) + 1)]
    return bound.names


def _parameter_oid(number: int, oids: Sequence[int], bound: Bound) -> int:
    if number <= len(oids) and oids[number - 1]:
        return oids[number - 1]
    return duck_types.parameter_oid(bound.parameters.get(number, binding.UNKNOWN))


def _uses_system_functions(tree: exp.Expr) -> bool:
    return any(node.name.lower().startswith(_SYSTEM_PREFIXES) for node in tree.find_all(exp.Anonymous))


def _sleep_plan(argument: exp.Expr) -> PullPlan:
    field = Field("pg_sleep", pgtypes.TEXT)
    if isinstance(argument, exp.Literal):
        try:
            sleep_s = float(argument.name)
        except ValueError as error:
            raise SqlError(
                sqlstates.INVALID_TEXT_REPRESENTATION,
                f'invalid input syntax for type double precision: "{argument.name}"',
            ) from error
        return PullPlan("", (field,), (), (), kind=classify.SLEEP, sleep_s=sleep_s)
    if isinstance(argument, exp.Parameter):
        return PullPlan("", (field,), (pgtypes.FLOAT8,), (), kind=classify.SLEEP)
    raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, "pg_sleep is supported with a number or a parameter only")


_COLUMN_ERRORS = (sqlstates.UNDEFINED_COLUMN, sqlstates.AMBIGUOUS_COLUMN, sqlstates.GROUPING_ERROR)


def _with_position(error: SqlError, tree: exp.Expr) -> SqlError:
    """Where the text names the column that the message is about."""
    if error.position is not None or error.sqlstate not in _COLUMN_ERRORS:
        return error
    for column in tree.find_all(exp.Column):
        starts = [part.meta["start"] for part in column.find_all(exp.Identifier) if "start" in part.meta]
        if starts and isinstance(column.this, exp.Identifier) and _mentions(error.message, column.this):
            error.position = min(starts) + 1
            break
    return error


def _mentions(message: str, name: exp.Identifier) -> bool:
    shown = str(name.this) if name.quoted else str(name.this).lower()
    return f'"{shown}"' in message or f".{shown} does not exist" in message
