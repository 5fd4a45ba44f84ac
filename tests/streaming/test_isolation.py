"""Who is held to blame for the end of Spark's JVM, what is refused of it, and what the next start knows."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.streaming.engine import Engine
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.spark import isolation as isolations
from mvserver.streaming.spark.batch_register import Batch, BatchRegister
from mvserver.streaming.spark.guard import Guarded
from mvserver.streaming.spark.isolation import READ, IsolatedError, Isolation

Position = Mapping[str, Any]


class Positions:
    """Of a source whose position is a number."""

    def reached(self, position: Position, target: Position) -> bool:
        return bool(position["seq"] >= target["seq"])

    def distance(self, start: Position, end: Position) -> int:
        return int(end["seq"] - start["seq"])


POSITIONS = cast(Any, Positions())


def at(seq: int) -> Position:
    return {"seq": seq}


def ends(isolation: Isolation, *sources: tuple[str, int], crashed: bool = True) -> None:
    """Spark ends while batches of these are evaluated."""
    if not sources:
        isolation.spark_ended("Spark ended (code 52)", crashed=crashed)
        return
    (source, seq), *others = sources
    with (
        contextlib.suppress(EOFError),
        isolation.evaluating(source, POSITIONS, at(seq), at(seq + 1), lambda error: None),
    ):
        ends(isolation, *others, crashed=crashed)
        raise EOFError


def refused(isolation: Isolation, source: str, start: int, end: int) -> bool:
    try:
        isolation.check(source, POSITIONS, at(start), at(end))
    except IsolatedError:
        return True
    return False


def killed(isolation: Isolation, source: str, start: int, end: int) -> None:
    """The server, while that batch is evaluated."""
    isolation._register.begin(Batch.of(source, at(start), at(end), end - start))


def succeeds(isolation: Isolation, source: str, seq: int, end: int | None = None) -> None:
    with isolation.evaluating(source, POSITIONS, at(seq), at(seq + 1 if end is None else end), lambda error: None):
        pass


def test_a_batch_at_which_spark_ended_twice_is_refused(tmp_path: Path) -> None:
    isolation = Isolation(tmp_path)
    ends(isolation, ("a", 5))
    assert isolation.on_probation("a")
    assert not isolation.on_probation("b")
    assert not refused(isolation, "a", 5, 9)
    ends(isolation, ("a", 5))
    with pytest.raises(IsolatedError, match="Spark ended each time that it evaluated the next records") as raised:
        isolation.check("a", POSITIONS, at(5), at(9))
    assert raised.value.sqlstate == "55000"
    assert (raised.value.detail or "").startswith(
        "It ended 2 times, the last time with this cause: Spark ended (code 52)"
    )
    assert refused(isolation, "a", 0, 6)  # of a new view, which reads them too
    assert not refused(isolation, "a", 0, 5)
    assert not refused(isolation, "a", 6, 9)
    assert not refused(isolation, "b", 5, 9)
    assert not isolation.on_probation("a")
    isolation.pardon(["a"])
    assert not refused(isolation, "a", 5, 9)


def test_only_the_same_batch_counts_and_success_clears(tmp_path: Path) -> None:
    isolation = Isolation(tmp_path)
    for seq in range(5):
        ends(isolation, ("a", seq))
        succeeds(isolation, "a", seq)
        assert not isolation.on_probation("a")
    assert not refused(isolation, "a", 0, 9)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("start", "poison", "most"), [(0, 155_000, 600_000), (7, 599_999, 600_000), (0, 3, 600_000)])
def test_a_poison_far_behind_the_start_of_its_batch_is_found_soon(
    tmp_path: Path, start: int, poison: int, most: int, restarted: bool
) -> None:
    """The batches stay small until all records of the suspect one have been evaluated."""
    isolation, position, crashes = Isolation(tmp_path), start, 0
    while not refused(isolation, "a", position, position + 1):
        assert position < start + most
        records = Guarded(cast(Any, None), isolation).records_max("a", most)
        if position <= poison < position + records:
            with (
                contextlib.suppress(EOFError),
                isolation.evaluating("a", POSITIONS, at(position), at(position + records), lambda error: None),
            ):
                ends(isolation)
                raise EOFError
            crashes += 1
        else:
            succeeds(isolation, "a", position, position + records)
            position += records
            if restarted:
                isolation.close()
                isolation = Isolation(tmp_path)
    assert crashes <= limits.SPARK_CRASHES_OF_A_BATCH_MAX + 1
    assert poison - position < limits.PROBATION_RECORDS_MAX
    succeeds(isolation, "b", position)
    isolation.pardon(["a"])
    assert not isolation.on_probation("a")


def test_probation_ends_behind_the_suspect_batch_and_not_elsewhere(tmp_path: Path) -> None:
    isolation = Isolation(tmp_path)
    with contextlib.suppress(EOFError), isolation.evaluating("a", POSITIONS, at(100), at(200), lambda error: None):
        ends(isolation)
        raise EOFError
    succeeds(isolation, "a", 200, 300)  # of another view of the source, further on
    succeeds(isolation, "a", 120, 130)
    succeeds(isolation, "a", 0, 90)
    assert isolation.on_probation("a")
    succeeds(isolation, "a", 90, 150)  # what was not committed is evaluated again
    assert isolation.on_probation("a")
    succeeds(isolation, "a", 150, 210)
    assert not isolation.on_probation("a")


def test_a_suspicion_that_nobody_looks_into_ends_and_a_verdict_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a view that was dropped: its records are evaluated by nobody."""
    isolation = Isolation(tmp_path)
    ends(isolation, ("a", 5))
    ends(isolation, ("b", 5))
    ends(isolation, ("b", 5))
    assert isolation.is_suspect("a")
    assert isolation.is_suspect("b")
    assert not isolation.is_suspect("c")
    monkeypatch.setattr(limits, "SPARK_SUSPECTED_S", -1.0)
    assert not isolation.is_suspect("a")
    assert not isolation.on_probation("a")
    assert refused(isolation, "b", 5, 6)
    assert isolation.is_suspect("b")


