"""CPU time and memory of a process and all it started, from /proc (Linux)."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Usage:
    cpu_s: float
    rss_bytes: int
    at: float  # time.monotonic()


def usage(pid: int) -> Usage:
    cpu_s, rss_bytes = 0.0, 0
    for member in tree(pid):
        try:
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # ended since
            continue
        cpu_s += (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
        rss_bytes += int(fields[21]) * _PAGE_BYTES
    return Usage(cpu_s, rss_bytes, time.monotonic())


def own_cpu_s(pid: int) -> float:
    """Processor time of the process alone, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def own_rss_bytes(pid: int) -> int:
    """Memory of the process alone, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[21]) * _PAGE_BYTES


def cores_between(before: Usage, after: Usage) -> float:
    return (after.cpu_s - before.cpu_s) / (after.at - before.at)


def tree(pid: int) -> list[int]:
    """The process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry))
    found, left = [], [pid]
    while left:
        member = left.pop()
        found.append(member)
        left.extend(children.get(member, ()))
    return found
