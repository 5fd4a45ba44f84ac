"""The functions that a pull query may call: PostgreSQL's, with its meaning, and those of its catalogs.

DuckDB has hundreds of others, and some of these names with more forms. So a name that does not stand here does not
exist, and a number of arguments that PostgreSQL does not have is refused too. ``docs/generate.py`` makes the page of
them, and ``pgcatalog`` the macros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from mvserver.sql.pull_table.aggregates import AGGREGATES
from mvserver.sql.pull_table.arrays import ARRAYS
from mvserver.sql.pull_table.catalog import CATALOG
from mvserver.sql.pull_table.json import JSON
from mvserver.sql.pull_table.model import PullFunction
from mvserver.sql.pull_table.numbers import NUMBERS
from mvserver.sql.pull_table.rows import ROWS
from mvserver.sql.pull_table.session import SESSION
from mvserver.sql.pull_table.texts import TEXTS
from mvserver.sql.pull_table.times import TIMES
from mvserver.sql.pull_table.windows import WINDOWS

GROUPS: Mapping[str, Sequence[PullFunction]] = {
    "Numbers": NUMBERS,
    "Text and bytes": TEXTS,
    "Dates and times": TIMES,
    "Arrays and enums": ARRAYS,
    "JSON": JSON,
    "Aggregates": AGGREGATES,
    "Windows": WINDOWS,
    "Rows": ROWS,
    "Session and server": SESSION,
    "Catalog": CATALOG,
}
"""By kind, as the page shows them."""


@cache
def table() -> Mapping[str, PullFunction]:
    """By name."""
    return {function.name: function for group in GROUPS.values() for function in group}
