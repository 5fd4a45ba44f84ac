"""One checkpoint generation: a Spark streaming query from an exact position until it ends, is stopped, or fails."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.batch.spark_calls import close_idle_callbacks, for_each_batch, use_in_this_thread
from spark_sinks.base import Position, Rounds, SourceReader

_LOOK_S = 1


def run_batches(
    session: SparkSession,
    reader: SourceReader,
    position: Position,
    checkpoint: Path,
    *,
    records_per_trigger: int,
    on_batch: Callable[[Callable[[], DataFrame], int], None],
    ended: Callable[[], bool],
    running: Callable[[bool], None],
) -> None:
    """Reads from ``position`` on, as the source is to be read. ``on_batch`` gets a batch's frame by calling for it."""
    if reader.rounds is not None:
        run_rounds(
            session, reader, reader.rounds, position,
            records_per_trigger=records_per_trigger, on_batch=on_batch, ended=ended, running=running,
        )  # fmt: skip
    else:
        run_generation(
            session, reader, position, checkpoint,
            records_per_trigger=records_per_trigger,
            on_batch=lambda frame, batch_id: on_batch(lambda: frame, batch_id), ended=ended, running=running,
        )  # fmt: skip


def round_end(reader: SourceReader, start: Position, end: Position, records: int) -> Position:
    """Where a bounded read of about so many records ends that may go on up to ``end``."""
    if reader.rounds is not None:
        limited = reader.rounds.bounded(start, end, records)
    else:
        limited = reader.positions.limit(start, end, records)
    return reader.positions.advance(start, limited)


def run_generation(
    session: SparkSession,
    reader: SourceReader,
    position: Position,
    checkpoint: Path,
    *,
    records_per_trigger: int,
    on_batch: Callable[[DataFrame, int], None],
    ended: Callable[[], bool],
    running: Callable[[bool], None],
) -> None:
    """Returns when ``ended`` becomes true; raises what ``on_batch`` raised, or Spark's own error.

    The checkpoint is new and is never used again: the ledger, or the sink itself, says where the next one begins. The
    query is stopped between batches, since Spark's stop in the middle of a Python callback fails in its own way.
    """
    for old in checkpoint.parent.glob("checkpoint-*"):
        shutil.rmtree(old, ignore_errors=True)
    callback = threading.Lock()
    over = threading.Event()  # stays set: behind a batch that was left out, no other one may be taken
    failed: list[BaseException] = []

    def is_over() -> bool:
        if failed or ended():
            over.set()
        return over.is_set()

    def guarded(frame: DataFrame, batch_id: int) -> None:
        with callback:
            if is_over():
                return
            try:
                on_batch(frame, batch_id)
            except Exception as error:  # noqa: BLE001 - raised below; through Spark it would lose its type
                failed.append(error)

    use_in_this_thread(session)
    with reader.stream(session, position, records_per_trigger=records_per_trigger) as frame:
        query = (
            for_each_batch(frame.writeStream, guarded)
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime="0 seconds")
            .start()
        )
        running(True)
        try:
            by_itself = False
            while not is_over() and not by_itself:
                by_itself = bool(query.awaitTermination(_LOOK_S))
        finally:
            running(False)
            with callback:
                pass  # a running callback ends first; later ones return at once
            query.stop()
            close_idle_callbacks(session)
    if failed:
        raise failed.pop()  # in the list it would be part of a cycle with this frame, and hold the query
    if not over.is_set():
        raise SqlError(sqlstates.SYSTEM_ERROR, "the Spark query of the pipeline ended by itself")


def run_rounds(
    session: SparkSession,
    reader: SourceReader,
    rounds: Rounds,
    position: Position,
    *,
    records_per_trigger: int,
    on_batch: Callable[[Callable[[], DataFrame], int], None],
    ended: Callable[[], bool],
    running: Callable[[bool], None],
) -> None:
    """The same in rounds, one as soon as there are records for it. They are handed to Spark only where ``on_batch``
    asks for it."""
    running(True)
    try:
        batch_id = 0
        while not ended():
            end = rounds.next_batch(position, records_per_trigger)
            if end == position:
                rounds.wait(_LOOK_S)
                continue
            on_batch(partial(reader.batch, session, position, end), batch_id)
            position = end
            batch_id += 1
    finally:
        running(False)
