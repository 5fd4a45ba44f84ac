"""The feeder of a directory finds every file, also where the directory's time does not tell of it; Spark is played."""

from __future__ import annotations

import errno
import gzip
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from mvserver.errors import SqlError
from spark_sinks.file import readable as readable_files
from spark_sinks.file.entity_files import DirectoryFiles
from spark_sinks.file.files import VisibleFile, visible_files
from spark_sinks.file.journal import FileJournal
from spark_sinks.file.positions import BYTES_PER_RECORD, first_files
from spark_sinks.file.source import FileReader

FOUND_WITHIN_S = 10.0


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[FileReader]:
    (tmp_path / "clicks").mkdir()
    made = FileReader(DirectoryFiles(tmp_path / "clicks"), tmp_path / "work", None, poll_s=0.005)
    yield made
    made.close()


@pytest.fixture
def streams() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def add(folder: Path, name: str) -> None:
    aside = folder / f"aside-{name}"
    aside.write_text("{}\n")
    aside.rename(folder / "clicks" / name)


def shown(folder: Path, step: int) -> list[str]:
    """The files of a step, when there is one."""
    inbox = folder / "work" / "inbox" / f"{step:012d}"
    deadline = time.monotonic() + FOUND_WITHIN_S
    while not inbox.exists():
        assert time.monotonic() < deadline, f"step {step} was not shown"
        time.sleep(0.002)
    return sorted(path.name for path in inbox.iterdir())


def test_a_file_that_comes_within_the_tick_of_the_last_change_is_found(
    tmp_path: Path, reader: FileReader, streams: ExitStack
) -> None:
    add(tmp_path, "a.json")
    tick = time.time_ns() + 60_000_000_000  # a tick that does not end during the test
    os.utime(tmp_path / "clicks", ns=(tick, tick))
    streams.enter_context(reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=1000))
    assert shown(tmp_path, 1) == ["a.json"]
    add(tmp_path, "b.json")
    os.utime(tmp_path / "clicks", ns=(tick, tick))
    assert reader.batch_end("", 0, {"seq": 0}) == {"seq": 1}  # the step is taken: the feeder looks again
    assert shown(tmp_path, 2) == ["b.json"]
    assert reader.health.look({"seq": 1}).latest == {"seq": 2}


def test_a_step_goes_while_its_successor_is_read(tmp_path: Path, reader: FileReader, streams: ExitStack) -> None:
    """Not when another one is shown: Spark may be listing the inbox then, and fails where a directory goes."""

    def steps() -> list[int]:
        return sorted(int(path.name) for path in (tmp_path / "work" / "inbox").iterdir())

    for name in "abc":
        add(tmp_path, f"{name}.json")
    streams.enter_context(reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=0))  # a file a step
    for step in (1, 2, 3):
        assert shown(tmp_path, step) == [f"{'abc'[step - 1]}.json"]
        assert steps() == [step - 1, step]
        if step < 3:
            assert reader.batch_end("", step - 1, {"seq": step - 1}) == {"seq": step}


def test_nothing_of_a_step_is_in_the_inbox_before_it_is_whole(
    tmp_path: Path, reader: FileReader, streams: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's pattern finds hidden names as well: it would plan a batch of files that are about to move."""
    between: list[list[str]] = []
    append = FileJournal.append

    def noted(journal: FileJournal, files: Sequence[VisibleFile]) -> None:
        between.append(sorted(str(path.name) for path in (tmp_path / "work" / "inbox").rglob("*")))
        append(journal, files)

    monkeypatch.setattr(FileJournal, "append", noted)
    add(tmp_path, "a.json")
    streams.enter_context(reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=0))
    assert shown(tmp_path, 1) == ["a.json"]
    assert between == [["000000000000"]]


def test_files_that_cannot_be_handed_on_are_shown_as_the_cause_and_go_on_waiting(
    tmp_path: Path, reader: FileReader, streams: ExitStack
) -> None:
    add(tmp_path, "a.json")
    streams.enter_context(reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=0))
    assert shown(tmp_path, 1) == ["a.json"]
    in_the_way = tmp_path / "work" / "next-step"
    in_the_way.write_text("")
    add(tmp_path, "b.json")
    assert reader.batch_end("", 0, {"seq": 0}) == {"seq": 1}
    deadline = time.monotonic() + FOUND_WITHIN_S
    while reader.health.look({"seq": 1}).state != "stalled":
        assert time.monotonic() < deadline
        time.sleep(0.002)
    cause = f"files of directory {tmp_path / 'clicks'} cannot be handed to Spark: File exists"
    assert reader.health.look({"seq": 1}).cause == cause
    in_the_way.unlink()
    assert shown(tmp_path, 2) == ["b.json"]
    assert reader.batch_end("", 1, {"seq": 1}) == {"seq": 2}
    assert reader.health.look({"seq": 2}).latest == {"seq": 2}


