from __future__ import annotations

import random
from pathlib import Path

import pytest

from mvserver.errors import SqlError
from spark_sinks.kafka import positions
from spark_sinks.kafka.carried import pack, unpack
from spark_sinks.kafka.jars import CONNECTOR
from spark_sinks.kafka.offset_log import batch_end_offsets
from spark_sinks.kafka.properties import TopicProperties


def at(*offsets: int) -> positions.Position:
    return positions.make_position("id", dict(enumerate(offsets)))


def test_distance_counts_offsets_and_new_partitions() -> None:
    assert positions.distance(at(3, 10), at(5, 10)) == 2
    assert positions.distance(at(3), at(5, 10)) == 12
    assert positions.distance(at(5, 1), at(3, 2)) == 1


def test_limit_moves_every_partition_in_proportion() -> None:
    assert positions.limited(at(0, 100), at(100, 1100), 110) == at(10, 200)
    assert positions.limited(at(0, 0), at(5, 5), 10) == at(5, 5)
    assert positions.limited(at(0, 0, 7), at(1000, 1000, 7), 1) == at(1, 1, 7)


def test_rounds_end_exactly_at_the_end() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(200):
        start = at(*(rng.randrange(50) for _ in range(4)))
        end = at(*(offset + rng.randrange(500) for offset in positions.offsets_of(start).values()))
        records = rng.randrange(1, 300)
        place, rounds = start, 0
        while not positions.reached(place, end):
            following = positions.limited(place, end, records)
            assert 0 < positions.distance(place, following) <= records + 4
            place, rounds = following, rounds + 1
        assert place == end
        assert rounds <= positions.distance(start, end) // records + 1


def test_reached() -> None:
    assert positions.reached(at(5, 5), at(5, 4))
    assert not positions.reached(at(5, 5), at(5, 6))
    assert not positions.reached(at(5), at(5, 1))
    assert positions.reached(at(5), at(5, 0))


def test_positions_of_another_topic_are_refused() -> None:
    other = positions.make_position("other", {0: 5})
    for operation in (positions.distance, positions.reached):
        with pytest.raises(SqlError) as caught:
            operation(at(5), other)
        assert caught.value.sqlstate == "55000"


@pytest.mark.parametrize(
    "wrong",
    [{}, {"topic_id": "x"}, {"topic_id": "x", "partitions": {"0": -1}}, {"topic_id": "x", "partitions": {"a": 1}}],
)
def test_not_a_position(wrong: dict[str, object]) -> None:
    with pytest.raises(SqlError) as caught:
        positions.offsets_of(wrong)
    assert caught.value.sqlstate == "XX001"


def test_connector_offsets() -> None:
    assert positions.connector_offsets("t", at(7, 0)) == '{"t": {"0": 7, "1": 0}}'
    assert positions.with_partitions(at(7), [0, 1, 2]) == at(7, 0, 0)


def test_packed_position_comes_back() -> None:
    rng = random.Random(7)
    long = positions.make_position("id", {partition: rng.randrange(10**12) for partition in range(2_000)})
    notes = pack(long, 16)
    assert len(notes) > 1
    assert max(map(len, notes)) <= 4096
    assert unpack(dict(enumerate(notes))) == long
    short = pack(at(1, 2), 1)
    assert unpack({0: short[0], 1: notes[1]}) == at(1, 2)  # a left-over of the longer one
    assert unpack({}) is None


def test_position_too_long_for_the_topic() -> None:
    rng = random.Random(7)
    long = positions.make_position("id", {partition: rng.randrange(10**12) for partition in range(2_000)})
    with pytest.raises(SqlError) as caught:
        pack(long, 1)
    assert caught.value.sqlstate == "54000"


def test_notes_that_do_not_belong_together() -> None:
    rng = random.Random(7)
    first, second = (
        pack(positions.make_position("id", {n: rng.randrange(10**12) for n in range(2_000)}), 16) for _ in range(2)
    )
    for notes in ({0: first[0], 1: second[1]}, {0: first[0]}, {0: "of another program"}):
        with pytest.raises(SqlError) as caught:
            unpack(notes)
        assert caught.value.sqlstate == "XX001"


