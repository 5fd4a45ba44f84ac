"""Pull queries: from sqlglot's tree of PostgreSQL text to a bound plan over DuckDB.

guard → names → dialect → column names → parameters → types. Nothing is executed here.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import duckdb
from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.pgcatalog import pgtypes
from mvserver.pgcatalog.edge_macros import NOW_MACROS
from mvserver.pgcatalog.pgtypes import PgType
from mvserver.pgcatalog.session_functions import SessionFacts
from mvserver.pgcatalog.snapshot import CatalogSnapshot, CatalogSource
from mvserver.pgcatalog.system import LiveRelations, SystemCatalog
from mvserver.pgwire.backend import Field
from mvserver.serving import (
    binding,
    casts,
    classify,
    duck_types,
    enums,
    few_rows,
    gathering,
    guard,
    jsonb,
    long_texts,
    naming,
    shim,
    signals,
)
from mvserver.serving.api import (
    NOBODY,
    KeyRead,
    Owner,
    PlanRuns,
    PullPlan,
    PullScope,
    RowShaper,
    Snapshot,
    StreamRead,
    Together,
    Version,
    never,
    owner_of,
    refuse_if_stopped,
)
from mvserver.serving.binder import Binders, Binding
from mvserver.serving.binding import Bound
from mvserver.serving.database import SYSTEM_CATALOG, Database
from mvserver.serving.duck_types import OutputType
from mvserver.serving.error_positions import locate
from mvserver.serving.finished_loader import Loader
from mvserver.serving.finished_rows import KeptViews
from mvserver.serving.key_reads import key_read
from mvserver.serving.leaving import LeavableWork
from mvserver.serving.memory_watch import IN_USE, MemoryWatch
from mvserver.serving.missing import Cause, MissingViews
from mvserver.serving.names import NameResolver, Reads
from mvserver.serving.origins import origins
from mvserver.serving.shaping import DuckShaper
from mvserver.serving.shared import SharedReads
from mvserver.serving.snapshot import DuckSnapshot, Engine, reader_settings
from mvserver.serving.templates import can_stand, stands_for, template_of
from mvserver.serving.turns import Turns
from mvserver.serving.volatile import changes
from mvserver.sql.dialect import parse_pull
from mvserver.sql.trees import dismantle

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
        query_memory_limit: int = limits.QUERY_MEMORY_DEFAULT,
        finished_rows_memory: int = 0,
        why_missing: Cause = lambda view_id: None,
        version: Callable[[Sequence[str]], Version | None] = lambda view_ids: None,
    ) -> None:
        """``concurrency`` bounds the queries at work at the same time, not those that are open; ``version`` is that of
        the rows of some views, None where it cannot be told now, and nothing is shared. With finished rows, all that
        changes the views must be told to ``finished``."""
        self._database = database
        self._source = source
        self._turns = Turns(concurrency)
        self._missing = MissingViews(source, why_missing)
        self._system = SystemCatalog(database, SYSTEM_CATALOG, source, live or {})
        self._leavable = LeavableWork()
        self._measuring = database.cursor()
        self._memory = MemoryWatch(self._memory_in_use, query_memory_limit)
        self._binders = Binders(database, self._system, self._leavable)
        self._lock = threading.Lock()  # of the plans that are kept; nothing is waited for under it
        self._plans: OrderedDict[_Key, PullPlan] = OrderedDict()
        self.gathering = gathering.LookUps(self._snapshot)
        self.sharing = SharedReads(version, self._leavable)
        self.finished = KeptViews(lambda: Loader(database, reader_settings(self._system)), finished_rows_memory)
        self._templates: OrderedDict[_Key, PullPlan | None] = OrderedDict()  # None: a text that has to be planned

    def warm_up(self) -> None:
        """Build the system catalog now (some 0.2 s) instead of at the first query."""
        self._system.refresh(never)

    def close(self) -> None:
        self.finished.close()
        self.gathering.close()
        self._binders.close()
        self._leavable.close()
        self._memory.close()
        self._measuring.close()
        self._system.close()

    def snapshot(self, own: Mapping[str, Callable[[], Any]] = MappingProxyType({}), owner: Owner = NOBODY) -> Snapshot:
        return self._snapshot(own, owner)

    def _snapshot(
        self, own: Mapping[str, Callable[[], Any]] = MappingProxyType({}), owner: Owner = NOBODY
    ) -> DuckSnapshot:
        engine = Engine(self._database, self._system, self._turns, self._missing, self._leavable, self._memory)
        return DuckSnapshot(engine, own, owner)

    @property
    def left(self) -> int:
        """How many stopped statements are still at work in DuckDB."""
        return self._leavable.left

    def _memory_in_use(self) -> int | None:
        try:
            (found,) = self._measuring.execute(IN_USE).fetchone() or (0,)
        except duckdb.OutOfMemoryException:  # not even for this; whoever wants more now is refused by DuckDB itself
            return None
        return int(found)

    # --- plans ------------------------------------------------------------------------------------------------------
    @property
    def generation(self) -> int:
        return self._source.generation()

    def cached(self, text: str, scope: PullScope, parameter_oids: Sequence[int] = ()) -> PullPlan | None:
        key = (text, scope, tuple(parameter_oids), self._source.generation())
        with self._lock:
            found = self._plans.get(key)
            if found is not None:
                self._plans.move_to_end(key)
            return found

    def known(self, text: str, scope: PullScope) -> tuple[PullPlan, Sequence[Any]] | None:
        found = self.cached(text, scope)
        if found is not None:
            return None if found.parameter_oids else (found, ())
        template = template_of(text)
        if template is None:
            return None
        with self._lock:
            of_all = self._templates.get((template.text, scope, template.oids, self._source.generation()))
        return None if of_all is None else (of_all, template.values)

    def plan(
        self,
        select: exp.Expression,
        scope: PullScope,
        parameter_oids: Sequence[int] = (),
        *,
        text: str | None = None,
        start: int = 0,
        stopped: Callable[[], bool] = never,
    ) -> PullPlan:
        if text is None:
            return self._plan_anew(select, scope, parameter_oids, None, stopped)
        found = self.cached(text, scope, parameter_oids)
        if found is not None:
            return found
        plan = self._plan_anew(select, scope, parameter_oids, text, stopped, start)
        if plan.kind in (classify.POINT, classify.RANGE) and not plan.parameter_oids:
            self._learn(text, plan, scope, stopped)
        return plan

    def _learn(self, text: str, exact: PullPlan, scope: PullScope, stopped: Callable[[], bool]) -> None:
        """The plan of all texts that differ from this one in their constants, once."""
        template = template_of(text)
        if template is None:
            return
        key = (template.text, scope, template.oids, exact.generation)
        with self._lock:
            if key in self._templates:
                return
        plan: PullPlan | None = None
        try:
            tree = parse_pull(template.text)
            if can_stand(template, tree):
                plan = self._plan_anew(tree, scope, template.oids, template.text, stopped)
        except SqlError as error:
            if error.sqlstate == sqlstates.QUERY_CANCELED:
                raise
            # the text itself is right: it is only none of those that parameters can stand in for
        if plan is not None and not stands_for(template, plan, exact):
            plan = None
        if plan is not None and self.cached(template.text, scope, template.oids) is not plan:
            return  # made for this session or catalog alone
        with self._lock:
            self._templates[key] = plan
            while len(self._templates) > limits.PLAN_CACHE_ENTRIES:
                self._templates.popitem(last=False)

    def _plan_anew(
        self,
        select: exp.Expression,
        scope: PullScope,
        parameter_oids: Sequence[int],
        text: str | None,
        stopped: Callable[[], bool],
        start: int = 0,
    ) -> PullPlan:
        # places are counted from the beginning of all that the client sent
        within = None if text is None else " " * start + text
        self._system.build(stopped)
        self._system.learn({table.name for table in select.find_all(exp.Table)}, stopped)
        snapshot = self._source.snapshot()
        facts = SessionFacts(
            snapshot, scope.database, scope.search_path, scope.role, dict(scope.settings), scope.backend_pid,
            scope.session_role,
        )  # fmt: skip
        try:
            plan = self._plan(select, scope, tuple(parameter_oids), snapshot, facts, stopped, within)
        except SqlError as error:
            locate(error, select, within)
            raise
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
        stopped: Callable[[], bool],
        text: str | None,
    ) -> PullPlan:
        guard.check(select)
        large = text is not None and len(text) > limits.PARSED_TEXT_CHARACTERS_MAX
        asleep = classify.sleep_argument(select)
        if asleep is not None:
            return _sleep_plan(asleep)
        tree = select.copy()
        refuse_if_stopped(stopped)
        resolver = NameResolver(snapshot, scope, self._system, self._database.name)
        resolver_root = exp.Paren(this=tree)
        resolver.resolve(tree)
        tree = resolver_root.this.pop()
        reads = resolver.reads
        refuse_if_stopped(stopped)
        naming.name_outputs(tree)
        signalled = signals.take(tree, facts)
        jsonb.arrows(tree)
        documents, declared = jsonb.documents(tree), casts.declared_parameters(tree)
        tree = shim.adapt(jsonb.adapt(tree), facts, catalog=bool(reads.system))
        long_texts.bound(tree)
        kind = classify.kind_of(select, reads.views)
        wanted = Binding(tree, oids, enums.types_of(oids, snapshot.enums), reads, scope.time_zone, kind, text)
        try:
            made = self._binders.run(lambda binder: binder.bind(wanted), owner_of(scope), stopped)
        except SqlError as error:
            raise self._missing.explained(error, reads.views) from error
        plan = _finish(made.tree, made.direct, made.bound, scope, oids, reads, facts, kind, documents, declared)
        if large:
            dismantle(made.tree)
        return signals.signalling(plan, signalled)

    # --- push queries -----------------------------------------------------------------------------------------------
    def shaper(self, columns: Sequence[tuple[str, str]]) -> RowShaper:
        return DuckShaper(self._database, columns)

    # --- EXPLAIN ----------------------------------------------------------------------------------------------------
    def explain(self, plan: PullPlan, *, owner: Owner = NOBODY, stopped: Callable[[], bool] = never) -> Sequence[str]:
        """DuckDB's physical plan as text, after a line that says which kind of read it is."""
        text = plan.direct if plan.direct and not plan.runs.replaced else plan.sql
        head = [
            f"Pull query ({plan.kind}) over {len(plan.view_ids)} view(s)",
            *(f"Read by Spark, to the present end: {read.select}{_at_most(read)}" for read in plan.streams),
            f"DuckDB: {text}",
        ]
        if plan.kind == classify.SLEEP:
            return head
        lines = self._binders.run(
            lambda binder: binder.explain(text, plan.live_relations, plan.streams), owner, stopped
        )
        return [*head, *lines]


