"""Functions that change an answer although nothing that the query reads has changed: clocks, chance, identifiers.

It is looked for in the text that DuckDB runs, where functions have their last names. A word too many costs only that
the query's answers are not shared.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

_CHANGING = re.compile(
    r"""\b(?:
        current_\w+ | localtime(?:stamp)? | tablesample | using\s+sample
      | (?: _?now | today | age | random | setseed | uuid\w* | gen_random_uuid | get_current_\w+ | clock_timestamp
          | statement_timestamp | transaction_timestamp | timeofday | txid_\w+ | getvariable | in_search_path
          | sleep_ms | nextval | currval | setval | vector_type | stats | write_log ) \s* \(
    )""",
    re.X | re.I,
)


def changes(text: str) -> bool:
    return _CHANGING.search(text) is not None


_CHANCE = frozenset({"random", "uuid", "gen_random_uuid", "uuidv4", "uuidv7"})


def bound_once(value: exp.Expr, name: str, made: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """What is ``made`` of a value that stands in one place of the tree, under a ``name`` of its own."""
    item = exp.to_identifier(name, quoted=True)
    shown = exp.Lambda(this=made(exp.Column(this=item.copy())), expressions=[item])
    listed = exp.Anonymous(this="list_value", expressions=[value.copy()])
    texts = exp.Anonymous(this="list_transform", expressions=[listed, shown])
    return exp.Anonymous(this="list_extract", expressions=[texts, exp.Literal.number(1)])


def draws(value: exp.Expr) -> bool:
    """Whether each place that a value has in a tree would be another draw."""
    return any(
        isinstance(node, exp.Rand | exp.Uuid) or (isinstance(node, exp.Anonymous) and node.name.lower() in _CHANCE)
        for node in value.walk()
    )