def test_an_entry_that_could_not_be_written_leaves_the_journal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [VisibleFile(f"{name}.json", 1, 2) for name in "abc"]
    journal = FileJournal(tmp_path / "files.journal")
    journal.append(files[:1])

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            journal.append(files[1:2])
    assert len(journal) == 1
    journal.append(files[2:])
    assert FileJournal(tmp_path / "files.journal").between(0, 9) == [files[0], files[2]]


class LateLooks:
    """Looks at the files that are answered late, as those of a service: all, or those of whom ``of`` says."""

    def __init__(self, patched: pytest.MonkeyPatch, of: Callable[[], bool] = lambda: True) -> None:
        self.asked, self.answered, look = threading.Event(), threading.Event(), DirectoryFiles.look

        def late(files: DirectoryFiles, *known: Any) -> Any:
            found = look(files, *known)
            if of():
                self.asked.set()
                self.answered.wait(FOUND_WITHIN_S)
            return found

        patched.setattr(DirectoryFiles, "look", late)


def test_a_batch_does_not_wait_for_a_look_at_files_that_takes_long(
    tmp_path: Path, reader: FileReader, streams: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the list of objects of a service that answers late."""
    add(tmp_path, "a.json")
    streams.enter_context(reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=0))
    assert shown(tmp_path, 1) == ["a.json"]
    late = LateLooks(monkeypatch)
    ends: list[Any] = []
    watch = threading.Thread(target=lambda: ends.append(reader.health.look({"seq": 0}).latest))
    watch.start()
    assert late.asked.wait(FOUND_WITHIN_S)
    batch = threading.Thread(target=lambda: ends.append(reader.batch_end("", 0, {"seq": 0})))
    batch.start()
    batch.join(FOUND_WITHIN_S / 2)
    waited = batch.is_alive()
    late.answered.set()
    watch.join(FOUND_WITHIN_S)
    batch.join(FOUND_WITHIN_S)
    assert (waited, ends) == (False, [{"seq": 1}, {"seq": 1}])


def test_a_batch_does_not_wait_for_a_start_and_its_files_count(
    tmp_path: Path, reader: FileReader, streams: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start's look at the files takes long; a file that is read meanwhile was not there, and has not gone."""
    add(tmp_path, "a.json")
    streams.enter_context(reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=0))
    assert shown(tmp_path, 1) == ["a.json"]
    starting: list[threading.Thread] = []
    late = LateLooks(monkeypatch, lambda: threading.current_thread() in starting)
    starts: list[Any] = []
    latest = {"before": [], "at": time.time()}
    starting.append(threading.Thread(target=lambda: starts.append(reader.adopt(latest, fresh=False))))
    starting[0].start()
    assert late.asked.wait(FOUND_WITHIN_S)
    batch = threading.Thread(target=lambda: reader.batch_end("", 0, {"seq": 0}))
    batch.start()
    batch.join(FOUND_WITHIN_S / 2)
    waited = batch.is_alive()
    add(tmp_path, "b.json")
    following = [] if waited else shown(tmp_path, 2)
    late.answered.set()
    for thread in (*starting, batch):
        thread.join(FOUND_WITHIN_S)
    assert (waited, following, starts) == (False, ["b.json"], [{"seq": 0}])