def _finish(
    tree: exp.Expr,
    direct: exp.Expr | None,
    bound: Bound,
    scope: PullScope,
    oids: Sequence[int],
    reads: Reads,
    facts: SessionFacts,
    kind: str,
    documents: Sequence[bool],
    declared: Mapping[int, int],
) -> PullPlan:
    outputs = [duck_types.output_type(kind_name) for kind_name in bound.types]
    if len(outputs) > limits.COLUMNS_MAX:
        raise SqlError(sqlstates.TOO_MANY_COLUMNS, f"target lists can have at most {limits.COLUMNS_MAX} entries")
    outputs = _declared(tree, outputs, documents)
    arrow = [duck_types.arrow_type(output.cast or name) for name, output in zip(bound.types, outputs, strict=True)]
    fields = tuple(
        Field(name, output.pg.oid, output.pg.size, output.pg.typmod if keeps else -1, *origin)
        for name, output, origin, keeps in zip(
            _names(tree, bound), outputs, origins(tree, len(outputs)), _keep_modifiers(tree, len(outputs)), strict=True
        )
    )
    count = max([*bound.parameters, len(oids)], default=0)
    text, steady = _text(tree, outputs), _is_steady(tree, reads, facts)
    return PullPlan(
        sql=text,
        direct=None if direct is None else _text(direct, outputs),
        fields=fields,
        parameter_oids=tuple(_parameter_oid(number, oids, bound, declared) for number in range(1, count + 1)),
        view_ids=tuple(reads.views),
        generation=facts.snapshot.generation,
        catalog_only=bool(reads.system) and not reads.views,
        kind=kind,
        time_zone=scope.time_zone,
        reads_system=bool(reads.system) or _uses_system_functions(tree),
        live_relations=tuple(sorted(reads.live)),
        streams=tuple(reads.streams),
        arrow_types=tuple(arrow) if None not in arrow else (),
        plain_types=few_rows.plain_types(arrow) if None not in arrow else (),
        together=_together(direct, kind, outputs, arrow, count) if steady else None,
        key_read=_key_read(tree, kind, outputs, arrow, reads) if steady else None,
        runs=PlanRuns(few=kind in (classify.POINT, classify.RANGE)),
        sets=facts.sets,
        reads_now=_reads_now(tree),
        steady=steady and bool(reads.views) and kind == classify.OTHER and not reads.streams and not changes(text),
    )


