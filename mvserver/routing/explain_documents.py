"""EXPLAIN (FORMAT JSON): a plan in the document that PostgreSQL writes of one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mvserver.serving.api import PlanNode
from mvserver.sql.explain_options import ExplainOptions
from mvserver.sql.statements.queries import Measured

_ROW_COST = 0.01  # PostgreSQL's cpu_tuple_cost
_RELATIONSHIPS = ("Outer", "Inner")


def document(root: PlanNode, options: ExplainOptions, measured: Measured | None) -> str:
    """Times and rows are measured of the whole statement, so they stand at the root alone."""
    plan = _node(root, options, measured, None)
    found: dict[str, Any] = {"Plan": plan}
    if measured is not None:
        if options.summary:
            found["Planning Time"] = measured.planning_ms
        found["Triggers"] = []
        if options.summary:
            found["Execution Time"] = measured.total_ms
    return json.dumps([found], indent=2, ensure_ascii=False)


def of_lines(lines: Sequence[str]) -> PlanNode:
    """Of a plan that is told in lines, as that of a continuous query."""
    return PlanNode(lines[0].strip(), details=(("Details", [line.rstrip() for line in lines[1:]]),))


def _node(
    node: PlanNode, options: ExplainOptions, measured: Measured | None, relationship: str | None
) -> dict[str, Any]:
    made: dict[str, Any] = {"Node Type": node.type}
    if relationship is not None:
        made["Parent Relationship"] = relationship
    made |= {"Parallel Aware": False, "Async Capable": False}
    if options.costs and node.rows is not None:
        made |= {
            "Startup Cost": 0.0,
            "Total Cost": round(node.rows * _ROW_COST, 2),
            "Plan Rows": node.rows,
            "Plan Width": node.width,
        }
    if measured is not None:
        if options.timing:
            made |= {"Actual Startup Time": measured.first_ms, "Actual Total Time": measured.total_ms}
        made |= {"Actual Rows": measured.rows, "Actual Loops": 1}
    made |= {name: value for name, value in node.details if name not in made}
    if node.children:
        made["Plans"] = [
            _node(child, options, None, _RELATIONSHIPS[min(place, len(_RELATIONSHIPS) - 1)])
            for place, child in enumerate(node.children)
        ]
    return made