@pytest.mark.parametrize(("guilty", "position"), [(599_990, 0), (5, 0), (155_000, 3), (0, 0)])
def test_the_records_before_those_that_are_refused_are_taken(tmp_path: Path, guilty: int, position: int) -> None:
    """As by a new view: its queries fail where the refused records begin, and not where the batch did."""
    isolation = Isolation(tmp_path)
    ends(isolation, ("a", guilty))
    ends(isolation, ("a", guilty))
    state, tries = RunningState(POSITIONS, cast(Any, None), records_max=600_000), 0
    while True:
        records = state.records_max
        try:
            isolation.check("a", POSITIONS, at(position), at(position + records))
        except IsolatedError as error:
            tries += 1
            if not state.shrink_batches(error):
                break
        else:
            position += records
            state.grow_batches(records)
    assert position == guilty
    assert tries < 40


def test_kills_from_outside_need_one_more(tmp_path: Path) -> None:
    isolation = Isolation(tmp_path)
    ends(isolation, ("a", 5), crashed=False)
    assert not isolation.on_probation("a")  # a single one is nobody's fault
    ends(isolation, ("a", 5), crashed=False)
    assert isolation.on_probation("a")
    assert not refused(isolation, "a", 5, 9)
    ends(isolation, ("a", 5), crashed=False)
    assert refused(isolation, "a", 5, 9)


def test_of_several_the_culprit_is_found_by_taking_turns(tmp_path: Path) -> None:
    isolation = Isolation(tmp_path)
    ends(isolation, ("a", 1), ("b", 1), ("c", 1))
    order: list[str] = []
    waits, goes = threading.Event(), threading.Event()

    def second() -> None:
        waits.set()
        with isolation.turn("b", lambda: False):
            order.append("b")
            succeeds(isolation, "b", 1)

    with isolation.turn("a", lambda: False):
        thread = threading.Thread(target=second)
        thread.start()
        waits.wait()
        with isolation.turn("d", lambda: False):  # is no suspect, and does not wait
            order.append("d")
        ends(isolation, ("a", 1))
        order.append("a")
        goes.set()
    thread.join()
    assert order == ["d", "a", "b"]
    assert refused(isolation, "a", 1, 2)
    assert not refused(isolation, "b", 1, 2)


def test_who_waits_for_his_turn_can_be_stopped(tmp_path: Path) -> None:
    isolation = Isolation(tmp_path)
    ends(isolation, ("a", 1), ("b", 1))
    with isolation.turn("a", lambda: False), pytest.raises(SqlError), isolation.turn("b", lambda: True):
        raise AssertionError


def test_a_verdict_outlives_the_server(tmp_path: Path) -> None:
    isolation = Isolation(tmp_path)
    ends(isolation, ("a", 5))
    ends(isolation, ("a", 5))
    isolation.close()
    again = Isolation(tmp_path)
    assert refused(again, "a", 5, 6)
    again.pardon(["a"])
    assert not refused(Isolation(tmp_path), "a", 5, 6)


def test_a_server_that_ends_again_and_again_at_a_batch_leaves_it_out(tmp_path: Path) -> None:
    """Nothing is written before a batch: a file in memory says what was under way when the process was gone."""
    for _ in range(limits.SPARK_KILLS_OF_A_BATCH_MAX):
        isolation = Isolation(tmp_path)
        assert not refused(isolation, "a", 5, 6)
        killed(isolation, "a", 5, 6)
    assert refused(Isolation(tmp_path), "a", 5, 6)


