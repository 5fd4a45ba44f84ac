"""How the process gets its memory, said before the libraries that ask for it are loaded.

DuckDB brings jemalloc. Without ``retain`` what it has freed goes back to the system, and a separate arena for large
blocks is what ``serving.allocators`` can stop from growing. glibc keeps an arena for each thread, up to eight for each
processor, and what was freed in one is not used by the others: two are enough, since most of the server's small
objects are Python's and made under its lock.
"""

from __future__ import annotations

import ctypes
import os
import sys

from mvserver import limits

_DUCKDB_VARIABLE = "DUCKDB_JE_MALLOC_CONF"
_M_ARENA_MAX = -8  # of mallopt(3)


def prepare() -> None:
    """To be called before duckdb is imported, by a process of one thread. What the operator has said comes first."""
    os.environ.setdefault(_DUCKDB_VARIABLE, f"retain:false,oversize_threshold:{limits.LARGE_BLOCK_BYTES}")
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's
        if mallopt is not None:
            mallopt(_M_ARENA_MAX, limits.GLIBC_ARENAS)
