"""The files of an entity as Spark reads them: Spark's own file source over *steps*.

Spark's file source keeps the names it has seen in its checkpoint, forgets old ones and orders files by time; none of
this survives the loss of a checkpoint. So a feeder shows it one step at a time: a directory of links to the files that
come next, or of copies of them, made visible by one rename. A micro-batch is exactly one step, and the journal says
which files that were.
"""

from __future__ import annotations

import logging
import re
import shutil
import tempfile
import threading
import time
import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.base import METADATA, Position, RecordOrder
from spark_sinks.decode.columns import parquet_column, quoted
from spark_sinks.file.entity_files import EntityFiles, changed, gone, not_read, put_link, put_moved
from spark_sinks.file.files import VisibleFile
from spark_sinks.file.health import FilesHealth
from spark_sinks.file.journal import FileJournal
from spark_sinks.file.limits import FILE_RECORD_BYTES_MAX
from spark_sinks.file.lines import lines
from spark_sinks.file.metadata import CHANGED, OF_FILE, SPARK_TYPE, metadata_of, name_of
from spark_sinks.file.positions import BYTES_PER_RECORD, FilePositions, first_files
from spark_sinks.file.readable import ReadableFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_log = logging.getLogger(__name__)
_POLL_S = 0.05
_SWEEP_S = 30.0  # how often all known files are looked at for changes
_JUST_NOW_S = 10.0  # so long a statement may take from its look at the files to the query that begins with it
_PATTERN = re.compile(r"([\\*?{}\[\]])")  # what Spark's paths have besides names