def test_offset_log(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    log = tmp_path / "offsets" / "3"
    log.write_text('v1\n{"batchWatermarkMs":0}\n{"other":{"0":1}}\n{"t-1":{"0":123,"1":7}}')
    assert batch_end_offsets(str(tmp_path), 3, "t-1") == {0: 123, 1: 7}
    assert batch_end_offsets(f"file://{tmp_path}", 3, "other") == {0: 1}
    for batch_id, topic, content in ((3, "absent", None), (4, "t-1", None), (5, "t-1", ""), (6, "t-1", "v9\n{}\n{}")):
        if content is not None:
            (tmp_path / "offsets" / str(batch_id)).write_text(content)
        with pytest.raises(SqlError) as caught:
            batch_end_offsets(str(tmp_path), batch_id, topic)
        assert caught.value.sqlstate == "XX001"
    with pytest.raises(SqlError) as caught:
        batch_end_offsets("hdfs://somewhere/x", 3, "t-1")
    assert caught.value.sqlstate == "0A000"


def test_topic_properties() -> None:
    wanted = TopicProperties.from_properties(
        {"topic.partitions": 4, "topic.replicas": "2", "kafka.topic.retention.ms": 1000, "kafka.topic.x": True}
    )
    assert wanted == TopicProperties(4, 2, {"retention.ms": "1000", "x": "true"})
    assert TopicProperties.from_properties({}) == TopicProperties(-1, -1, {})
    assert TopicProperties.from_properties({"kafka.partitions": "3"}).partitions == 3


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"topic.partitions": 0}, 'property "topic.partitions" must be a number from 1 to 2147483647, not "0"'),
        ({"topic.replicas": "x"}, 'property "topic.replicas" must be a number from 1 to 32767, not "x"'),
        (
            {"topic.partitions": 1, "kafka.partitions": 2},
            'properties "topic.partitions" and "kafka.partitions" contradict each other',
        ),
    ],
)
def test_wrong_topic_properties(properties: dict[str, object], message: str) -> None:
    with pytest.raises(SqlError) as caught:
        TopicProperties.from_properties(properties)
    assert (caught.value.sqlstate, caught.value.message) == ("22023", message)


def test_missing_jars_looks_in_folder_and_cache(tmp_path: Path) -> None:
    cache, folder = tmp_path / "ivy", tmp_path / "jars"
    folder.mkdir()
    assert CONNECTOR.missing(None, ivy_home=cache) == tuple(jar.file_name for jar in CONNECTOR.jars)
    (folder / "spark-sql-kafka-0-10_2.13-4.2.0.jar").touch()
    (folder / "org.apache.kafka_kafka-clients-3.9.2.jar").touch()
    assert CONNECTOR.missing(folder, ivy_home=cache) == (
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
        "commons-pool2-2.13.1.jar",
    )
    cached = cache / "cache" / "org.apache.commons" / "commons-pool2" / "jars"
    cached.mkdir(parents=True)
    (cached / "commons-pool2-2.13.1.jar").touch()
    assert CONNECTOR.missing(folder, ivy_home=cache) == ("spark-token-provider-kafka-0-10_2.13-4.0.0.jar",)


@pytest.mark.parametrize("least", [1, 3, 100])
@pytest.mark.parametrize("ends", [(1000,), (1, 1, 1), (3,) * 200, (5000, *(7,) * 60), (0, 0, 90), (200, 3)])
def test_what_is_divisible_gets_fewer_until_it_is_not(ends: tuple[int, ...], least: int) -> None:
    start, end = at(*(0 for _ in ends)), at(*ends)
    if positions.divisible(start, end, least):
        shorter = positions.limited(start, end, least)
        assert positions.distance(start, shorter) < positions.distance(start, end)
        end = shorter
    assert not positions.divisible(start, end, least)
