"""Pull queries: from sqlglot's tree of PostgreSQL text to a bound plan over DuckDB.

guard → names → rewrites by text (``dialect.rewrite``) → rewrites by type (``dialect.typed_passes``).
Nothing is executed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sqlglot import exp

from catalog import row_security
from catalog.model import Relation
from mvserver import limits, sqlstates
from mvserver.dialect import binding, guard, longhand, rewrite
from mvserver.dialect.duck_text import written
from mvserver.dialect.errors.error_positions import locate
from mvserver.dialect.functions import enums
from mvserver.dialect.functions.volatile import changes
from mvserver.dialect.parameters import constant_places
from mvserver.dialect.pull_query import PullQuery
from mvserver.errors import SqlError, raise_instead
from mvserver.pgcatalog.session_functions import SessionFacts
from mvserver.pgcatalog.snapshot import CatalogSnapshot, CatalogSource
from mvserver.pgcatalog.system import LiveRelations, SystemCatalog
from mvserver.pgcatalog.timezones import timezones_table
from mvserver.serving.api import (
    NOBODY,
    Owner,
    PlanNode,
    PlanRequest,
    PullPlan,
    PullScope,
    RowShaper,
    Snapshot,
    StreamRead,
    Version,
    never,
    owner_of,
    refuse_if_stopped,
)
from mvserver.serving.engine.abandonable_work import AbandonableWork, WorkAbandoned
from mvserver.serving.engine.admission import Admission
from mvserver.serving.engine.database import SYSTEM_CATALOG, Database
from mvserver.serving.engine.memory_watch import InUse, MemoryWatch, Process
from mvserver.serving.engine.missing_views import Cause, MissingViews
from mvserver.serving.engine.shaping import DuckShaper
from mvserver.serving.engine.snapshot import DuckSnapshot, PullEngine, reader_settings
from mvserver.serving.fast import classify, gathering
from mvserver.serving.fast.finished_loader import Loader
from mvserver.serving.fast.finished_rows import KeptViews
from mvserver.serving.fast.shared import SharedReads
from mvserver.serving.fast.templates import Constant, can_stand, stands_for, template_of
from mvserver.serving.fast.written_values import with_values
from mvserver.serving.plan import row_policies
from mvserver.serving.plan.binder import DuckBinders
from mvserver.serving.plan.estimates import estimated, width
from mvserver.serving.plan.name_resolution import NameResolver, Reads
from mvserver.serving.plan.parameter_types import with_inferred
from mvserver.serving.plan.plan_cache import PlanCache
from mvserver.serving.plan.plan_nodes import nodes
from mvserver.serving.plan.plans import plan_of, plan_of_sleep, signalling
from mvserver.sql.dialect import parse_pull
from mvserver.sql.trees import dismantle
from mvserver.sql.written_parameters import others, with_constants
from mvserver.types.oids import TEXT
from mvserver.visible_rows import VisibleRows, told
from spark_sinks.duckdb.history.history import History
from spark_sinks.duckdb.layout import ViewLayouts


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
        process_memory_limit: int | None = None,
        finished_rows_memory: int = 0,
        why_missing: Cause = lambda view_id: None,
        version: Callable[[Sequence[str]], Version | None] = lambda view_ids: None,
        layouts: ViewLayouts | None = None,
        history: Callable[[str], History | None] = lambda view_id: None,
    ) -> None:
        """The memory limits are in bytes; there may be none for the process. ``concurrency`` bounds the queries at work
        at the same time, not those that are open; ``version`` is that of the rows of some views, None where it cannot
        be told now, and nothing is shared. With finished rows, all that changes the views must be told to
        ``finished``. ``layouts`` are the writer's: a view whose layout is not known is read as DuckDB has it.
        ``history`` is that of a view, while it is kept."""
        layouts = layouts or ViewLayouts()
        self._database = database
        self._source = source
        self._admission = Admission(concurrency)
        self._missing = MissingViews(source, why_missing)
        self._system = SystemCatalog(
            database, SYSTEM_CATALOG, source, {"pg_timezone_names": timezones_table, **(live or {})}
        )
        self._measuring = InUse(database.cursor())
        process = None if process_memory_limit is None else Process(process_memory_limit)
        self._memory = MemoryWatch(self._measuring, query_memory_limit, process)
        self._abandonable = AbandonableWork(self._memory.admit)
        self._binders = DuckBinders(database, self._system, layouts, self._abandonable, self._memory)
        self._plans: PlanCache[PullPlan] = PlanCache()
        self.gathering = gathering.GatheredLookUps(self._snapshot)
        self.sharing = SharedReads(version, self._abandonable)
        self.finished = KeptViews(
            lambda: Loader(database, layouts, reader_settings(self._system)), finished_rows_memory, history=history
        )
        self._templates: PlanCache[PullPlan | None] = PlanCache()  # None: a text that has to be planned

    def warm_up(self) -> None:
        """Build the system catalog now (some 0.2 s) instead of at the first query."""
        self._system.refresh(never)

    def close(self) -> None:
        self.finished.close()
        self.gathering.close()
        self._binders.close()
        self._abandonable.close()
        self._memory.close()
        self._measuring.close()
        self._system.close()

    def snapshot(self, own: Mapping[str, Callable[[], Any]] = MappingProxyType({}), owner: Owner = NOBODY) -> Snapshot:
        return self._snapshot(own, owner)

    def _snapshot(
        self, own: Mapping[str, Callable[[], Any]] = MappingProxyType({}), owner: Owner = NOBODY
    ) -> DuckSnapshot:
        engine = PullEngine(
            self._database, self._system, self._admission, self._missing, self._abandonable, self._memory
        )
        return DuckSnapshot(engine, own, owner)

    @property
    def left(self) -> int:
        """How many stopped statements are still at work in DuckDB."""
        return self._abandonable.left

    # --- plans ------------------------------------------------------------------------------------------------------
    @property
    def generation(self) -> int:
        return self._source.generation()

    def cached(self, text: str, scope: PullScope, parameter_oids: Sequence[int] = ()) -> PullPlan | None:
        return self._plans.get((text, scope, tuple(parameter_oids), self._source.generation()))

    def known(self, text: str, scope: PullScope) -> tuple[PullPlan, Sequence[Any]] | None:
        found = self.cached(text, scope)
        if found is not None:
            return None if found.parameter_oids else (found, ())
        return self._of_template(text, scope)

    def _of_template(self, text: str, scope: PullScope) -> tuple[PullPlan, Sequence[Constant]] | None:
        template = template_of(text)
        if template is None:
            return None
        of_all = self._templates.get((template.text, scope, template.oids, self._source.generation()))
        return None if of_all is None else (of_all, template.values)

    def plan(self, request: PlanRequest) -> PullPlan:
        text, scope = request.text, request.scope
        if text is None:
            return self._plan_anew(request)
        if request.snapshot is not None:
            return self._plan_anew(request)
        found = self.cached(text, scope, request.parameter_oids)
        if found is not None:
            return found
        known = None if request.parameter_oids else self._of_template(text, scope)
        written = None if known is None else with_values(*known)
        if written is not None:
            self._plans.keep((text, scope, (), written.generation), written)
            return written
        plan = self._plan_anew(request)
        if plan.kind in (classify.POINT, classify.RANGE) and not plan.parameter_oids:
            self._learn(text, plan, request)
        return plan

    def _learn(self, text: str, exact: PullPlan, request: PlanRequest) -> None:
        """The plan of all texts that differ from this one in their constants, once."""
        template = template_of(text)
        if template is None:
            return
        key = (template.text, request.scope, template.oids, exact.generation)
        if key in self._templates:
            return
        plan: PullPlan | None = None
        try:
            tree = parse_pull(template.text)
            try:
                if can_stand(template, tree):
                    plan = self._plan_anew(
                        replace(request, select=tree, parameter_oids=template.oids, text=template.text, start=0)
                    )
            finally:
                dismantle(tree)
        except SqlError as error:
            if error.sqlstate == sqlstates.QUERY_CANCELED:
                raise
            # the text itself is right: it is only none of those that parameters can stand in for
        if plan is not None and not stands_for(template, plan, exact):
            plan = None
        if plan is not None and self.cached(template.text, request.scope, template.oids) is not plan:
            return  # made for this session or catalog alone
        self._templates.keep(key, plan)

    def _plan_anew(self, request: PlanRequest) -> PullPlan:
        select, scope, stopped = request.select, request.scope, request.stopped
        self._system.build(stopped)
        self._system.learn({table.name for table in select.find_all(exp.Table)}, stopped)
        snapshot = request.snapshot or self._source.snapshot()
        facts = SessionFacts(
            snapshot, scope.database, scope.search_path, scope.role, dict(scope.settings), scope.backend_pid,
            scope.session_role,
        )  # fmt: skip
        tree = select.copy()
        try:
            plan = self._plan(tree, request, snapshot, facts)
        except WorkAbandoned:
            raise  # whoever is still binding the tree takes it apart
        except SqlError as error:
            self._database.damage.notice(error)
            dismantle(tree)
            located = select.copy()
            locate(error, located, request.sent)
            dismantle(located)
            raise
        dismantle(tree)
        if request.text is not None and request.snapshot is None and not facts.volatile:
            self._plans.keep((request.text, scope, tuple(request.parameter_oids), snapshot.generation), plan)
        return plan

    def _plan(self, tree: exp.Expr, request: PlanRequest, snapshot: CatalogSnapshot, facts: SessionFacts) -> PullPlan:
        """``tree`` is a copy of the request's, and is changed."""
        scope, stopped, oids = request.scope, request.stopped, tuple(request.parameter_oids)
        own = guard.own_call(tree, snapshot.function_names) if snapshot.functions else None
        guard.check(tree)
        asleep = classify.sleep_argument(tree)
        if asleep is not None:
            return plan_of_sleep(asleep)
        refuse_if_stopped(stopped)
        tree = longhand.write_out(tree)
        resolver = NameResolver(snapshot, scope, self._system, self._database.name, len(oids))
        resolver_root = exp.Paren(this=tree)
        resolver.resolve(tree)  # what reads a stream is no pull query
        if own is not None:
            raise own
        tree = resolver_root.this.pop()
        reads = resolver.reads
        refuse_if_stopped(stopped)
        kind = classify.OTHER if reads.expanded else classify.kind_of(request.select, reads.views)
        if reads.secured:
            if kind in (classify.POINT, classify.RANGE):
                row_policies.narrow(tree, reads.secured[0])
            kind = classify.OTHER
        elif reads.of_the_past and kind != classify.POINT:
            kind = classify.OTHER
        count = max([len(oids), *binding.parameter_numbers(tree)]) - 2 * len(reads.places)
        oids = with_inferred(tree, oids, facts)
        samples = constant_places.find(tree, oids)
        if samples and request.text is not None:
            return self._sampled(request, oids[:count], samples)
        own_types = enums.types_of(oids, snapshot.enums)
        query = PullQuery(
            tree, facts, bool(reads.system), bool(reads.views), oids, own_types, scope.time_zone, kind, request.sent
        )
        rewrite.rewrite(query)
        try:
            made = self._binders.run(lambda binder: binder.bind(query, reads), owner_of(scope), stopped)
        except SqlError as error:
            raise_instead(told(self._missing.explained(error, reads.views), secured=bool(reads.secured)), error)
        plan = plan_of(query, reads, made)
        dismantle(made.tree)
        if made.direct is not None:
            dismantle(made.direct)
        return signalling(plan, query.signalled)

    def _sampled(self, request: PlanRequest, types: Sequence[int], samples: Mapping[int, str]) -> PullPlan:
        """What a query is that needs constants in some places, before their values are known."""
        assert request.text is not None  # noqa: S101 - asked for by who calls
        rest = others(len(types), samples)
        tree = parse_pull(with_constants(request.text, samples))
        try:
            plan = self._plan_anew(
                replace(request, select=tree, parameter_oids=[types[at - 1] for at in rest], text=None, start=0)
            )
        finally:
            dismantle(tree)
        known = dict(zip(rest, plan.parameter_oids, strict=False))
        return replace(
            plan,
            parameter_oids=tuple(known.get(at, types[at - 1]) or TEXT for at in range(1, len(types) + 1)),
            constants=tuple(sorted(samples)),
            direct=None, kind=classify.OTHER, together=None, key_read=None, steady=False, sets=(), signals=(),
        )  # fmt: skip

    # --- row security -----------------------------------------------------------------------------------------------
    def check_policy(self, view: Relation, condition: str) -> None:
        self._words_of(view, row_policies.check(view, condition), PullScope("", (), ""), self._source.snapshot())

    def hides_rows(self, view_id: str, role: str) -> bool:
        snapshot = self._source.snapshot()
        view = snapshot.relations_by_id.get(view_id)
        return view is not None and row_security.in_force(view, snapshot.policies, snapshot.authority(role)) is not None

    def visible_rows(self, view_id: str, scope: PullScope) -> VisibleRows | None:
        snapshot = self._source.snapshot()
        view = snapshot.relations_by_id[view_id]
        policies = row_security.in_force(view, snapshot.policies, snapshot.authority(scope.role))
        if policies is None:
            return None
        if not scope.row_security:
            raise row_policies.affected(view)
        words = self._words_of(view, row_policies.condition(view, policies), scope, snapshot)
        path = f"SET search_path = '{self._database.name}.main,{self._system.functions_path}'"
        return VisibleRows(view.name, words, (*reader_settings(self._system), path))

    def _words_of(self, view: Relation, condition: exp.Expr, scope: PullScope, snapshot: CatalogSnapshot) -> str:
        """The condition in DuckDB's words. 42804 for one that is not true or false."""
        facts = SessionFacts(
            snapshot, scope.database, scope.search_path, scope.role, dict(scope.settings), scope.backend_pid,
            scope.session_role,
        )  # fmt: skip
        tree = row_policies.asked_of_values(view, condition)
        query = PullQuery(tree, facts, False, True, (), {}, "UTC", classify.OTHER)
        rewrite.rewrite(query)
        made = self._binders.run(lambda binder: binder.bind(query, Reads()), owner_of(scope), never)
        assert isinstance(made.tree, exp.Select)  # noqa: S101 - as it was asked
        row_policies.refuse_other_types(made.bound.types[0])
        words = written(made.tree.selects[0].unalias())
        if changes(words):
            raise row_policies.refused("functions of the present time and of chance")
        return words

    # --- push queries -----------------------------------------------------------------------------------------------
    def shaper(self, columns: Sequence[tuple[str, str]]) -> RowShaper:
        return DuckShaper(self._database, columns)

    # --- EXPLAIN ----------------------------------------------------------------------------------------------------
    def explain(
        self, plan: PullPlan, *, owner: Owner = NOBODY, stopped: Callable[[], bool] = never, costs: bool = True
    ) -> Sequence[str]:
        """DuckDB's physical plan as text, after a line that says which kind of read it is."""
        text = _evaluated(plan)
        kind = f"Pull query ({plan.kind}) over {len(plan.view_ids)} view(s)"
        head = [
            *(f"Read by Spark, to the present end: {read.select}{_at_most(read)}" for read in plan.streams),
            f"DuckDB: {text}",
        ]
        if plan.kind == classify.SLEEP:
            return [kind, *head]
        if plan.secured:
            return [kind, *head, _NOT_SHOWN]
        lines = self._binders.run(
            lambda binder: binder.explain(text, plan.live_relations, plan.streams), owner, stopped
        )
        return [f"{kind}  {estimated(plan, lines)}" if costs else kind, *head, *lines]

    def plan_nodes(self, plan: PullPlan, *, owner: Owner = NOBODY, stopped: Callable[[], bool] = never) -> PlanNode:
        text = _evaluated(plan)
        details: list[tuple[str, Any]] = [("Pull Query", plan.kind), ("Views", len(plan.view_ids))]
        if plan.streams:
            details.append(("Read by Spark", [f"{read.select}{_at_most(read)}" for read in plan.streams]))
        details.append(("DuckDB", text))
        if plan.secured:
            details.append(("Plan", _NOT_SHOWN))
        if plan.secured or plan.kind == classify.SLEEP:
            return PlanNode("Result", 1, width(plan), tuple(details))
        found = self._binders.run(
            lambda binder: binder.plan_nodes(text, plan.live_relations, plan.streams), owner, stopped
        )
        return nodes(found, width(plan), details)


_NOT_SHOWN = "DuckDB's plan is not shown: it would tell of rows that policies hide."


def _evaluated(plan: PullPlan) -> str:
    return plan.direct if plan.direct and not plan.runs.replaced else plan.sql


def _at_most(read: StreamRead) -> str:
    return "" if read.limit is None else f" LIMIT {read.limit}"
