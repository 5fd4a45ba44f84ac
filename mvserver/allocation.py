"""The settings of the memory allocators, made before the libraries that use them are loaded.

DuckDB brings jemalloc. Without ``retain`` what it has freed goes back to the system, and a separate arena for large
blocks is what ``serving.engine.allocators`` can stop from growing. glibc's arenas are left as they are: with two of
them queries took more processor time, and what stays in the others is given back by ``serving.engine.memory_watch``.
"""

from __future__ import annotations

import os

from mvserver import limits

_DUCKDB_VARIABLE = "DUCKDB_JE_MALLOC_CONF"


def prepare() -> None:
    """To be called before duckdb is imported. What the operator has said comes first."""
    os.environ.setdefault(_DUCKDB_VARIABLE, f"retain:false,oversize_threshold:{limits.LARGE_BLOCK_BYTES}")
