"""DuckDB's physical plan as nodes with PostgreSQL's names, for EXPLAIN (FORMAT JSON)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mvserver.serving.api import PlanNode

_TYPES: Mapping[str, str] = {
    operator: name
    for name, operators in {
        "Seq Scan": ("SEQ_SCAN", "TABLE_SCAN"),
        "Index Scan": ("INDEX_SCAN",),
        "Values Scan": ("COLUMN_DATA_SCAN", "EXPRESSION_SCAN"),
        "Result": ("PROJECTION", "FILTER", "DUMMY_SCAN", "EMPTY_RESULT"),
        "Aggregate": ("HASH_GROUP_BY", "PERFECT_HASH_GROUP_BY", "PARTITIONED_AGGREGATE", "UNGROUPED_AGGREGATE"),
        "Unique": ("DISTINCT",),
        "WindowAgg": ("WINDOW", "STREAMING_WINDOW"),
        "Hash Join": ("HASH_JOIN", "LEFT_DELIM_JOIN", "RIGHT_DELIM_JOIN"),
        "Merge Join": ("PIECEWISE_MERGE_JOIN", "IE_JOIN", "ASOF_JOIN"),
        "Nested Loop": ("NESTED_LOOP_JOIN", "BLOCKWISE_NL_JOIN", "CROSS_PRODUCT", "POSITIONAL_JOIN"),
        "Sort": ("ORDER_BY",),
        "Limit": ("LIMIT", "STREAMING_LIMIT", "LIMIT_PERCENT", "TOP_N"),
        "Append": ("UNION",),
        "ProjectSet": ("UNNEST", "INOUT_FUNCTION"),
        "Recursive Union": ("RECURSIVE_CTE",),
        "CTE Scan": ("CTE_SCAN", "RECURSIVE_CTE_SCAN", "DELIM_SCAN"),
    }.items()
    for operator in operators
}
_ROWS = "Estimated Cardinality"
_NAMES = {"Table": "Relation Name", "Filters": "Filter"}
_LEFT_OUT = frozenset({_ROWS, "Type"})


def nodes(plan: Sequence[Mapping[str, Any]], width: int, details: Sequence[tuple[str, Any]]) -> PlanNode:
    """``plan`` as DuckDB writes it; ``details`` are told of the whole statement."""
    root = _node(plan[0], width)
    return PlanNode(root.type, root.rows, root.width, (*details, *root.details), root.children)


def _node(found: Mapping[str, Any], width: int = 0) -> PlanNode:
    name = str(found["name"]).strip()
    extra = found.get("extra_info") or {}
    return PlanNode(
        _TYPES.get(name, name.replace("_", " ").title()),
        max(1, int(extra.get(_ROWS, 1))),
        width,
        tuple(_detail(key, value) for key, value in extra.items() if key not in _LEFT_OUT),
        tuple(map(_node, found.get("children") or ())),
    )


def _detail(key: str, value: Any) -> tuple[str, Any]:
    return _NAMES.get(key, key), value.title() if key == "Join Type" else value