def test_files_whose_entries_are_cut_during_a_look_wait_again(
    tmp_path: Path, reader: FileReader, streams: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look has left them out as read, and a batch that did not count is read again."""
    add(tmp_path, "a.json")
    with reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=0):
        assert shown(tmp_path, 1) == ["a.json"]
    look, cut = DirectoryFiles.look, [False]

    def late(files: DirectoryFiles, *known: Any) -> Any:
        found = look(files, *known)
        if not cut[0]:
            cut[0] = True
            reader.restart_at({"seq": 0})
        return found

    monkeypatch.setattr(DirectoryFiles, "look", late)
    assert reader.health.look({"seq": 0}).latest == {"seq": 1}
    assert cut == [True]


def test_a_journal_that_is_cut_has_its_entries_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round of filling reads by it at that moment, and would pass over files; and the disk may be full."""
    files = [VisibleFile(f"{name}.json", 1, 2) for name in "abc"]
    journal, meanwhile = FileJournal(tmp_path / "files.journal"), []
    journal.append(files)

    def full(descriptor: int) -> None:
        meanwhile.append(journal.between(0, 2))
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            journal.truncate(2)
    assert (meanwhile, journal.between(0, 9)) == ([files[:2]], files)
    journal.truncate(2)
    assert (journal.between(0, 9), list(journal.names), journal.number("b.json")) == (
        files[:2],
        ["a.json", "b.json"],
        2,
    )
    assert FileJournal(tmp_path / "files.journal").between(0, 9) == files[:2]


def test_the_end_that_was_told_is_that_of_the_files_that_were_there(
    tmp_path: Path, reader: FileReader, streams: ExitStack
) -> None:
    """A file that comes later does not go before them, even where its time is earlier: the n-th file stays the n-th."""
    add(tmp_path, "a.json")
    streams.enter_context(reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=0))  # a file a step
    assert shown(tmp_path, 1) == ["a.json"]
    add(tmp_path, "b.json")
    assert reader.health.look({"seq": 0}).latest == {"seq": 2}
    add(tmp_path, "c.json")
    os.utime(tmp_path / "clicks" / "c.json", ns=(1, 1))
    assert reader.batch_end("", 0, {"seq": 0}) == {"seq": 1}
    assert shown(tmp_path, 2) == ["b.json"]
    assert reader.health.look({"seq": 1}).latest == {"seq": 3}
    streams.enter_context(reader.stream(MagicMock(), {"seq": 1}, records_per_trigger=0))  # step 2 was not committed
    assert reader.health.look({"seq": 1}).latest == {"seq": 3}
    assert shown(tmp_path, 1) == ["b.json"]
    assert reader.batch_end("", 0, {"seq": 1}) == {"seq": 2}
    assert shown(tmp_path, 2) == ["c.json"]


def test_a_link_that_leads_out_is_never_shown_and_named_as_the_cause(
    tmp_path: Path, reader: FileReader, streams: ExitStack
) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"secret":1}\n')
    (tmp_path / "clicks" / "link.json").symlink_to(secret)
    add(tmp_path, "a.json")
    streams.enter_context(reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=1000))
    wanted = f'files of directory {tmp_path}/clicks are not read: "link.json" leads out of the directories'
    health = reader.health.look({"seq": 0})
    assert (health.state, str(health.cause).startswith(wanted)) == ("stalled", True)
    assert list((tmp_path / "work" / "inbox").glob("0*1")) == []
    (tmp_path / "clicks" / "link.json").unlink()
    assert shown(tmp_path, 1) == ["a.json"]
    deadline = time.monotonic() + FOUND_WITHIN_S  # the cause is taken back after the step is shown
    while reader.health.look({"seq": 0}).state != "ok":
        assert time.monotonic() < deadline


def test_what_is_put_in_place_of_a_file_is_not_read(tmp_path: Path, reader: FileReader, streams: ExitStack) -> None:
    secret, file = tmp_path / "secret.json", tmp_path / "clicks" / "a.json"
    secret.write_text('{"b":1}\n')
    file.write_text('{"a":1}\n')
    status = file.stat()
    os.utime(secret, ns=(status.st_atime_ns, status.st_mtime_ns))
    streams.enter_context(reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=1000))
    assert shown(tmp_path, 1) == ["a.json"]
    file.unlink()
    file.symlink_to(secret)  # of the same size and time
    assert (tmp_path / "work" / "inbox" / f"{1:012d}" / "a.json").read_text() == '{"a":1}\n'
    for call in (
        lambda: reader.batch(MagicMock(), {"seq": 0}, {"seq": 1}),
        lambda: reader.health.check_history({"seq": 0}),
    ):
        with pytest.raises(SqlError) as caught:
            call()
        assert caught.value.sqlstate == "42501"
    assert reader.rejected_positions([("a.json", b'{"b":1}')]) == ["a.json:#0"]