def _is_steady(tree: exp.Expr, reads: Reads, facts: SessionFacts) -> bool:
    """Whether it means the same to all sessions that have its plan, at any moment."""
    return not (facts.sets or facts.volatile or reads.system or _uses_system_functions(tree) or _reads_now(tree))


def _together(
    direct: exp.Expr | None, kind: str, outputs: Sequence[OutputType], arrow: Sequence[Any], parameters: int
) -> Together | None:
    if direct is None or kind != classify.POINT or not _are_plain(outputs, arrow):
        return None
    return gathering.together(direct, parameters)


def _key_read(
    tree: exp.Expr, kind: str, outputs: Sequence[OutputType], arrow: Sequence[Any], reads: Reads
) -> KeyRead | None:
    if kind not in (classify.POINT, classify.RANGE) or not _are_plain(outputs, arrow):
        return None
    (view,) = reads.views.values()
    found = key_read(tree, view)
    return found if found is not None and len(found.columns) == len(outputs) else None


def _are_plain(outputs: Sequence[OutputType], arrow: Sequence[Any]) -> bool:
    """Whether its values are numbers and texts, as DuckDB has them."""
    return not any(output.cast for output in outputs) and None not in arrow and bool(few_rows.plain_types(arrow))


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
    return [
        isinstance(item, exp.Column | exp.Subquery)
        or bool(item.meta.get(casts.DECLARED) or casts.SHOWN_AS in item.meta)
        for item in bare
    ]


