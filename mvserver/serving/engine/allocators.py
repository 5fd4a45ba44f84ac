"""The allocators of the server's process: how much there is of it, and how memory goes back to the system.

DuckDB's own limit counts its buffers, and not the vectors, lists and texts of the expressions that it evaluates. All
of these come from the jemalloc in DuckDB's library, which tells how much it has given out, gives back at once what is
free, and can be kept from taking more large blocks: whoever needs one is then refused by DuckDB as out of memory.
Python and C++ have their memory from glibc, Arrow has a pool of its own. Where a library is built without jemalloc, or
the system is not Linux, there is less to be known and done, and nothing else differs.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

_STATM = Path("/proc/self/statm")
_ALL_ARENAS = 4096  # jemalloc's MALLCTL_ARENAS_ALL


class _ExtentHooks(ctypes.Structure):
    """jemalloc's extent_hooks_t."""

    _fields_ = [
        (name, ctypes.c_void_p)
        for name in (
            "alloc", "dalloc", "destroy", "commit", "decommit", "purge_lazy", "purge_forced", "split", "merge",
        )
    ]  # fmt: skip


class DuckAllocator:
    """The jemalloc of DuckDB's library. One for the process, for any thread."""

    def __init__(self, mallctl: Any) -> None:
        self._mallctl = mallctl
        self._lock = threading.Lock()
        self._large = self._unsigned("opt.narenas", ctypes.c_uint)  # the arena of large blocks comes after the others
        self._usual: int | None = None  # address of its hooks
        self._refusing: _ExtentHooks | None = None  # jemalloc has its address

    def allocated(self) -> int:
        """Bytes that are in use."""
        epoch, size = ctypes.c_uint64(1), ctypes.c_size_t(8)
        self._mallctl(b"epoch", ctypes.byref(epoch), ctypes.byref(size), ctypes.byref(epoch), size)
        return self._unsigned("stats.allocated", ctypes.c_size_t)

    def purge(self) -> None:
        """What is free goes back to the system."""
        self._mallctl(f"arena.{_ALL_ARENAS}.purge".encode(), None, None, None, ctypes.c_size_t(0))

    def refuse_large(self, *, refused: bool) -> None:
        """Whether blocks of ``limits.LARGE_BLOCK_BYTES`` and more are refused that do not fit into what it has."""
        with self._lock:
            if self._usual is None and not (refused and self._know_hooks()):
                return
            address = ctypes.addressof(self._refusing) if refused and self._refusing is not None else self._usual
            hooks = ctypes.c_void_p(address)
            self._mallctl(self._hooks_name, None, None, ctypes.byref(hooks), ctypes.c_size_t(ctypes.sizeof(hooks)))

    @property
    def _hooks_name(self) -> bytes:
        return f"arena.{self._large}.extent_hooks".encode()

    def _know_hooks(self) -> bool:
        """False before the first large block: the arena is not there yet."""
        found, size = ctypes.c_void_p(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_void_p))
        if self._mallctl(self._hooks_name, ctypes.byref(found), ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
            return False
        if found.value is None:
            return False
        self._usual = found.value
        usual = _ExtentHooks.from_address(found.value)
        self._refusing = _ExtentHooks.from_buffer_copy(usual)
        # A refusal is a NULL. The hook is called by DuckDB's threads with locks held, so it must not be Python's:
        # sched_yield() needs no arguments and returns 0.
        self._refusing.alloc = ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value
        return True

    def _unsigned(self, name: str, kind: type[Any]) -> int:
        value, size = kind(), ctypes.c_size_t(ctypes.sizeof(kind))
        self._mallctl(name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0))
        return int(value.value)


@functools.cache
def duck_allocator() -> DuckAllocator | None:
    """None where DuckDB's library has no jemalloc."""
    found = importlib.util.find_spec("_duckdb")
    if found is None or found.origin is None:
        return None
    mallctl = getattr(ctypes.CDLL(found.origin), "duckdb_je_mallctl", None)
    return None if mallctl is None else DuckAllocator(mallctl)


def resident() -> int | None:
    """Bytes of the process in memory without files' pages; None where the system does not tell."""
    try:
        pages = _STATM.read_bytes().split()
    except OSError:
        return None
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")


def allocated() -> int:
    """Bytes that DuckDB has taken, as far as its library tells."""
    allocator = duck_allocator()
    return 0 if allocator is None else allocator.allocated()


def give_back() -> None:
    """All allocators hand what is free to the system; some milliseconds."""
    allocator = duck_allocator()
    if allocator is not None:
        allocator.purge()
    pa.default_memory_pool().release_unused()
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@functools.cache
def _malloc_trim() -> Callable[[int], object] | None:
    """glibc's."""
    found: Callable[[int], object] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return found
