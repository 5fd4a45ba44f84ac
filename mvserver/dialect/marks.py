"""Keys in the meta of a query's nodes that several rooms know."""

from __future__ import annotations

RELATION = "relation"
"""Of a table: the view that its name was resolved to."""
SYSTEM_RELATION = "system relation"
"""Of a sub-query: schema and name of the relation of the catalog that it stands for."""
UNTYPED = "untyped"
"""Of an array that is written as a text, ``'{1,2}'``: what it is compared with says of which type."""
PERIODS = "periods"
"""Of a comparison of a time of day with an interval."""