def lives(folder: Path, poison: int, most: int) -> tuple[int, int]:
    """Of a server that ends at a record each time: how often it does, and where what is refused begins."""
    ends = position = 0
    while True:
        isolation = Isolation(folder)
        while not refused(isolation, "a", position, position + 1):
            end = position + Guarded(cast(Any, None), isolation).records_max("a", most)
            if position <= poison < end:
                killed(isolation, "a", position, end)
                ends += 1
                break
            succeeds(isolation, "a", position, end)
            position = end
        else:
            return ends, position


@pytest.mark.parametrize("poison", [0, 3, 155_000, 599_999])
def test_a_record_that_ends_the_server_each_time_is_isolated_in_a_small_batch(tmp_path: Path, poison: int) -> None:
    ends, position = lives(tmp_path, poison, 600_000)
    assert ends <= limits.SPARK_KILLS_OF_A_BATCH_MAX + 2
    assert 0 <= poison - position < limits.PROBATION_RECORDS_MAX


def test_a_batch_that_cannot_be_smaller_is_isolated_all_the_same(tmp_path: Path) -> None:
    """As of a file that is one record, or whose size nobody knows."""
    for _ in range(limits.SPARK_KILLS_OF_A_BATCH_MAX + 2):
        isolation = Isolation(tmp_path)
        assert not refused(isolation, "a", 5, 6)
        isolation._register.begin(Batch.of("a", at(5)))
    assert refused(Isolation(tmp_path), "a", 5, 6)


def test_kills_of_the_server_during_a_long_first_round_condemn_nobody(tmp_path: Path) -> None:
    """Somebody kills it twenty times, and it evaluates a small batch in every other of its lives."""
    position = 0
    for life in range(20):
        isolation = Isolation(tmp_path)
        assert not refused(isolation, "a", position, position + 600_000)
        records = Guarded(cast(Any, None), isolation).records_max("a", 600_000)
        if records < 600_000 and life % 2 == 1:
            succeeds(isolation, "a", position, position + records)
            position += records
        killed(isolation, "a", position, position + records)
    assert position > 0
    assert not refused(Isolation(tmp_path), "a", position, position + 600_000)


def test_kills_of_the_server_also_while_nothing_is_evaluated_condemn_nobody(tmp_path: Path) -> None:
    """Spark takes its time to come up, so that a small batch does not end in any other life. A server that is stopped
    in between says nothing of the others' ends."""
    for _ in range(6):
        isolation = Isolation(tmp_path)
        assert not refused(isolation, "a", 5, 6)
        killed(isolation, "a", 5, 6)
        Isolation(tmp_path).begin()  # is killed before Spark is up
    Isolation(tmp_path)
    for _ in range(limits.SPARK_KILLS_OF_A_BATCH_MAX):
        isolation = Isolation(tmp_path)
        assert not refused(isolation, "a", 5, 6)
        killed(isolation, "a", 5, 6)
        Isolation(tmp_path)  # of a start that fails, as where the port is taken
        isolation = Isolation(tmp_path)
        isolation.begin()
        isolation.close()
    assert refused(Isolation(tmp_path), "a", 5, 6)


def test_kills_at_a_small_batch_that_others_are_evaluated_beside_count_for_half(tmp_path: Path) -> None:
    """All sources begin again together, so that a kill that comes soon meets the same small batches each time."""
    for life in range(2 * limits.SPARK_KILLS_OF_A_BATCH_MAX):
        isolation = Isolation(tmp_path)
        assert not refused(isolation, "a", 5, 6)
        killed(isolation, "a", 5, 6)
        killed(isolation, "b", life, life + 1)
    isolation = Isolation(tmp_path)
    assert refused(isolation, "a", 5, 6)
    assert not refused(isolation, "b", 0, 6)


def test_kills_while_only_others_are_evaluated_take_back_what_is_held_against_a_small_batch(tmp_path: Path) -> None:
    """Each of the others has begun anew, so that it is not suspect itself."""
    for life in range(6):
        for _ in range(2):
            isolation = Isolation(tmp_path)
            assert not refused(isolation, "a", 5, 6)
            killed(isolation, "a", 5, 6)
        killed(Isolation(tmp_path), "b", life, life + 1)
    assert not refused(Isolation(tmp_path), "a", 5, 6)