def test_a_directory_that_becomes_a_link_out_of_the_root_is_not_read(
    tmp_path: Path, reader: FileReader, streams: ExitStack
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.json").write_text("{}\n")
    (tmp_path / "clicks").rmdir()
    (tmp_path / "clicks").symlink_to(tmp_path / "secret")
    streams.enter_context(reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=1000))
    health = reader.health.look({"seq": 0})
    assert (health.state, '"clicks" leads out of the directories' in str(health.cause)) == ("stalled", True)


def test_the_lines_of_a_file_with_a_byte_order_mark_are_counted(tmp_path: Path, reader: FileReader) -> None:
    (tmp_path / "clicks" / "a.json").write_bytes(b"\xef\xbb\xbfone\ntwo\r\none\n")
    wanted = [("a.json", b"one"), ("a.json", b"one"), ("a.json", b"two")]
    assert reader.rejected_positions(wanted) == ["a.json:1", "a.json:3", "a.json:2"]


@pytest.mark.parametrize("sizes", [(300,) * 20, (1,), (90_000,) * 3, (0,) * 50, (20_000, 10, 10), (4,) * 2000])
@pytest.mark.parametrize("least", [1, 100])
def test_a_range_that_is_divisible_gets_shorter_by_a_bound_and_one_that_is_not_does_not(
    reader: FileReader, sizes: tuple[int, ...], least: int
) -> None:
    """Else a batch of small files that takes too long would be tried again for ever, and nobody be to blame."""
    reader._journal.append([VisibleFile(f"{number:05}.json", size, 1) for number, size in enumerate(sizes)])
    start, end = {"seq": 0}, {"seq": len(sizes)}
    bounded = reader.positions.limit(start, end, least)
    assert reader.positions.divisible(start, end, least) is (bounded["seq"] < end["seq"])
    assert not reader.positions.divisible(start, bounded, least)
    # as the feeder shows them
    shown = first_files(reader._journal.between(0, len(sizes)), least * BYTES_PER_RECORD, None)
    assert len(shown) == bounded["seq"]


def test_a_file_that_is_not_whole_is_named_and_not_looked_through_again_at_once(
    tmp_path: Path, reader: FileReader, streams: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    copy = readable_files.bounded_copy

    def counted(path: Path, *others: Any) -> bool:
        looked.append(path.name)
        return copy(path, *others)

    monkeypatch.setattr(readable_files, "bounded_copy", counted)
    add(tmp_path, "a.gz")  # which it is not
    streams.enter_context(reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=0))
    until(lambda: reader.health.look({"seq": 0}).state == "stalled")
    assert reader.health.look({"seq": 0}).cause == (
        f"files of directory {tmp_path / 'clicks'} are not read: "
        "file \"a.gz\" is not whole: Not a gzipped file (b'{}')"
    )
    add(tmp_path, "b.json")  # the feeder looks again, and a.gz goes first
    until(lambda: "b.json" in reader._waiting)
    assert looked == ["a.gz"]
    aside = tmp_path / "mended"
    aside.write_bytes(gzip.compress(b"{}\n"))
    aside.rename(tmp_path / "clicks" / "a.gz")  # another content is looked through at once
    assert shown(tmp_path, 1) == ["a.gz"]


def test_nobody_waits_for_a_copy_that_another_thread_makes(tmp_path: Path, reader: FileReader) -> None:
    add(tmp_path, "a.json")
    (tmp_path / "work" / "inbox").mkdir()
    (file,) = reader._files.look()
    reader._waiting[file.name] = file
    with reader._readable.copying:  # of a batch, say
        thread = threading.Thread(target=reader._show, args=({file: tmp_path / "clicks" / "a.json"},))
        thread.start()
        thread.join(FOUND_WITHIN_S)
        assert not thread.is_alive()
    assert shown(tmp_path, 1) == ["a.json"]


