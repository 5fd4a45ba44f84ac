"""Sources whose batch ends Spark's JVM again and again are set aside, so that it comes up for the others.

What was under way when the JVM ended is suspect. Suspects are evaluated one at a time from then on, and in smaller
batches, until all records of the suspect batch have been evaluated. A batch at which the JVM has ended twice is
refused: its queries fail, and ``RESTART QUERY`` gives it another trial. Suspicions are written down when the JVM ends,
and outlive the server.

Who has killed the server, or the JVM, is not known. A large batch takes long, and is under way whenever somebody does:
that makes the next ones small, and no more is held against it. A small batch is over soon, so that three ends at the
same one are its own doing. In a JVM that has just begun it takes long, and so do those beside it. So an end of the
server counts for half where others were evaluated, too. Somebody who kills the server does so also while nothing, or
nothing suspect, is evaluated: such an end takes back what other ends of the server have spoken against small batches.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.spark.batch_register import Batch, BatchRegister
from spark_sinks.base import Position, Positions

_log = logging.getLogger(__name__)

READ = "read:"  # begins the source of a read for a statement
_TURN_S = 0.25


@dataclass(frozen=True)
class Suspicion:
    """``crashes``: ends of the JVM by itself; ``kills``: those that somebody else may have caused; ``server_ends``: the
    server ended with the JVM. ``small_kills`` and ``small_server_ends``: those at a batch that was as small as on
    probation; ``crowded_server_ends``: the same where others were under way beside it. ``cleared`` is how far its
    records have been evaluated since."""

    batch: Batch
    crashes: int = 0
    kills: int = 0
    server_ends: int = 0
    small_kills: int = 0
    small_server_ends: int = 0
    crowded_server_ends: int = 0
    cause: str = ""
    at: float = 0.0  # when it was last noted, as seconds since 1970
    cleared: Position | None = None

    @property
    def is_over(self) -> bool:
        """A read for a statement is tried again after a while: nobody else can say that it may. And a suspicion ends
        whose records nobody has evaluated for long, as those of a view that was dropped."""
        age_s = time.time() - self.at
        if self.batch.source.startswith(READ) and age_s > limits.SPARK_READ_REFUSED_S:
            return True
        return not self.is_guilty and age_s > limits.SPARK_SUSPECTED_S

    @property
    def is_guilty(self) -> bool:
        if self.crashes >= limits.SPARK_CRASHES_OF_A_BATCH_MAX:
            return True
        server_ends = self.small_server_ends + self.crowded_server_ends / 2
        return max(self.crashes + self.small_kills, server_ends) >= limits.SPARK_KILLS_OF_A_BATCH_MAX

    @property
    def on_probation(self) -> bool:
        """After a single kill from outside nothing is held against anybody."""
        seen = max(self.crashes + self.kills, self.server_ends)
        return seen >= limits.SPARK_KILLS_OF_A_BATCH_MAX - 1 or self.crashes > 0

    def again(
        self,
        batch: Batch,
        cause: str,
        at: float,
        *,
        crashes: int,
        kills: int,
        server_ends: int,
        is_small: bool,
        is_alone: bool,
    ) -> Suspicion:
        """After one more end. Batches on probation are small: the records of the first one stay suspect."""
        small_ends = server_ends if is_small else 0
        return replace(
            self,
            batch=self.batch if self.on_probation else batch,
            crashes=self.crashes + crashes,
            kills=self.kills + kills,
            server_ends=self.server_ends + server_ends,
            small_kills=self.small_kills + (kills if is_small else 0),
            small_server_ends=self.small_server_ends + (small_ends if is_alone else 0),
            crowded_server_ends=self.crowded_server_ends + (0 if is_alone else small_ends),
            cause=cause,
            at=at,
            cleared=None,
        )

    def after(self, done: Batch, positions: Positions) -> Suspicion | None:
        """What is left of it once a batch has succeeded: nothing where all its records have been evaluated."""
        suspect = self.batch
        if suspect.start is None or suspect.end is None or done.start is None or done.end is None:
            return None if suspect.place == done.place else self
        known = suspect.start if self.cleared is None else self.cleared
        try:
            if not positions.reached(known, done.start) or positions.reached(known, done.end):
                return self  # it begins further on, or ends before
            return None if positions.reached(done.end, suspect.end) else replace(self, cleared=done.end)
        except SqlError:  # of a topic that was made anew: they are not there any more
            return None

    def error(self, *, ahead: bool) -> IsolatedError:
        again = "try again later" if self.batch.source.startswith(READ) else "RESTART QUERY tries again"
        times = self.crashes + self.kills
        who = "Spark" if times >= self.server_ends else "the server"
        return IsolatedError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            f"{who} ended each time that {'it' if who == 'Spark' else 'Spark'} evaluated the next records",
            detail=f"It ended {max(times, self.server_ends)} times, the last time with this cause: {self.cause}. "
            "They are not evaluated again, so that other queries go on.",
            hint="Give Spark more memory (spark_driver_memory), or take away the record that is too much for it; then "
            f"{again}.",
            ahead=ahead,
        )


class IsolatedError(SqlError):
    """A batch is not evaluated, since Spark would end of it. ``ahead``: the records before those can be, in a smaller
    batch."""

    def __init__(self, sqlstate: str, message: str, *, detail: str, hint: str, ahead: bool) -> None:
        super().__init__(sqlstate, message, detail=detail, hint=hint)
        self.ahead = ahead


class Isolation:
    """Of one data directory. Safe for any number of threads."""

    def __init__(self, folder: Path) -> None:
        self._register = BatchRegister(folder / "batches")
        self._notes = folder / "suspects.json"
        self._lock = threading.Lock()
        self._turn = threading.Lock()  # of those on probation
        self._suspicions: dict[tuple[str, str], Suspicion] = _read(self._notes)
        if self._register.left:
            self._note(self._register.left, "the server ended", server_ends=1)
        elif self._register.was_killed:
            with self._lock:
                self._take_back()
                self._write()

    def begin(self) -> None:
        """The server has started."""
        self._register.use()

    # --- the JVM has ended ------------------------------------------------------------------------------------------
    def spark_ended(self, cause: str, *, crashed: bool) -> None:
        """Notes what was under way. ``crashed``: nobody but Spark's own work can have ended it."""
        self._note(self._register.under_way(), cause, crashes=int(crashed), kills=int(not crashed))

    def _note(
        self, batches: Sequence[Batch], cause: str, *, crashes: int = 0, kills: int = 0, server_ends: int = 0
    ) -> None:
        if not batches:
            return
        now = datetime.now(UTC)
        with self._lock:
            self._suspicions = {key: each for key, each in self._suspicions.items() if not each.is_over}
            tried = {
                each.batch.source for each in self._suspicions.values() if each.on_probation and not each.is_guilty
            }
            distinct = _distinct(batches)
            if server_ends and not any(batch.source in tried for batch in distinct):
                self._take_back()
            for batch in distinct:
                known = self._suspicions.get((batch.source, batch.place), Suspicion(batch))
                when = f"{cause}, {now:%Y-%m-%d %H:%M:%S} UTC"
                self._suspicions[(batch.source, batch.place)] = known.again(
                    batch, when, now.timestamp(), crashes=crashes, kills=kills, server_ends=server_ends,
                    is_small=batch.is_small or batch.source in tried, is_alone=len(distinct) == 1,
                )  # fmt: skip
                _log.warning("%s while a batch of %s was evaluated%s", cause, batch.source, _at(batch))
            self._write()

    def _take_back(self) -> None:
        """The server ended, and nothing suspect was under way: somebody else ends it. Under the lock."""
        for key, each in self._suspicions.items():
            if each.on_probation and not each.is_guilty:
                self._suspicions[key] = replace(each, small_server_ends=0, crowded_server_ends=0)

    # --- before and after a batch -----------------------------------------------------------------------------------
    def on_probation(self, source: str) -> bool:
        """Whether a source is to be evaluated alone and in small batches."""
        if not self._suspicions:
            return False
        with self._lock:
            return any(each.on_probation and not each.is_guilty for each in self._of(source))

    def is_suspect(self, source: str) -> bool:
        """Whether records of a source are suspect or refused."""
        if not self._suspicions:
            return False
        with self._lock:
            return any(each.on_probation or each.is_guilty for each in self._of(source))

    def check(self, source: str, positions: Positions, start: Position, end: Position) -> None:
        """55000 for a batch that has the records at which the JVM has ended too often."""
        if not self._suspicions:
            return
        with self._lock:
            guilty = [each for each in self._of(source) if each.is_guilty]
        for each in guilty:
            if each.batch.is_in(positions, start, end):
                began = each.batch.start
                raise each.error(ahead=began is not None and not positions.reached(start, began))

    @contextmanager
    def turn(self, source: str, stopped: Callable[[], bool]) -> Iterator[None]:
        """Of those on probation one at a time; the others pass."""
        if not self.on_probation(source):
            yield
            return
        while not self._turn.acquire(timeout=_TURN_S):
            if stopped():
                raise SqlError(sqlstates.QUERY_CANCELED, "the query is being stopped")
        try:
            yield
        finally:
            self._turn.release()

    @contextmanager
    def evaluating(
        self, source: str, positions: Positions, start: Position, end: Position, verdict: Callable[[Exception], None]
    ) -> Iterator[None]:
        """While a batch is evaluated. ``verdict`` returns, or raises what the failure is, when it is known whether the
        JVM has ended: until then the batch is under way."""
        batch = Batch.of(source, start, end, _records(positions, start, end))
        number = self._register.begin(batch)
        try:
            yield
        except Exception as error:
            verdict(error)
            raise
        else:
            self._succeeded(batch, positions)
        finally:
            self._register.end(number)

    def _succeeded(self, batch: Batch, positions: Positions) -> None:
        if not self._suspicions:
            return
        with self._lock:
            changed = False
            for key, each in list(self._suspicions.items()):
                left = each.after(batch, positions) if each.batch.source == batch.source else each
                if left is None:
                    del self._suspicions[key]
                else:
                    self._suspicions[key] = left
                changed = changed or left is not each
            if changed:
                self._write()

    def pardon(self, sources: Sequence[str]) -> None:
        """They are tried again as if nothing had happened."""
        if not self._suspicions:
            return
        with self._lock:
            gone = [key for key in self._suspicions if key[0] in sources]
            for key in gone:
                del self._suspicions[key]
            if gone:
                self._write()

    def close(self) -> None:
        """Of a server that ends in order, or gives up what is still evaluated: nobody is to blame for that."""
        self._register.close()

    def _of(self, source: str) -> Sequence[Suspicion]:
        return [each for each in self._suspicions.values() if each.batch.source == source and not each.is_over]

    def _write(self) -> None:
        """Whole or not at all."""
        text = json.dumps(
            [
                {
                    **each.batch.as_json(),
                    "crashes": each.crashes,
                    "kills": each.kills,
                    "server_ends": each.server_ends,
                    "small_kills": each.small_kills,
                    "small_server_ends": each.small_server_ends,
                    "crowded_server_ends": each.crowded_server_ends,
                    "cause": each.cause,
                    "at": each.at,
                    "cleared": each.cleared,
                }
                for each in self._suspicions.values()
            ]
        )
        aside = self._notes.with_suffix(".new")
        try:
            with aside.open("w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(self._notes)
        except OSError as error:  # a full disk: they are known until the server ends
            _log.warning("%s cannot be written: %s", self._notes, error.strerror)


def _distinct(batches: Sequence[Batch]) -> Sequence[Batch]:
    """Each place of a source once."""
    return list({(batch.source, batch.place): batch for batch in batches}.values())


def _read(notes: Path) -> dict[tuple[str, str], Suspicion]:
    try:
        known = json.loads(notes.read_text())
        found = [
            Suspicion(
                Batch.of_json(each),
                int(each["crashes"]),
                int(each["kills"]),
                int(each.get("server_ends", 0)),
                int(each.get("small_kills", 0)),
                int(each.get("small_server_ends", 0)),
                int(each.get("crowded_server_ends", 0)),
                str(each["cause"]),
                float(each["at"]),
                each.get("cleared"),
            )
            for each in known
        ]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("%s cannot be read, and is left out: %s", notes, error)
        return {}
    return {(each.batch.source, each.batch.place): each for each in found}


def _records(positions: Positions, start: Position, end: Position) -> int | None:
    try:
        return positions.distance(start, end)
    except SqlError:  # of a topic that was made anew: the evaluation says it
        return None


def _at(batch: Batch) -> str:
    return "" if batch.start is None else f" (from {json.dumps(batch.start)[:200]})"
