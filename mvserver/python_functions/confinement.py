"""What a process gives up for good before it runs a user's text: files, network, other processes, and more memory.

Two means of Linux that need no rights: a filter of system calls (seccomp), which lets computing, memory and the open
pipe pass and refuses all else, and Landlock, which denies files and ports once more. Limits bound the memory.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

_NO_NEW_PRIVILEGES, _DEATH_SIGNAL, _KILL = 38, 1, 9
_SET_FILTER, _ALL_THREADS = 1, 1
_ALLOW, _REFUSE, _EPERM = 0x7FFF0000, 0x00050000, 1
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _THIRD_ARGUMENT_AT = 0, 4, 32
_EXECUTABLE = 4  # PROT_EXEC
_CREATE_RULES, _RESTRICT = 444, 446  # of Landlock, on all machines
_VERSION = 1


@dataclass(frozen=True)
class _Machine:
    """System calls by number. ``mapping`` are those that may not ask for memory to execute."""

    architecture: int
    seccomp: int
    foreign_from: int | None  # numbers of another interface on the same machine
    mapping: tuple[int, ...]
    allowed: tuple[int, ...]


_MACHINES = {
    "x86_64": _Machine(
        0xC000003E, 317, 0x40000000, (9, 10),
        # read write close fstat poll lseek munmap brk sigaction sigprocmask sigreturn readv writev select yield mremap
        # madvise nanosleep getpid exit gettimeofday getrusage times sigaltstack gettid time futex getaffinity
        # restart clock_gettime clock_getres clock_nanosleep exit_group pselect ppoll robust_list getrandom membarrier
        # rseq
        (0, 1, 3, 5, 7, 8, 11, 12, 13, 14, 15, 19, 20, 23, 24, 25, 28, 35, 39, 60, 96, 98, 100, 131, 186, 201, 202,
         204, 219, 228, 229, 230, 231, 270, 271, 273, 318, 324, 334),
    ),
    "aarch64": _Machine(
        0xC00000B7, 277, None, (222, 226),
        (57, 62, 63, 64, 65, 66, 72, 73, 80, 93, 94, 98, 99, 101, 113, 114, 115, 123, 124, 128, 132, 134, 135, 139,
         153, 165, 169, 172, 178, 214, 215, 216, 233, 278, 283, 293),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Confinement:
    """What of it holds. ``files_and_network``: the filter of system calls; ``landlock`` is its version, 0 without."""

    files_and_network: bool
    landlock: int
    memory: bool

    @property
    def is_whole(self) -> bool:
        return self.files_and_network and self.memory


def end_with_parent(parent: int) -> None:
    """The process ends when its parent does, whatever it is doing then."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, _KILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


def confine(memory_bytes: int) -> Confinement:
    """Gives up what can be given up; nothing of it comes back."""
    memory = _limit(memory_bytes)
    machine = _MACHINES.get(platform.machine()) if sys.platform == "linux" else None
    if sys.platform != "linux" or ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return Confinement(files_and_network=False, landlock=0, memory=memory)
    landlock = _landlock()
    filtered = machine is not None and _filter(machine)
    return Confinement(filtered, landlock, memory)


def _limit(memory_bytes: int) -> bool:
    """``memory_bytes`` more than the process has now."""
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (0, 0))
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith(("VmSize", "VmData"))}
    for kind, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        most = sizes[name] + memory_bytes
        resource.setrlimit(kind, (most, most))
    return True


def _landlock() -> int:
    """Denies all files and ports; what is open stays open."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = int(libc.syscall(_CREATE_RULES, None, 0, _VERSION))
    if version < 1:
        return 0
    files = 13 + (version >= 2) + (version >= 3) + (version >= 5)
    handled = struct.pack("=Q", (1 << files) - 1)
    if version >= 4:
        handled += struct.pack("=Q", 3)
    if version >= 6:
        handled += struct.pack("=Q", 3)
    rules = int(libc.syscall(_CREATE_RULES, handled, len(handled), 0))
    if rules < 0:
        return 0
    try:
        return version if libc.syscall(_RESTRICT, rules, 0) == 0 else 0
    finally:
        os.close(rules)


def _filter(machine: _Machine) -> bool:
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, machine.architecture),
        (_RETURN, 0, 0, _REFUSE | _EPERM),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine.foreign_from is not None:
        program += [(_AT_LEAST, 0, 1, machine.foreign_from), (_RETURN, 0, 0, _REFUSE | _EPERM)]
    for number in machine.allowed:
        program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    for number in machine.mapping:
        program += [
            (_EQUAL, 0, 4, number),
            (_LOAD, 0, 0, _THIRD_ARGUMENT_AT),
            (_ANY_BIT, 0, 1, _EXECUTABLE),
            (_RETURN, 0, 0, _REFUSE | _EPERM),
            (_RETURN, 0, 0, _ALLOW),
        ]
    program.append((_RETURN, 0, 0, _REFUSE | _EPERM))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    given = struct.pack("@HxxxxxxP", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(machine.seccomp, _SET_FILTER, _ALL_THREADS, given)) == 0
