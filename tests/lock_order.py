"""A debug check of locks: each one that the server makes is named, and taken in the order of ``docs/locks.md``.

``install`` replaces the factories of ``threading``; only locks made in the server's own files are watched. What is
against the order is noted, also where nothing came of it: two threads would have to meet for that. Run any tests with
``MVSERVER_LOCKS=check``; a test that has noted something then fails.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "locks.md"
ROOMS = tuple(str(ROOT / room) + "/" for room in ("mvserver", "spark_sinks", "catalog"))
_ROW = re.compile(r"^\| (\d+) \| `([\w.]+)` \|.*\| (yes|no) \|$")
_ASSIGNED = re.compile(r"\s*(?:self\.)?(\w+)\s*(?::[^=]+)?=")


@dataclass(frozen=True)
class Rule:
    """A lock of the page: what is held may only have a smaller ``rank``. ``waits``: it may be held while a thread is
    joined or Spark is called."""

    rank: int
    waits: bool


def rules(page: Path = PAGE) -> Mapping[str, Rule]:
    rows = map(_ROW.match, page.read_text(encoding="utf-8").splitlines())
    return {row[2]: Rule(int(row[1]), row[3] != "no") for row in rows if row is not None}


class Watch:
    """What threads hold, and what they did against the rules."""

    def __init__(self, known: Mapping[str, Rule]) -> None:
        self.known = known
        self.violations: set[str] = set()
        self.edges: set[tuple[str, str]] = set()
        self._held = threading.local()

    def held(self) -> list[Named]:
        found: list[Named] | None = getattr(self._held, "locks", None)
        if found is None:
            found = self._held.locks = []
        return found

    def taken(self, lock: Named) -> None:
        held = self.held()
        if not any(each is lock for each in held):
            for outer in held:
                self._check(outer, lock)
        held.append(lock)

    def let_go(self, lock: Named) -> None:
        held = self.held()
        for at in range(len(held) - 1, -1, -1):
            if held[at] is lock:
                del held[at]
                return

    def waiting(self, what: str) -> None:
        for lock in self.held():
            rule = self.known.get(lock.name)
            if rule is None or not rule.waits:
                self.violations.add(f"{what} under {lock.name}")

    def _check(self, outer: Named, inner: Named) -> None:
        edge = (outer.name, inner.name)
        if edge in self.edges:
            return
        self.edges.add(edge)
        one, two = self.known.get(outer.name), self.known.get(inner.name)
        if one is None or two is None or one.rank >= two.rank:
            self.violations.add(f"{inner.name} under {outer.name}")


class Named:
    """A lock that tells the watch; as ``threading.Condition`` needs it of a lock of its own."""

    def __init__(self, lock: Any, name: str, watch: Watch) -> None:
        self._lock = lock
        self.name = name
        self._watch = watch

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        got = bool(self._lock.acquire(blocking, timeout))
        if got:
            if blocking and timeout < 0:
                self._watch.taken(self)
            else:  # who gives up waits for nobody for ever
                self._watch.held().append(self)
        return got

    __enter__ = acquire

    def release(self) -> None:
        self._watch.let_go(self)
        self._lock.release()

    def __exit__(self, *_: object) -> None:
        self.release()

    def locked(self) -> bool:
        return bool(self._lock.locked())

    def _is_owned(self) -> bool:
        owned = getattr(self._lock, "_is_owned", None)
        return bool(owned()) if owned is not None else any(each is self for each in self._watch.held())

    def _release_save(self) -> Any:
        held = self._watch.held()
        count = sum(each is self for each in held)
        held[:] = [each for each in held if each is not self]
        save = getattr(self._lock, "_release_save", None)
        if save is None:
            self._lock.release()
            return None, count
        return save(), count

    def _acquire_restore(self, saved: tuple[Any, int]) -> None:
        state, count = saved
        restore = getattr(self._lock, "_acquire_restore", None)
        self._lock.acquire() if restore is None else restore(state)
        self._watch.held().extend([self] * count)


def name_of(frame: FrameType | None) -> str | None:
    """``mvserver.stores.StoreRegistry._lock``: where a lock is made; None for one that is not the server's."""
    while frame is not None and frame.f_code.co_filename == threading.__file__:
        if not frame.f_code.co_qualname.startswith("Condition."):
            return None  # inside of an event, a semaphore or a thread: held for no longer than a flag is set
        frame = frame.f_back
    if frame is None or not frame.f_code.co_filename.startswith(ROOMS):
        return None
    file = Path(frame.f_code.co_filename)
    room = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    assigned = _ASSIGNED.match(linecache.getline(str(file), frame.f_lineno))
    place = [part for part in frame.f_code.co_qualname.split(".") if part not in ("__init__", "<module>", "<locals>")]
    return ".".join([room, *place, assigned[1] if assigned else "lock"])


def install(watch: Watch) -> Callable[[], None]:
    """Watches all locks made from now on; what it returns ends that."""
    lock, rlock, join = threading.Lock, threading.RLock, threading.Thread.join

    def watched(make: Callable[[], Any]) -> Callable[[], Any]:
        def made() -> Any:
            name = name_of(sys._getframe(1))
            return make() if name is None else Named(make(), name, watch)

        return made

    def joined(thread: threading.Thread, timeout: float | None = None) -> None:
        watch.waiting("a thread is joined")
        join(thread, timeout)

    threading.Lock, threading.RLock = watched(lock), watched(rlock)  # type: ignore[misc,assignment]
    threading.Thread.join = joined  # type: ignore[method-assign]
    spark = _watch_spark(watch)

    def end() -> None:
        threading.Lock, threading.RLock = lock, rlock  # type: ignore[misc]
        threading.Thread.join = join  # type: ignore[method-assign]
        spark()

    return end


def _watch_spark(watch: Watch) -> Callable[[], None]:
    from py4j.java_gateway import GatewayClient

    send = GatewayClient.send_command

    def sent(client: Any, command: str, *rest: Any, **others: Any) -> Any:
        if not command.startswith("m\n"):  # of the collector of Java objects
            watch.waiting("Spark is called")
        return send(client, command, *rest, **others)

    GatewayClient.send_command = sent

    def end() -> None:
        GatewayClient.send_command = send

    return end


def made_in_source() -> set[str]:
    """The names of all locks that the server's files make, without the demo's."""
    found: set[str] = set()
    for room in ROOMS:
        for path in Path(room).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if not module.startswith("mvserver.demo."):
                _collect(ast.parse(path.read_text(encoding="utf-8")), module, found)
    return found


def _collect(node: ast.AST, place: str, found: set[str]) -> None:
    for child in ast.iter_child_nodes(node):
        inside = place
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and child.name != "__init__":
            inside = f"{place}.{child.name}"
        if isinstance(child, ast.Assign | ast.AnnAssign) and isinstance(child.value, ast.Call):
            target = child.targets[0] if isinstance(child, ast.Assign) else child.target
            if ast.unparse(child.value) in ("threading.Lock()", "threading.RLock()", "threading.Condition()"):
                found.add(f"{place}.{ast.unparse(target).removeprefix('self.')}")
        _collect(child, inside, found)
