"""Sources whose batch ends Spark's JVM again and again are set aside, so that it comes up for the others.

What was under way when the JVM ended is suspect. Suspects are evaluated one at a time from then on, and in smaller
batches, until one of theirs succeeds. A batch at which the JVM has ended twice is refused: its queries fail, and
``RESTART QUERY`` gives it another trial. Suspicions are written down when the JVM ends, and outlive the server.
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
from mvserver.streaming.batch_register import Batch, BatchRegister
from spark_sinks.base import Position, Positions

_log = logging.getLogger(__name__)

READ = "read:"  # begins the source of a read for a statement
_TURN_S = 0.25


@dataclass(frozen=True)
class Suspicion:
    """``crashes``: ends of the JVM by itself; ``kills``: those that somebody else may have caused."""

    batch: Batch
    crashes: int = 0
    kills: int = 0
    cause: str = ""
    at: float = 0.0  # when it was last noted, as seconds since 1970

    @property
    def is_over(self) -> bool:
        """A read for a statement is tried again after a while: nobody else can say that it may."""
        return self.batch.source.startswith(READ) and time.time() - self.at > limits.SPARK_READ_REFUSED_S

    @property
    def is_guilty(self) -> bool:
        whole = self.crashes + self.kills
        return self.crashes >= limits.SPARK_CRASHES_OF_A_BATCH_MAX or whole >= limits.SPARK_KILLS_OF_A_BATCH_MAX

    @property
    def on_probation(self) -> bool:
        """After a single kill from outside nothing is held against anybody."""
        return self.crashes + self.kills >= limits.SPARK_KILLS_OF_A_BATCH_MAX - 1 or self.crashes > 0

    def error(self) -> IsolatedError:
        again = "try again later" if self.batch.source.startswith(READ) else "RESTART QUERY tries again"
        return IsolatedError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            "Spark ended each time that it evaluated the next records",
            detail=f"It ended {self.crashes + self.kills} times, the last time with this cause: {self.cause}. "
            "They are not evaluated again, so that other queries go on.",
            hint="Give Spark more memory (spark_driver_memory), or take away the record that is too much for it; then "
            f"{again}.",
        )


class IsolatedError(SqlError):
    """A batch is not evaluated, since Spark would end of it."""


class Isolation:
    """Of one data directory. Safe for any number of threads."""

    def __init__(self, folder: Path) -> None:
        self._register = BatchRegister(folder / "batches")
        self._notes = folder / "suspects.json"
        self._lock = threading.Lock()
        self._turn = threading.Lock()  # of those on probation
        self._suspicions: dict[tuple[str, str], Suspicion] = _read(self._notes)
        self._note(self._register.left, "the server ended", crashed=False)

    # --- the JVM has ended ------------------------------------------------------------------------------------------
    def spark_ended(self, cause: str, *, crashed: bool) -> None:
        """Notes what was under way. ``crashed``: nobody but Spark's own work can have ended it."""
        self._note(self._register.under_way(), cause, crashed=crashed)

    def _note(self, batches: Sequence[Batch], cause: str, *, crashed: bool) -> None:
        if not batches:
            return
        now = datetime.now(UTC)
        with self._lock:
            for batch in set_of(batches):
                known = self._suspicions.get((batch.source, batch.place), Suspicion(batch))
                noted = replace(
                    known,
                    crashes=known.crashes + crashed,
                    kills=known.kills + (not crashed),
                    cause=f"{cause}, {now:%Y-%m-%d %H:%M:%S} UTC",
                    at=now.timestamp(),
                )
                self._suspicions[(batch.source, batch.place)] = noted
                _log.warning("%s while a batch of %s was evaluated%s", cause, batch.source, _at(batch))
            self._write()

    # --- before and after a batch -----------------------------------------------------------------------------------
    def on_probation(self, source: str) -> bool:
        """Whether a source is to be evaluated alone and in small batches."""
        if not self._suspicions:
            return False
        with self._lock:
            return any(each.on_probation and not each.is_guilty for each in self._of(source))

    def check(self, source: str, positions: Positions, start: Position, end: Position) -> None:
        """55000 for a batch that has the records at which the JVM has ended too often."""
        if not self._suspicions:
            return
        with self._lock:
            guilty = [each for each in self._of(source) if each.is_guilty]
        for each in guilty:
            if each.batch.is_in(positions, start, end):
                raise each.error()

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
    def evaluating(self, source: str, start: Position, verdict: Callable[[Exception], None]) -> Iterator[None]:
        """While a batch is evaluated. ``verdict`` returns, or raises what the failure is, when it is known whether the
        JVM has ended: until then the batch is under way."""
        batch = Batch.of(source, start)
        number = self._register.begin(batch)
        try:
            yield
        except Exception as error:
            verdict(error)
            raise
        else:
            self._succeeded(batch)
        finally:
            self._register.end(number)

    def _succeeded(self, batch: Batch) -> None:
        if not self._suspicions:
            return
        with self._lock:
            if self._suspicions.pop((batch.source, batch.place), None) is not None:
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
        """Of a server that ends in order."""
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
                    "cause": each.cause,
                    "at": each.at,
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


def set_of(batches: Sequence[Batch]) -> Sequence[Batch]:
    """Each place of a source once."""
    return list({(batch.source, batch.place): batch for batch in batches}.values())


def _read(notes: Path) -> dict[tuple[str, str], Suspicion]:
    try:
        known = json.loads(notes.read_text())
        found = [
            Suspicion(
                Batch(str(each["source"]), str(each["place"]), each["start"]),
                int(each["crashes"]),
                int(each["kills"]),
                str(each["cause"]),
                float(each["at"]),
            )
            for each in known
        ]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("%s cannot be read, and is left out: %s", notes, error)
        return {}
    return {(each.batch.source, each.batch.place): each for each in found}


def _at(batch: Batch) -> str:
    return "" if batch.start is None else f" (from {json.dumps(batch.start)[:200]})"