class FileReader:
    """A :class:`spark_sinks.base.SourceReader` over the files of one entity.

    Positions: ``{"seq": n}``, with ``"without": [names]`` while files that were there at CREATE are still to be left
    out. ``{"before": [...]}``, a store's answer, is turned into these by :meth:`adopt`; with the moment ``"at"`` where
    the query begins with the latest files.
    """

    rounds = logged = held = schemas = live = None

    def __init__(
        self,
        files: EntityFiles,
        work: Path,
        parquet: StructType | None,
        *,
        files_max: int | None = None,
        poll_s: float = _POLL_S,
        record_bytes_max: int = FILE_RECORD_BYTES_MAX,
        format: str = "",  # noqa: A002 - the field's word
    ) -> None:
        """``parquet`` is the schema of files that Spark types itself, and ``format`` says which form they have."""
        self._files = files
        self._files_max = files_max
        self._poll_s = poll_s
        self._given_up = threading.Event()
        self._copies = work / "bounded"
        self._rounds = work / "rounds"  # copies for batches beside the stream, a folder for each thread
        self._inbox = work / "inbox"
        self._next_step = work / "next-step"  # not in the inbox, where Spark's pattern finds hidden names as well
        self._next_files = work / "next-files"  # copies of files that are to be shown
        work.mkdir(parents=True, exist_ok=True)
        self._parquet = parquet
        self._readable = ReadableFiles(files, self._copies, parquet, record_bytes_max, format=format)
        self._name = name_of((self._copies, 0), (self._rounds, 2), (self._inbox, 1), (files.here, 0))
        self._looking = threading.Lock()  # before the other one
        self._lock = threading.Condition()
        self._journal = FileJournal(work / "files.journal")
        self._cuts = 0  # how often the journal was cut
        self._feeder: threading.Thread | None = None
        self._stopping = False
        self._step = 0  # the last that was shown
        self._step_end = 0
        self._round = 0
        self._taken = True
        self._problem: str | None = None
        self._waiting: dict[str, VisibleFile] = {}  # by name, in the order in which they will be read
        self.positions = FilePositions(files.is_there, self._journal, files_max)
        self.health = FilesHealth(
            files, self._journal, problem=lambda: self._problem, look=self._end, typed=parquet is not None
        )

    # --- positions --------------------------------------------------------------------------------------------------
    def adopt(self, position: Position, *, fresh: bool) -> Position:
        """A start as a position of this reader. In a fresh pipeline the files to leave out become its first entries;
        they stay that, where nothing was committed before it is made again. Else what others have read and was gone by
        then is left out, too; of a start that is made again later it is not known when it went."""
        if "before" not in position:
            return position
        left_out = list(position["before"])
        if fresh and len(self._journal) == 0 and left_out:  # nothing reads yet
            wanted = set(left_out)
            there = [f for f in self._files.look() if f.name in wanted]
            with self._lock:
                self._journal.append(there)
            self._look()
            return {"seq": len(self._journal)}
        with self._lock:
            if fresh and (known := self._journal.leading(set(left_out))):
                return {"seq": known}
            journaled = list(self._journal.names)
        if abs(time.time() - position.get("at", 0.0)) < _JUST_NOW_S:
            left_out += self._gone_before(set(left_out), journaled)
        return {"seq": 0, "without": left_out} if left_out else {"seq": 0}

    def _gone_before(self, listed: Container[str], journaled: Sequence[str]) -> Sequence[str]:
        """Files that others have read, and that were gone when the ``listed`` ones were there. What others read during
        the look, which no batch waits for, may have come behind it and is none of them."""
        unlisted = [name for name in journaled if name not in listed]
        there = {file.name for file in self._files.look()} if unlisted else set()
        return [name for name in unlisted if name not in there]

    def restart_at(self, position: Position) -> None:
        """The ledger's position: what the journal has beyond it was never committed."""
        seq = int(position["seq"])
        with self._lock:
            cut = {file.name: file for file in self._journal.between(seq, len(self._journal))}
            self._journal.truncate(seq)
            self._waiting = cut | self._waiting
            self._cuts += 1

    def confirm(self, position: Position) -> None:
        """An entity has no identity beyond its files, which the journal knows one by one."""

    # --- Spark ------------------------------------------------------------------------------------------------------
    @contextmanager
    def stream(self, spark: SparkSession, start: Position, *, records_per_trigger: int) -> Iterator[DataFrame]:
        self._stop_feeder()
        self.restart_at(start)
        for folder in (self._inbox, self._next_files):
            shutil.rmtree(folder, ignore_errors=True)
        (self._inbox / _step_name(0)).mkdir(parents=True)
        self._stopping, self._taken, self._step, self._step_end = False, True, 0, int(start["seq"])
        self._feeder = threading.Thread(
            target=self._feed, args=(records_per_trigger * BYTES_PER_RECORD,), name="file-feeder", daemon=True
        )
        self._feeder.start()
        # The files are those of the step, however old: nothing is dropped for its age.
        reader = spark.readStream.option("maxFileAge", "36500d").option("recursiveFileLookup", "true")
        steps = f"{self._inbox}/*"
        try:
            if self._parquet is not None:
                yield self._raw(reader.schema(self._parquet).parquet(steps))
            else:
                yield self._raw(reader.format("text").load(steps))
        finally:
            self._stop_feeder()

    def batch(self, spark: SparkSession, start: Position, end: Position) -> DataFrame:
        """A thread's next batch takes the copies of its last one away."""
        left_out = set(start.get("without", ()))
        entries = [e for e in self._journal.between(int(start["seq"]), int(end["seq"])) if e.name not in left_out]
        folder = self._round_folder()
        paths = [_plain(path) for path in self._readable.prepared_all(entries, folder, self._given_up.is_set)]
        if self._given_up.is_set():  # then it is not known what Spark may read
            raise SqlError(sqlstates.QUERY_CANCELED, "the query is being stopped")
        reader = spark.read.option("recursiveFileLookup", "true")
        if self._parquet is not None:
            frame = reader.schema(self._parquet).parquet(*paths) if paths else spark.createDataFrame([], self._parquet)
            return self._raw(frame) if paths else frame.selectExpr(*self._parquet_columns(), *_EMPTY_RAW)
        if not paths:
            return spark.createDataFrame([], "value string").selectExpr(*_EMPTY_RAW)
        return self._raw(reader.text(paths))

    def _round_folder(self) -> Path:
        own = self._rounds / str(threading.get_ident())
        shutil.rmtree(own, ignore_errors=True)
        with self._lock:
            self._round += 1
            return own / str(self._round)

    def _raw(self, frame: DataFrame) -> DataFrame:
        meta = (
            f"{self._name} AS position",
            f"{CHANGED} AS record_time",
            f"{metadata_of(self._name)} AS {METADATA}",
        )
        if self._parquet is not None:
            names = [parquet_column(name) for name in self._parquet.names]
            return frame.selectExpr(*self._parquet_columns(), *OF_FILE).selectExpr(
                *names, "cast(NULL as binary) AS key", "cast(NULL as binary) AS value", *meta
            )
        # A blank line is no record.
        return (
            frame.where("length(trim(value)) > 0")
            .selectExpr("value", *OF_FILE)
            .selectExpr("cast(NULL as binary) AS key", "cast(value as binary) AS value", *meta)
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
        for folder in (self._rounds, self._next_files):
            shutil.rmtree(folder, ignore_errors=True)

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
            _log.exception("the feeder of %s has ended", self._files.place)
            self._problem = f"!reading {self._files.place} failed: {type(error).__name__}: {words_of(error)}"

    def _show_steps(self, bytes_max: int) -> None:
        seen: object = None
        since_sweep = 0.0
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._taken or self._stopping, timeout=_SWEEP_S)
                if self._stopping:
                    return
                if not self._taken:
                    continue
            try:
                mark = self._files.mark()
                if self._problem is not None or mark != seen:
                    self._look()
                    seen = mark
                if since_sweep >= _SWEEP_S:
                    since_sweep = 0.0
                    self._sweep()
            except SqlError as error:
                if error.sqlstate == sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE:
                    self._problem = f"!{error}"
                    return
                self._problem = not_read(error, self._files.place)
            except OSError as error:
                self._problem = f"{self._files.place} cannot be read: {error.strerror or words_of(error)}"
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
        is known as soon as n files have been seen, and the source's end can be told before it is read. One look at a
        time, so that none brings back what was; no batch waits for it, since it may take long."""
        with self._looking:
            while not self._looked():
                pass

    def _looked(self) -> bool:
        """False where the journal was cut meanwhile: what was left out as known may wait again."""
        cuts = self._cuts
        found = self._files.look(self._journal.names)
        with self._lock:
            if cuts != self._cuts:
                return False
            there = {file.name: file for file in found if file.name not in self._journal.names}
            self._waiting = {name: there[name] for name in self._waiting if name in there} | there
            return True

    def _end(self) -> Position:
        """Of all files that there are now."""
        self._look()
        with self._lock:
            return {"seq": len(self._journal) + len(self._waiting)}

    def _show_next(self, bytes_max: int) -> str | None:
        """What hinders it: files that are not shown go on waiting."""
        try:
            with self._lock:
                following = first_files(self._waiting.values(), bytes_max, self._files_max)
            shutil.rmtree(self._next_files, ignore_errors=True)
            # may take long, and nobody is to wait for it
            readable = self._readable.prepared_all(following, self._next_files, lambda: self._stopping)
            paths = dict(zip(following, readable, strict=True))
            with self._lock:
                following = [file for file in following if self._waiting.get(file.name) == file]
                if following and not self._stopping:
                    self._show({file: paths[file] for file in following})
        except SqlError as error:
            if error.sqlstate == sqlstates.DATATYPE_MISMATCH:
                raise
            return not_read(error, self._files.place)
        except OSError as error:
            reason = error.strerror or words_of(error)
            return f"files of {self._files.place} cannot be handed to Spark: {reason}"
        return None

    def _show(self, files: Mapping[VisibleFile, Path]) -> None:
        """``files`` and what Spark reads for each."""
        step, known = self._step + 1, len(self._journal)
        aside = self._next_step
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        for file, readable in files.items():
            if readable.is_relative_to(self._next_files):
                put_moved(readable, aside / file.name)
            else:
                is_file = readable.parent != self._copies and readable.is_relative_to(self._files.here or readable)
                put_link(self._files.fetch(file, aside, lambda: False) if is_file else readable, aside / file.name)
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

    def _sweep(self) -> None:
        for file in self._files.look():
            known = self._journal.names.get(file.name)
            if known is not None and not file.is_content_of(known):
                raise changed(file.name, self._files.place)

    @property
    def record_order(self) -> RecordOrder:
        # Spark reads the lines of a file in their order, and counts a task's records.
        return RecordOrder("position", "monotonically_increasing_id()")

    def rejected_positions(self, records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
        """File and line: Spark's text source does not say which line, so each file is looked through once. Equal lines
        of a file are taken in their order."""
        places: dict[str, dict[bytes, list[int]]] = {}
        if self._parquet is None:
            for name in {position for position, _ in records}:
                places[name] = self._line_numbers(name, {raw for at, raw in records if at == name and raw is not None})
        answers: list[str] = []
        unplaced: Counter[str] = Counter()  # of a file; it is read as a whole, always in the same order
        for name, raw in records:
            numbers = places.get(name, {}).get(raw or b"", [])
            if numbers:
                answers.append(f"{name}:{numbers.pop(0)}")
            else:
                answers.append(f"{name}:#{unplaced[name]}")
                unplaced[name] += 1
        return answers

    def _line_numbers(self, name: str, wanted: Collection[bytes]) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {line: [] for line in wanted}
        longest = max((len(line) for line in found), default=0)
        try:
            with tempfile.TemporaryDirectory(dir=self._copies.parent) as folder:
                read = lines(self._content(name, Path(folder)), longest + len(BOM_UTF8))
                for number, (line, _) in enumerate(read, start=1):
                    # as Spark does: the mark of the byte order is no part of the first line
                    places = found.get((line.removeprefix(BOM_UTF8) if number == 1 else line)[:longest])
                    if places is not None:
                        places.append(number)
        except (OSError, EOFError, zlib.error, SqlError) as error:
            _log.warning("cannot look for rejected lines in %s: %s", name, error)
        return found

    def _content(self, name: str, folder: Path) -> Path:
        """Of a file that Spark has just read. One that has to be brought here once more comes into ``folder``."""
        known = self._readable.known(name)
        if known is not None:
            return known
        if self._files.here is None:
            for copies in (*self._inbox.glob("*"), *self._rounds.glob("*/*")):
                if (copies / name).is_file():
                    return copies / name
        entry = self._journal.names.get(name) or next((f for f in self._files.look() if f.name == name), None)
        if entry is None:
            raise gone(name, self._files.place)
        return self._readable.prepared(entry, folder)


_EMPTY_RAW = (
    "cast(NULL as binary) AS key",
    "cast(NULL as binary) AS value",
    "cast(NULL as string) AS position",
    "cast(NULL as timestamp) AS record_time",
    f"cast(NULL AS {SPARK_TYPE}) AS {METADATA}",
)


def _step_name(step: int) -> str:
    return f"{step:012d}"


def _plain(path: Path) -> str:
    """A path in which Spark finds no pattern."""
    return _PATTERN.sub(r"\\\1", str(path))
