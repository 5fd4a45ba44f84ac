"""The shortest way of a SELECT: its plan is known, its rows are kept finished, and no transaction is open.

The session's calls for Parse, Bind, Execute and Sync cost many times what finding such rows does. Here nothing is made
that would end with the answer (an implicit transaction, a portal, a statement's clock), and whatever is not as usual is
left to those calls, as if nobody had asked before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mvserver import limits
from mvserver.front import Field, KeptRows
from mvserver.serving.api import PullPlan, PullScope
from mvserver.session.prepared import PreparedStatement
from mvserver.session.reads.pulls import PullRunner, bare, same_columns
from mvserver.session.state import SessionState
from mvserver.session.transactions import State
from mvserver.sql.statements.queries import Pull

ReadKept = Callable[["LookUp", Sequence[Any], str | None], KeptRows | None]


@dataclass(eq=False, slots=True)
class LookUp:
    """Implements ``mvserver.front.KeptRead``."""

    plan: PullPlan
    text: str
    scope: PullScope
    read: ReadKept
    prepared: PreparedStatement | None = None
    wire: Any = None

    @property
    def parameter_oids(self) -> tuple[int, ...]:
        return self.plan.parameter_oids

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.plan.fields

    @property
    def time_zone(self) -> str:
        return self.plan.time_zone

    def rows(self, parameters: Sequence[Any], text: str | None = None) -> KeptRows | None:
        return self.read(self, parameters, text)


class LookUps:
    """Those of one session. Implements ``mvserver.front.KeptReads``."""

    def __init__(self, state: SessionState, pulls: PullRunner, read: ReadKept) -> None:
        self._state = state
        self._pulls = pulls
        self._read = read
        self._prepared: dict[str, LookUp] = {}
        self._plans: dict[int, LookUp] = {}  # by the identity of the plan that each holds
        self._generation = 0  # of the catalog that their plans were made with
        state.prepared.on_gone(self._forget)

    def prepared(self, name: str, text: str | None = None, oids: Sequence[int] = ()) -> LookUp | None:
        prepared = self._state.prepared.find(name)
        if prepared is None or (text is not None and (prepared.text, prepared.declared_oids) != (text, tuple(oids))):
            return None
        known = self._prepared.get(name)
        if known is None or known.prepared is not prepared or not self._stands(known):
            known = self._planned(prepared)
        return known if known is not None and self._pulls.may_run_at_once(known.plan) else None

    def query(self, text: str) -> tuple[LookUp, Sequence[Any]] | None:
        if self._state.services.extensions:
            return None
        known = self._pulls.known(bare(text))
        if known is None or known[0].key_read is None or not self._pulls.may_run_at_once(known[0]):
            return None
        plan, values = known
        found = self._plans.get(id(plan))
        if found is None or found.plan is not plan:
            found = self._keep(self._plans, id(plan), LookUp(plan, text, self._state.scope(), self._read))
        return found, values

    def _forget(self, name: str) -> None:
        self._prepared.pop(name, None)

    # --- the session's side -----------------------------------------------------------------------------------------
    @property
    def usual(self) -> bool:
        """Whether a statement may begin and end unseen, and its answer is nothing but rows."""
        state = self._state
        return state.transaction.state is State.IDLE and not state.context.notices and state.knows_roles

    def find(self, look_up: LookUp, parameters: Sequence[Any]) -> KeptRows | None:
        """None where DuckDB has to be asked."""
        result = self._state.services.pulls.finished.find(look_up.plan, parameters)
        return result.rows if result is not None and isinstance(result.rows, KeptRows) else None

    def _stands(self, known: LookUp) -> bool:
        return known.scope is self._state.scope() and known.plan.generation == self._state.services.pulls.generation

    def _planned(self, prepared: PreparedStatement) -> LookUp | None:
        statement = prepared.statement
        if not isinstance(statement, Pull):
            return None
        plan = self._pulls.cached(statement.text, prepared.declared_oids)
        if plan is None or plan.key_read is None or not same_columns(prepared, plan.fields):
            return None
        made = LookUp(plan, prepared.text, self._state.scope(), self._read, prepared)
        return self._keep(self._prepared, prepared.name, made)

    def _keep(self, known: dict[Any, LookUp], key: Any, look_up: LookUp) -> LookUp:
        """Those of an older catalog are let go: none of them is used again."""
        if look_up.plan.generation != self._generation:
            self._generation = look_up.plan.generation
            self._prepared.clear()
            self._plans.clear()
        if len(known) >= limits.PLAN_CACHE_ENTRIES:
            known.clear()
        known[key] = look_up
        return look_up