def test_a_batch_whose_files_are_being_copied_can_be_given_up(
    tmp_path: Path, reader: FileReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "clicks" / "a.gz").write_bytes(gzip.compress(b"{}\n"))
    reader._journal.append(visible_files(tmp_path / "clicks", tmp_path))
    copying, copy = threading.Event(), readable_files.bounded_copy

    def long(path: Path, target: Path, most: int, stopped: Callable[[], bool]) -> bool:
        copying.set()
        until(stopped)
        return False

    monkeypatch.setattr(readable_files, "bounded_copy", long)
    found: list[SqlError] = []

    def batch() -> None:
        with pytest.raises(SqlError) as raised:
            reader.batch(MagicMock(), {"seq": 0}, {"seq": 1})
        found.append(raised.value)

    thread = threading.Thread(target=batch)
    thread.start()
    assert copying.wait(FOUND_WITHIN_S)
    reader.give_up()
    thread.join(FOUND_WITHIN_S)
    assert [error.sqlstate for error in found] == ["57014"]
    reader.close()
    monkeypatch.setattr(readable_files, "bounded_copy", copy)
    spark = MagicMock()
    reader.batch(spark, {"seq": 0}, {"seq": 1})
    spark.read.option.return_value.text.assert_called_once_with([str(tmp_path / "clicks" / "a.gz")])


def test_a_feeder_that_ends_leaves_its_cause(
    tmp_path: Path, reader: FileReader, streams: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(tmp_path, "a.json")
    monkeypatch.setattr(reader._files, "look", lambda *_: 1 / 0)
    streams.enter_context(reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=0))
    until(lambda: reader._problem is not None)
    health = reader.health.look({"seq": 0})
    assert health.state == "failed"
    assert health.cause == f"reading directory {tmp_path / 'clicks'} failed: ZeroDivisionError: division by zero"


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + FOUND_WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_a_fresh_start_that_is_made_again_leaves_the_same_files_out(tmp_path: Path) -> None:
    """Whoever begins with new files, and ends before the first one, begins with new files."""
    directory = tmp_path / "in"
    directory.mkdir()
    for name in ("a.json", "b.json"):
        (directory / name).write_text("{}\n")
    before = {"before": ["a.json", "b.json"]}
    first = FileReader(DirectoryFiles(directory), tmp_path / "work", None)
    assert first.adopt(before, fresh=True) == {"seq": 2}
    (directory / "c.json").write_text("{}\n")
    again = FileReader(DirectoryFiles(directory), tmp_path / "work", None)
    assert again.adopt(before, fresh=True) == {"seq": 2}
    assert again.positions.distance({"seq": 2}, again.health.look({"seq": 2}).latest or {}) == 1


def test_a_start_behind_the_latest_files_needs_none_that_others_have_read_and_that_are_gone(tmp_path: Path) -> None:
    """One that is made again later does: what has gone since then was its own."""
    directory = tmp_path / "in"
    directory.mkdir()
    for name in ("a.json", "b.json"):
        (directory / name).write_text("{}\n")
    reader = FileReader(DirectoryFiles(directory), tmp_path / "work", None)
    assert reader.adopt({"before": ["a.json", "b.json"]}, fresh=True) == {"seq": 2}
    (directory / "a.json").unlink()
    latest = {"before": ["b.json"], "at": time.time()}
    start = reader.adopt(latest, fresh=False)
    assert start == {"seq": 0, "without": ["b.json", "a.json"]}
    reader.health.check_history(start)
    later = reader.adopt({**latest, "at": time.time() - 3600}, fresh=False)
    assert later == {"seq": 0, "without": ["b.json"]}
    for needs_all in (later, reader.adopt({"before": []}, fresh=False)):
        with pytest.raises(SqlError, match=r'file "a\.json" .* is gone'):
            reader.health.check_history(needs_all)
    (directory / "b.json").unlink()
    assert reader.adopt({"before": [], "at": time.time()}, fresh=False) == {"seq": 0, "without": ["a.json", "b.json"]}


def test_a_batch_has_no_more_files_than_it_may(tmp_path: Path, streams: ExitStack) -> None:
    (tmp_path / "clicks").mkdir()
    for number in range(5):
        add(tmp_path, f"{number}.json")
    reader = FileReader(DirectoryFiles(tmp_path / "clicks"), tmp_path / "work", None, files_max=2, poll_s=0.005)
    streams.callback(reader.close)
    streams.enter_context(reader.stream(MagicMock(), {"seq": 0}, records_per_trigger=1000))
    names = []
    for step in (1, 2, 3):
        names.append(shown(tmp_path, step))
        reader.batch_end("", step, {"seq": 0})
    assert names == [["0.json", "1.json"], ["2.json", "3.json"], ["4.json"]]
    assert reader.positions.limit({"seq": 1}, {"seq": 5}, 1000) == {"seq": 3}