def _declared(tree: exp.Expr, outputs: list[OutputType], documents: Sequence[bool]) -> list[OutputType]:
    """A column that is cast to a character type in the outermost select list is shown as of that type; so is jsonb."""
    if len(documents) == len(outputs):
        outputs = [
            replace(output, pg=PgType(pgtypes.JSONB)) if jsonb and output.pg.oid == pgtypes.JSON else output
            for output, jsonb in zip(outputs, documents, strict=True)
        ]
    items = tree.expressions if isinstance(tree, exp.Select) else []
    if len(items) != len(outputs):
        return outputs
    declared = [item.unalias().meta.get(casts.SHOWN_AS) for item in items]
    return [
        replace(output, pg=PgType(*shown)) if shown is not None and output.pg.oid == pgtypes.TEXT else output
        for output, shown in zip(outputs, declared, strict=True)
    ]


def _names(tree: exp.Expr, bound: Bound) -> Sequence[str]:
    if isinstance(tree, exp.Values):
        return [f"column{number}" for number in range(1, len(bound.names) + 1)]
    return bound.names


def _parameter_oid(number: int, oids: Sequence[int], bound: Bound, declared: Mapping[int, int]) -> int:
    if number <= len(oids) and oids[number - 1]:
        return oids[number - 1]
    found = duck_types.parameter_oid(bound.parameters.get(number, binding.UNKNOWN))
    return declared.get(number, found) if found in (pgtypes.TEXT, pgtypes.JSON) else found


def _reads_now(tree: exp.Expr) -> bool:
    return any(node.name.lower() in NOW_MACROS for node in tree.find_all(exp.Anonymous))


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