def test_kills_of_spark_during_a_long_first_round_condemn_nobody(tmp_path: Path) -> None:
    isolation = Isolation(tmp_path)
    for _ in range(2):
        with (
            contextlib.suppress(EOFError),
            isolation.evaluating("a", POSITIONS, at(0), at(600_000), lambda error: None),
        ):
            ends(isolation, crashed=False)
            raise EOFError
    for _ in range(2):
        assert not refused(isolation, "a", 0, 1)
        with contextlib.suppress(EOFError), isolation.evaluating("a", POSITIONS, at(0), at(10_000), lambda error: None):
            ends(isolation, crashed=False)
            raise EOFError
    assert not refused(isolation, "a", 0, 1)
    succeeds(isolation, "a", 0, 10_000)
    assert isolation.on_probation("a")
    succeeds(isolation, "a", 10_000, 600_000)
    assert not isolation.on_probation("a")


def test_ends_of_the_server_are_no_ends_of_spark(tmp_path: Path) -> None:
    for _ in range(limits.SPARK_KILLS_OF_A_BATCH_MAX - 1):
        killed(Isolation(tmp_path), "a", 5, 6)
    isolation = Isolation(tmp_path)
    ends(isolation, ("a", 5), crashed=False)
    assert isolation.on_probation("a")
    assert not refused(isolation, "a", 5, 6)
    killed(isolation, "a", 5, 6)
    with pytest.raises(IsolatedError, match="the server ended each time that Spark evaluated the next records"):
        Isolation(tmp_path).check("a", POSITIONS, at(5), at(6))


def test_a_server_that_gives_up_its_batches_blames_nobody(tmp_path: Path) -> None:
    """As one that is stopped while a batch takes long: first the notes go, then Spark is ended."""
    isolation = Isolation(tmp_path)
    isolation._register.begin(Batch.of("a", at(5)))
    left: list[int] = []

    def abandon() -> None:
        isolation._register.begin(Batch.of("b", at(5)))  # of a thread that has not heard of it
        left.append(len(BatchRegister(tmp_path / "batches").left))

    engine = object.__new__(Engine)
    engine._isolation, engine._spark = isolation, cast(Any, SimpleNamespace(abandon=abandon))
    engine.abandon()
    assert left == [0]


def test_a_server_that_ends_in_order_blames_nobody(tmp_path: Path) -> None:
    isolation = Isolation(tmp_path)
    isolation._register.begin(Batch.of("a", at(5)))
    isolation.close()
    assert BatchRegister(tmp_path / "batches").left == []


def test_a_read_for_a_statement_is_tried_again_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolation = Isolation(tmp_path)
    ends(isolation, (f"{READ}r", 5))
    ends(isolation, (f"{READ}r", 5))
    assert refused(isolation, f"{READ}r", 5, 6)
    monkeypatch.setattr(limits, "SPARK_READ_REFUSED_S", -1.0)
    assert not refused(isolation, f"{READ}r", 5, 6)
    ends(isolation, ("a", 5))
    assert "read:" not in (tmp_path / "suspects.json").read_text()


def test_positions_that_are_too_long_are_known_by_their_digest(tmp_path: Path) -> None:
    register = BatchRegister(tmp_path / "batches")
    long = {"partitions": {str(n): n for n in range(1000)}}
    register.begin(Batch.of("a", long))
    register.begin(Batch.of("b", at(1)))
    ended = register.begin(Batch.of("c", at(1)))
    register.end(ended)
    left = BatchRegister(tmp_path / "batches").left
    assert {(each.source, each.place) for each in left} == {
        ("a", Batch.of("a", long).place),
        ("b", Batch.of("b", at(1)).place),
    }
    assert next(each for each in left if each.source == "a").is_in(POSITIONS, long, at(1))


def test_more_batches_than_there_is_room_for_are_counted_all_the_same(tmp_path: Path) -> None:
    register = BatchRegister(tmp_path / "batches")
    numbers = [register.begin(Batch.of("a", at(n))) for n in range(limits.BATCHES_IN_PROGRESS_MAX + 5)]
    assert len(register.under_way()) == limits.BATCHES_IN_PROGRESS_MAX + 5
    for number in numbers:
        register.end(number)
    assert not register.under_way()


def test_without_a_file_there_is_a_register_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "batches").mkdir()
    register = BatchRegister(tmp_path / "batches")
    register.begin(Batch.of("a", at(1)))
    assert register.under_way() == [Batch.of("a", at(1))]


@pytest.mark.parametrize("text", ["", "[{}]", "{", "[1]", '[{"source": 1}]'])
def test_notes_that_cannot_be_read_are_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "suspects.json").write_text(text)
    (tmp_path / "batches").write_bytes(b"\x01not json\0" * 1000)
    isolation = Isolation(tmp_path)
    assert not refused(isolation, "a", 0, 9)
    assert isolations._read(tmp_path / "suspects.json") == {}
