"""A directory as Spark reads it: Spark's own file source over *steps*.

Spark's file source keeps the names it has seen in its checkpoint, forgets old ones and orders files by time; none of
this survives the loss of a checkpoint. So a feeder shows it one step at a time: a directory of links to the files that
come next, made visible by one rename. A micro-batch is exactly one step, and the journal says which files that were.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import threading
import time
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.base import METADATA, Position, RecordOrder
from spark_sinks.decode.columns import parquet_column, quoted
from spark_sinks.file.files import VisibleFile, refuse_outside, visible_files
from spark_sinks.file.health import DirectoryHealth, changed, leads_out
from spark_sinks.file.journal import FileJournal
from spark_sinks.file.limits import FILE_RECORD_BYTES_MAX
from spark_sinks.file.lines import bounded_copy, lines, may_have_long_lines
from spark_sinks.file.metadata import METADATA_EXPRESSION, SPARK_TYPE
from spark_sinks.file.positions import BYTES_PER_RECORD, FilePositions, first_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_log = logging.getLogger(__name__)
_POLL_S = 0.05
_UNUSABLE_S = 5.0  # before a file that could not be looked through is looked through again
_SWEEP_S = 30.0  # how often all known files are looked at for changes
_TICK_NS = 10_000_000  # how coarse the time of a directory's last change may be: a second one may not show in it


class FileReader:
    """A :class:`spark_sinks.base.SourceReader` over one directory.

    Positions: ``{"seq": n}``, with ``"without": [names]`` while files that were there at CREATE are still to be left
    out. ``{"before": [...]}``, a store's answer, is turned into these by :meth:`adopt`.
    """

    rounds = logged = held = schemas = None

    def __init__(
        self,
        directory: Path,
        work: Path,
        parquet: StructType | None,
        *,
        root: Path | None = None,
        files_max: int | None = None,
        poll_s: float = _POLL_S,
        record_bytes_max: int = FILE_RECORD_BYTES_MAX,
    ) -> None:
        """``directory`` is resolved. No link is followed out of ``root``, which is the directory where it is not
        given."""
        self._directory = directory
        self._root = directory.resolve() if root is None else root
        self._files_max = files_max
        self._poll_s = poll_s
        self._record_bytes_max = record_bytes_max
        self._copies = work / "bounded"
        self._copying = threading.Lock()
        self._looked_through: dict[str, Path] = {}  # by name: what Spark reads
        self._unusable: dict[str, tuple[VisibleFile, float, SqlError]] = {}  # by name: until when, and why
        self._given_up = threading.Event()
        self._inbox = work / "inbox"
        self._next_step = work / "next-step"  # not in the inbox, where Spark's pattern finds hidden names as well
        work.mkdir(parents=True, exist_ok=True)
        self._parquet = parquet
        self._lock = threading.Condition()
        self._journal = FileJournal(work / "files.journal")
        self._feeder: threading.Thread | None = None
        self._stopping = False
        self._step = 0  # the last that was shown
        self._step_end = 0
        self._taken = True
        self._problem: str | None = None
        self._waiting: dict[str, VisibleFile] = {}  # by name, in the order in which they will be read
        self.positions = FilePositions(self._directory, self._journal, files_max)
        self.health = DirectoryHealth(
            self._directory, self._root, self._journal,
            problem=lambda: self._problem, look=self._end, typed=parquet is not None,
        )  # fmt: skip

    # --- positions --------------------------------------------------------------------------------------------------
    def adopt(self, position: Position, *, fresh: bool) -> Position:
        """A start as a position of this reader. In a fresh pipeline the files to leave out become its first entries;
        they stay that, where nothing was committed before it is made again."""
        if "before" not in position:
            return position
        left_out = list(position["before"])
        with self._lock:
            if fresh and len(self._journal) == 0 and left_out:
                wanted = set(left_out)
                self._journal.append([f for f in visible_files(self._directory, self._root) if f.name in wanted])
                self._look()
                return {"seq": len(self._journal)}
            if fresh and (known := self._journal.leading(set(left_out))):
                return {"seq": known}
        return {"seq": 0, "without": left_out} if left_out else {"seq": 0}

    def restart_at(self, position: Position) -> None:
        """The ledger's position: what the journal has beyond it was never committed."""
        seq = int(position["seq"])
        with self._lock:
            cut = {file.name: file for file in self._journal.between(seq, len(self._journal))}
            self._journal.truncate(seq)
            self._waiting = cut | self._waiting

    def confirm(self, position: Position) -> None:
        """A directory has no identity beyond its files, which the journal knows one by one."""

    # --- Spark ------------------------------------------------------------------------------------------------------
    @contextmanager
    def stream(self, spark: SparkSession, start: Position, *, records_per_trigger: int) -> Iterator[DataFrame]:
        self._stop_feeder()
        self.restart_at(start)
        shutil.rmtree(self._inbox, ignore_errors=True)
        (self._inbox / _step_name(0)).mkdir(parents=True)
        self._stopping, self._taken, self._step, self._step_end = False, True, 0, int(start["seq"])
        self._feeder = threading.Thread(
            target=self._feed, args=(records_per_trigger * BYTES_PER_RECORD,), name="file-feeder", daemon=True
        )
        self._feeder.start()
        # The files are those of the step, however old: nothing is dropped for its age.
        reader = spark.readStream.option("maxFileAge", "36500d")
        steps = f"{self._inbox}/*"
        try:
            if self._parquet is not None:
                yield self._raw(reader.schema(self._parquet).parquet(steps))
            else:
                yield self._raw(reader.format("text").load(steps))
        finally:
            self._stop_feeder()

    def batch(self, spark: SparkSession, start: Position, end: Position) -> DataFrame:
        left_out = set(start.get("without", ()))
        entries = [e for e in self._journal.between(int(start["seq"]), int(end["seq"])) if e.name not in left_out]
        for entry in entries:
            self.health.check_unchanged(entry)
        paths = [str(self._readable(entry, self._given_up.is_set)) for entry in entries]
        if self._given_up.is_set():  # then it is not known what Spark may read
            raise SqlError(sqlstates.QUERY_CANCELED, "the query is being stopped")
        if self._parquet is not None:
            frame = (
                spark.read.schema(self._parquet).parquet(*paths) if paths else spark.createDataFrame([], self._parquet)
            )
            return self._raw(frame) if paths else frame.selectExpr(*self._parquet_columns(), *_EMPTY_RAW)
        if not paths:
            return spark.createDataFrame([], "value string").selectExpr(*_EMPTY_RAW)
        return self._raw(spark.read.text(paths))

    def _raw(self, frame: DataFrame) -> DataFrame:
        meta = (
            "_metadata.file_name AS position",
            "_metadata.file_modification_time AS record_time",
            f"{METADATA_EXPRESSION} AS {METADATA}",
        )
        if self._parquet is not None:
            return frame.selectExpr(
                *self._parquet_columns(), "cast(NULL as binary) AS key", "cast(NULL as binary) AS value", *meta
            )
        # A blank line is no record.
        return frame.where("length(trim(value)) > 0").selectExpr(
            "cast(NULL as binary) AS key", "cast(value as binary) AS value", *meta
        )

    def _parquet_columns(self) -> list[str]:
        names = [] if self._parquet is None else self._parquet.names
        return [f"{quoted(name)} AS {parquet_column(name)}" for name in names]

    def batch_end(self, checkpoint: str, batch_id: int, start: Position) -> Position:
        """The step that this micro-batch reads; the feeder may show the next one. The step before goes now: while a
        batch is under way Spark does not list the inbox, in which nothing must go meanwhile."""
        with self._lock:
            shutil.rmtree(self._inbox / _step_name(self._step - 1), ignore_errors=True)
            self._taken = True
            self._lock.notify_all()
            return {"seq": self._step_end}

    def give_up(self) -> None:
        self._given_up.set()

    def close(self) -> None:
        self._stop_feeder()
        self._given_up.clear()

    def _stop_feeder(self) -> None:
        feeder = self._feeder
        if feeder is None:
            return
        with self._lock:
            self._stopping = True
            self._lock.notify_all()
        feeder.join()
        self._feeder = None

    # --- the feeder -------------------------------------------------------------------------------------------------
    def _feed(self, bytes_max: int) -> None:
        try:
            self._show_steps(bytes_max)
        except Exception as error:  # noqa: BLE001 - else the source would stand still without a cause
            _log.exception("the feeder of directory %s has ended", self._directory)
            self._problem = f"!reading directory {self._directory} failed: {type(error).__name__}: {words_of(error)}"

    def _show_steps(self, bytes_max: int) -> None:
        seen_mtime, since_sweep = -1, 0.0
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._taken or self._stopping, timeout=_SWEEP_S)
                if self._stopping:
                    return
                if not self._taken:
                    continue
            try:
                mtime = self._directory.stat().st_mtime_ns
                if mtime != seen_mtime:
                    settled = time.time_ns() - mtime > _TICK_NS
                    self._look()
                    seen_mtime = mtime if settled else -1
                if since_sweep >= _SWEEP_S:
                    since_sweep = 0.0
                    self._sweep()
            except SqlError as error:
                if error.sqlstate != sqlstates.INSUFFICIENT_PRIVILEGE:
                    self._problem = f"!{error}"
                    return
                self._problem, seen_mtime = leads_out(error, self._directory), -1
            except OSError as error:
                self._problem = f"directory {self._directory} cannot be read: {error.strerror}"
                seen_mtime = -1
            else:
                try:
                    self._problem = self._show_next(bytes_max) if self._waiting else None
                except SqlError as error:
                    self._problem = f"!{error}"
                    return
            if self._problem is not None or self._taken:  # no step is shown
                with self._lock:
                    self._lock.wait_for(lambda: self._stopping, timeout=self._poll_s)
                since_sweep += self._poll_s

    def _look(self) -> None:
        """New files wait behind those that were seen before, whatever their times say: so the n-th file of the journal
        is known as soon as n files have been seen, and the source's end can be told before it is read."""
        with self._lock:
            there = {file.name: file for file in visible_files(self._directory, self._root, self._journal.names)}
            self._waiting = {name: there[name] for name in self._waiting if name in there} | there

    def _end(self) -> Position:
        """Of all files that there are now."""
        with self._lock:
            self._look()
            return {"seq": len(self._journal) + len(self._waiting)}

    def _show_next(self, bytes_max: int) -> str | None:
        """What hinders it: files that are not shown go on waiting."""
        try:
            with self._lock:
                following = first_files(self._waiting.values(), bytes_max, self._files_max)
            # may take long, and nobody is to wait for it
            paths = {file: self._readable(file, lambda: self._stopping) for file in following}
            with self._lock:
                following = [file for file in following if self._waiting.get(file.name) == file]
                if following and not self._stopping:
                    self._show({file: paths[file] for file in following})
        except SqlError as error:
            return leads_out(error, self._directory)
        except OSError as error:
            reason = error.strerror or words_of(error)
            return f"files of directory {self._directory} cannot be handed to Spark: {reason}"
        return None

    def _readable(self, file: VisibleFile, stopped: Callable[[], bool] = lambda: False) -> Path:
        """What Spark reads for a file: itself, or a copy in which marks stand for the lines that are too long. Whoever
        is ``stopped`` uses it for nothing, and so need not know. Raises SqlError (58030) for a file that cannot be
        looked through; it is not tried again at once."""
        original, copy = self._directory / file.name, self._copies / file.name
        if self._parquet is not None or not may_have_long_lines(file.name, file.size, self._record_bytes_max):
            return original
        refuse_outside(original, self._root)
        with self._copying:
            known = self._looked_through.get(file.name)
            if known is None or not known.exists():
                self._refuse_unusable(file)
                try:
                    made = bounded_copy(original, copy, self._record_bytes_max, stopped)
                except SqlError as error:
                    self._unusable[file.name] = file, time.monotonic() + _UNUSABLE_S, error
                    raise
                known = copy if made else original
                if not stopped():
                    self._looked_through[file.name] = known
            return known

    def _refuse_unusable(self, file: VisibleFile) -> None:
        found = self._unusable.get(file.name)
        if found is None:
            return
        known, until, error = found
        if known == file and time.monotonic() < until:
            raise error.with_traceback(None)
        del self._unusable[file.name]

    def _show(self, files: Mapping[VisibleFile, Path]) -> None:
        """``files`` and what Spark reads for each."""
        step, known = self._step + 1, len(self._journal)
        aside = self._next_step
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        for file, readable in files.items():
            if readable.parent == self._directory:
                self._link(file.name, aside)
            else:
                (aside / file.name).symlink_to(readable)
        self._journal.append(list(files))
        try:
            aside.rename(self._inbox / _step_name(step))
        except OSError:
            self._journal.truncate(known)
            raise
        for file in files:
            del self._waiting[file.name]
        self._taken = False
        self._step, self._step_end = step, len(self._journal)

    def _link(self, name: str, aside: Path) -> None:
        """Of the file itself where the file system allows it: nothing that is put in its place later is read. Else a
        link to where it is now."""
        path = self._directory / name
        refuse_outside(path, self._root)
        try:
            os.link(path, aside / name, follow_symlinks=False)
        except OSError:  # another file system, or the owner's alone
            (aside / name).symlink_to(path.resolve())
            return
        if not stat.S_ISREG((aside / name).lstat().st_mode):  # the link of a link
            (aside / name).unlink()
            (aside / name).symlink_to(path.resolve())

    def _sweep(self) -> None:
        for file in visible_files(self._directory, self._root):
            known = self._journal.names.get(file.name)
            if known is not None and known != file:
                raise changed(file.name, self._directory)

    @property
    def record_order(self) -> RecordOrder:
        # Spark reads the lines of a file in their order, and counts a task's records.
        return RecordOrder("position", "monotonically_increasing_id()")

    def rejected_positions(self, records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
        """File and line: Spark's text source does not say which line, so each file is looked through once. Equal lines
        of a file are taken in their order."""
        records = [(unquote(name), raw) for name, raw in records]
        places: dict[str, dict[bytes, list[int]]] = {}
        if self._parquet is None:
            for name in {position for position, _ in records}:
                places[name] = self._line_numbers(name, {raw for at, raw in records if at == name and raw is not None})
        answers: list[str] = []
        for ordinal, (name, raw) in enumerate(records):
            numbers = places.get(name, {}).get(raw or b"", [])
            answers.append(f"{name}:{numbers.pop(0)}" if numbers else f"{name}:#{ordinal}")
        return answers

    def _line_numbers(self, name: str, wanted: Collection[bytes]) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {line: [] for line in wanted}
        longest = max((len(line) for line in found), default=0)
        try:
            path = self._directory / name
            refuse_outside(path, self._root)
            read = lines(self._looked_through.get(name, path), longest + len(BOM_UTF8))
            for number, (line, _) in enumerate(read, start=1):
                # as Spark does: the mark of the byte order is no part of the first line
                places = found.get((line.removeprefix(BOM_UTF8) if number == 1 else line)[:longest])
                if places is not None:
                    places.append(number)
        except (OSError, EOFError, zlib.error, SqlError) as error:
            _log.warning("cannot look for rejected lines in %s: %s", name, error)
        return found


_EMPTY_RAW = (
    "cast(NULL as binary) AS key",
    "cast(NULL as binary) AS value",
    "cast(NULL as string) AS position",
    "cast(NULL as timestamp) AS record_time",
    f"cast(NULL AS {SPARK_TYPE}) AS {METADATA}",
)


def _step_name(step: int) -> str:
    return f"{step:012d}"
