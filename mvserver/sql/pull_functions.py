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

_OTHER_FORMS = """
    array_position 3, array_to_json 2, generate_series 4, generate_subscripts 3,
    json_strip_nulls 2, length 2, random 2, regexp_replace 5-6, row_to_json 2, timezone 1"""


@cache
def table() -> Mapping[str, PullFunction]:
    """By name."""
    return {function.name: function for group in GROUPS.values() for function in group}


@cache
def other_forms() -> Mapping[str, PullFunction]:
    """By name: further numbers of arguments that PostgreSQL has, and pull queries have not."""
    entries = (entry.split(" ") for entry in " ".join(_OTHER_FORMS.split()).split(", "))
    return {name: PullFunction(name, takes, (), "") for name, takes in entries}
