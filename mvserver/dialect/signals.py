"""pg_cancel_backend and pg_terminate_backend: DuckDB finds the processes, and the session signals them."""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from mvserver import interrupts, sqlstates
from mvserver.errors import SqlError
from mvserver.pgcatalog.session_functions import SessionFacts

Signal = Literal["cancel", "terminate"]
_FUNCTIONS: dict[str, Signal] = {"pg_cancel_backend": "cancel", "pg_terminate_backend": "terminate"}


def take(tree: exp.Expr, facts: SessionFacts) -> dict[int, Signal]:
    """By their places the columns of a query that are such calls; the argument is put in the place of each, in place.
    0A000 for a call elsewhere: DuckDB may evaluate it for rows that the query does not give, or more than once."""
    calls = [node for node in interrupts.asking(tree.find_all(exp.Anonymous)) if _signal(node) is not None]
    if not calls:
        return {}
    found: dict[int, Signal] = {}
    plain = isinstance(tree, exp.Select) and not any(
        tree.args.get(clause) for clause in ("distinct", "group", "having")
    )
    for place, item in enumerate(tree.expressions if plain else ()):
        if item.is_star:
            break  # the places of what follows are not known
        call = item.unalias()
        whole = call.expression if isinstance(call, exp.Dot) else call
        signal = _signal(whole)
        if signal is not None:
            found[place] = signal
            call.replace(exp.cast(whole.expressions[0].copy(), "INT", dialect="duckdb"))
    if len(found) < len(calls):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{calls[0].name.lower()} is supported as a column of the outermost SELECT only",
            hint="SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ...",
        )
    facts.volatile = True
    return found


def _signal(node: exp.Expr) -> Signal | None:
    if not isinstance(node, exp.Anonymous) or len(node.expressions) != 1:
        return None
    return _FUNCTIONS.get(node.name.lower())
