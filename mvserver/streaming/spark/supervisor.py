"""Spark's supervisor: starts it in the background, watches it, and starts it again when it has ended or hangs.

Whoever needs Spark waits here, and learns the cause when it does not come. A session is of one life of Spark: what is
made of it ends with it, and is made again from the next one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from mvserver import limits, sqlstates
from mvserver.errors import SqlError, words_of
from mvserver.spark_jvm import JvmStartError
from mvserver.streaming.spark.isolation import Isolation
from mvserver.streaming.spark.options import SparkOptions
from mvserver.streaming.spark.process import SHUTTING_DOWN, SparkProcess
from mvserver.streaming.spark.pyspark_state import has_stopped, is_dying, is_gateway_error
from mvserver.streaming.spark.session import START_HINT
from mvserver.streaming.spark.state import SparkLostError, SparkState

_log = logging.getLogger(__name__)

_PAUSES_S = (0.0, 1.0, 2.0, 5.0, 10.0)  # before a start, by how many lives were short
_LOOK_S = 0.5
_ANSWERS = 2  # behind a failed call: the first of them may be to a question of before
_ANSWERS_DYING = 4  # where the error says that the JVM is about to end
_WENT_ON = "_spark_went_on"  # in an error of which that is known
_SESSION_LOOK_S = 0.25  # how soon somebody who waits for a session sees that it is to stop


@dataclass(frozen=True)
class Supervision:
    """``restarts_max``: how often Spark is started again within an hour. ``answer_timeout_s``: after so long without an
    answer it is ended and started again; 0 waits for ever."""

    restarts_max: int
    answer_timeout_s: float


class SparkSupervisor:
    """One thread that owns Spark. ``isolation`` learns what was evaluated when Spark ended."""

    def __init__(
        self,
        options: SparkOptions,
        supervision: Supervision,
        isolation: Isolation,
        make: Callable[[SparkOptions, Callable[[], None]], SparkProcess] = SparkProcess,
    ) -> None:
        self._options = options
        self._supervision = supervision
        self._isolation = isolation
        self._make = make
        self._changed = threading.Condition()
        self._session: SparkSession | None = None
        self._process: SparkProcess | None = None
        self._state = SparkState(starting=True)
        self._problem: SqlError | None = None
        self._waits_long = False  # all starts of this hour are used up, so that nobody waits for the next one
        self._stopped = False
        self._restarts: deque[float] = deque()  # when Spark was started again
        self._last_end = ""
        self._thread: threading.Thread | None = None

    # --- asked by everybody -----------------------------------------------------------------------------------------
    @property
    def state(self) -> SparkState:
        return self._state

    @property
    def executor_cores(self) -> int:
        """Task slots on other machines, as of a second ago; 0 where Spark is local, or has not begun."""
        process = self._process
        return 0 if process is None else process.executor_cores

    def is_current(self, session: SparkSession) -> bool:
        """Whether the session's life of Spark goes on, as far as is known."""
        return self._session is session

    def wait(self, timeout_s: float) -> None:
        """Until Spark can compute: 57P03 when that is not within this time, 58000 where waiting does not help."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_well() or self._is_hopeless(), timeout_s)
            if self._is_well():
                return
            if self._problem is not None:
                raise self._problem
            raise self._unavailable()

    def session(self, given_up: Callable[[], bool] = lambda: False) -> SparkSession:
        """Waits as long as it takes, or until ``given_up``."""
        with self._changed:
            while True:
                if self._stopped:
                    raise SqlError(sqlstates.ADMIN_SHUTDOWN, SHUTTING_DOWN)
                if given_up():
                    raise SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")
                if self._problem is not None:
                    raise self._problem
                if self._session is not None and self._state == SparkState():
                    return self._session
                self._changed.wait(_SESSION_LOOK_S)

    def lost(self, session: SparkSession | None, error: BaseException) -> SparkLostError | None:
        """Whether a call failed since its Spark has ended. A call may fail a moment before that is known: then this
        waits until the JVM has ended, or has answered often enough to show that it goes on."""
        if session is None:
            return None
        if isinstance(error, SparkLostError):
            return error
        if self.is_current(session) and _WENT_ON not in error.__dict__:
            stopped = has_stopped(session)  # this asks the JVM, so not under the lock
            dying = is_dying(error) or stopped is True
            if dying or stopped is None or is_gateway_error(error):
                answers, timeout_s = (
                    _ANSWERS_DYING if dying else _ANSWERS,
                    limits.SPARK_DYING_S if dying else limits.SPARK_NOTICED_S,
                )
                self._await_end(session, answers, timeout_s)
        with self._changed:
            if self.is_current(session):
                error.__dict__[_WENT_ON] = True
                return None
            return SparkLostError(self._last_end or "Spark has ended")

    def _await_end(self, session: SparkSession, answers: int, timeout_s: float) -> None:
        """Until the session's Spark has ended, has answered so many questions from now on, or the time is over."""
        with self._changed:
            process = self._process
            enough = answers + (0 if process is None else process.answers)
            deadline = time.monotonic() + timeout_s
            while self.is_current(session) and process is not None and process.answers < enough:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return
                self._changed.wait(min(left_s, _LOOK_S))

    def _is_well(self) -> bool:
        return self._session is not None and self._state == SparkState()

    def _is_hopeless(self) -> bool:
        return self._problem is not None or self._stopped or self._waits_long

    def _unavailable(self) -> SqlError:
        if self._stopped:
            return SqlError(sqlstates.ADMIN_SHUTDOWN, SHUTTING_DOWN)
        if self._waits_long:
            return SqlError(
                sqlstates.SYSTEM_ERROR,
                "Spark has ended too often",
                detail=f"{self._state.interruption}.",
                hint=f"{START_HINT} Restarting the server starts Spark at once. Existing views can be read meanwhile.",
            )
        hint = "Try again in a few seconds. Existing views can be read meanwhile."
        if self._state.interruption is None:
            return SqlError(sqlstates.CANNOT_CONNECT_NOW, "Spark is still starting", hint=hint)
        return SqlError(
            sqlstates.CANNOT_CONNECT_NOW,
            "Spark is not available at the moment",
            detail=f"{self._state.interruption}.",
            hint=hint,
        )

    # --- life -------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="spark", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Returns when Spark has ended."""
        with self._changed:
            self._stopped = True
            process = self._process
            self._changed.notify_all()
        if process is not None:
            process.stop()
        if self._thread is not None:
            self._thread.join()
        if process is not None:
            process.forget()

    def abandon(self) -> None:
        """Before the server gives up: a JVM that hangs would outlive it."""
        with self._changed:
            self._stopped = True
            process = self._process
        if process is not None:
            process.kill(SHUTTING_DOWN)
            process.ended.wait(limits.SPARK_REAPED_S)  # what takes this process's place would have a zombie

    def _news(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _set(self, state: SparkState, *, session: SparkSession | None = None, waits_long: bool = False) -> None:
        with self._changed:
            self._state, self._session, self._waits_long = state, session, waits_long
            self._changed.notify_all()

    # --- the thread -------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            self._supervise()
        except Exception as error:  # noqa: BLE001 - whatever it is, who waits for Spark has to know
            _log.exception("Spark is not looked after any more")
            self._problem = SqlError(
                sqlstates.SYSTEM_ERROR,
                "Spark is not started again",
                detail=f"Its supervision has failed: {words_of(error)}.",
                hint="Restart the server. Existing views can be read meanwhile.",
            )
            self._set(SparkState(problem=str(self._problem)))

    def _supervise(self) -> None:
        attempt = 1  # of starts, since Spark was up last
        short_lives = 0
        was_up = False
        while not self._stopped:
            began = time.monotonic()
            process = self._make(self._options, self._news)
            with self._changed:
                self._process = process
                if self._stopped:  # by somebody who did not see it
                    break
            failure = self._start(process, began)
            if failure is None:
                was_up, attempt = True, 0
                self._watch(process)
                self._last_end = f"Spark ended ({process.end})"
            else:
                self._last_end = f"Spark ended while it was starting ({failure.message})"
            if self._stopped:
                break
            self._note_end(process, failure, was_up=was_up)
            if self._problem is not None:
                break
            short_lives = 0 if time.monotonic() - began > limits.SPARK_LASTED_S else short_lives + 1
            attempt += 1
            self._pause(short_lives, attempt)
        with self._changed:
            self._session = None
            self._changed.notify_all()

    def _start(self, process: SparkProcess, began: float) -> _StartFailure | None:
        """None when it is up."""
        deadline = threading.Timer(
            limits.SPARK_START_S, lambda: process.kill(f"it was not up within {limits.SPARK_START_S:g} s")
        )
        deadline.daemon = True
        deadline.start()
        try:
            session = process.start()
        except JvmStartError as error:
            return _StartFailure(str(error), error.signal is not None)
        except SqlError as error:
            return _StartFailure((error.detail or error.message).rstrip("."), is_gateway_error(error), error)
        except Exception as error:  # noqa: BLE001 - shown to whoever waits for Spark
            if not process.ended.is_set() and not is_gateway_error(error):
                _log.exception("Spark could not be started")
            return _StartFailure(f"{type(error).__name__}: {words_of(error)}", is_gateway_error(error))
        finally:
            deadline.cancel()
        _log.info("Spark %s is ready after %.1f s", session.version, time.monotonic() - began)
        self._set(SparkState(), session=session)
        return None

    def _watch(self, process: SparkProcess) -> None:
        """Until it has ended, by itself or by this thread, or is to stop."""
        timeout_s = self._supervision.answer_timeout_s
        while not process.ended.is_set() and not self._stopped:
            if process.broken is not None:
                self._set(
                    SparkState(interruption=f"Spark does not answer any more: {process.broken}"),
                    session=process.session,
                )
                if not process.ended.wait(limits.SPARK_ENDING_S):  # it may just be ending, and then that is the cause
                    process.kill(process.broken)
                    process.ended.wait()
                return
            silent_s = process.silent_s
            if timeout_s and silent_s > timeout_s:
                process.kill(f"it had not answered for {timeout_s:g} s")
                process.ended.wait()
                return
            state = self._silence(process, silent_s) if silent_s > limits.SPARK_SILENT_S else SparkState()
            if state != self._state:
                if (state == SparkState()) != (self._state == SparkState()):
                    _log.warning("%s", state.interruption or "Spark answers again")
                self._set(state, session=process.session)
            with self._changed:
                self._changed.wait_for(lambda: process.ended.is_set() or self._stopped, _LOOK_S)

    def _silence(self, process: SparkProcess, silent_s: float) -> SparkState:
        why = "its process is stopped" if process.is_stopped else "its process is there"
        limit_s = self._supervision.answer_timeout_s
        then = f", and is ended and started again after {limit_s:g} s" if limit_s else ""
        return SparkState(interruption=f"Spark has not answered for {silent_s:.0f} s ({why}){then}")

    def _note_end(self, process: SparkProcess, failure: _StartFailure | None, *, was_up: bool) -> None:
        """First the words for those whose calls fail, then what was under way, then nothing of that Spark is left."""
        _log.warning("%s", self._last_end)
        if failure is None and process.crashed is not None:
            self._isolation.spark_ended(self._last_end, crashed=process.crashed)
        if failure is not None and not was_up and not failure.passes:
            self._give_up(failure)
        elif self._supervision.restarts_max == 0:
            self._problem = SqlError(
                sqlstates.SYSTEM_ERROR,
                "Spark has ended and is not started again",
                detail=f"{self._last_end}. The setting spark_restarts is 0.",
                hint="Restart the server. Existing views can be read meanwhile.",
            )
            self._set(SparkState(problem=str(self._problem)))
        else:
            self._set(SparkState(interruption=self._last_end))
        if failure is not None:
            process.kill("it could not be started")
        try:
            process.forget()
        except Exception:  # noqa: BLE001 - what is left of it hinders the next one less than none would
            _log.exception("not all of the former Spark was let go of")

    def _give_up(self, failure: _StartFailure) -> None:
        """It has never been up: what hinders it is a matter of the installation or the settings."""
        self._problem = failure.error or SqlError(
            sqlstates.SYSTEM_ERROR, "Spark could not be started", detail=f"{failure.message}.", hint=START_HINT
        )
        _log.error("%s", self._problem)
        self._set(SparkState(problem=str(self._problem)))

    def _pause(self, short_lives: int, attempt: int) -> None:
        """Until the next start is due."""
        now, period_s = time.monotonic(), limits.SPARK_RESTARTS_PERIOD_S
        while self._restarts and self._restarts[0] < now - period_s:
            self._restarts.popleft()
        pause_s = _PAUSES_S[min(max(short_lives - 1, 0), len(_PAUSES_S) - 1)]
        used_up = len(self._restarts) >= self._supervision.restarts_max
        if used_up:
            pause_s = max(pause_s, self._restarts[0] + period_s - now)
        at = datetime.now(UTC) + timedelta(seconds=pause_s)
        often = f"; it was started again {len(self._restarts)} times within an hour" if used_up else ""
        if pause_s:
            due = f"{self._last_end}{often}; it is started again at {at:%H:%M:%S} UTC, attempt {attempt}"
            _log.warning("%s", due)
            self._set(SparkState(interruption=due), waits_long=used_up)
            with self._changed:
                self._changed.wait_for(lambda: self._stopped, pause_s)
        self._restarts.append(time.monotonic())
        self._set(SparkState(interruption=f"{self._last_end}; it is being started again, attempt {attempt}"))


@dataclass(frozen=True)
class _StartFailure:
    """``passes``: the JVM was ended from outside, so that another start may go well."""

    message: str
    passes: bool
    error: SqlError | None = None
