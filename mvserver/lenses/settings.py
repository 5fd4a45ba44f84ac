"""SET of a program: what acts here, what is accepted with a notice, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mvserver import sqlstates
from mvserver.lenses.problems import Place, Problems, problem
from mvserver.lenses.program import Program, SetKey

_ENGINE: Mapping[str, str] = {
    "commit.interval.ms": "rows and positions are committed together with each batch",
    "processing.guarantee": "records are written exactly once",
    "enable.auto.commit": "positions are committed with the rows, not by the consumer",
    "num.stream.threads": "Spark reads the partitions of a topic in parallel",
    "cache.max.bytes.buffering": "state is kept in DuckDB; the server's memory is set for all queries",
    "max.poll.records": "the server's setting max_records_per_trigger bounds a batch",
    "state.dir": "state is in the server's data directory",
    "application.id": "the processor's queries have ids of their own, and read without a consumer group",
    "group.id": "the processor's queries have ids of their own, and read without a consumer group",
}
_READ = "topics are read by Spark's connector, whose settings are the server's"
_WRITTEN = "records are written by the server's own producers, whose settings are fixed"
_STREAMS = "the processor is run by Spark and DuckDB, not by Kafka Streams"
_ENGINE_PREFIXES = {
    "rocksdb.": "state is kept in DuckDB, not in RocksDB", "consumer.": _READ, "main.consumer.": _READ,
    "restore.consumer.": _READ, "producer.": _WRITTEN,
}  # fmt: skip
_CLIENTS: Mapping[str, str] = {
    "isolation.level": "committed records alone are read",
    "acks": "all replicas in sync acknowledge a record",
    "enable.idempotence": "records are written exactly once",
    **dict.fromkeys(
        (
            "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "heartbeat.interval.ms",
            "max.partition.fetch.bytes", "max.poll.interval.ms", "partition.assignment.strategy",
            "receive.buffer.bytes", "session.timeout.ms",
        ),
        _READ,
    ),
    **dict.fromkeys(
        (
            "batch.size", "buffer.memory", "compression.type", "delivery.timeout.ms", "linger.ms", "max.block.ms",
            "max.in.flight.requests.per.connection", "max.request.size", "retries", "send.buffer.bytes",
            "transaction.timeout.ms",
        ),
        _WRITTEN,
    ),
    **dict.fromkeys(
        (
            "acceptable.recovery.lag", "buffered.records.per.partition", "max.task.idle.ms", "max.warmup.replicas",
            "metadata.max.age.ms", "metrics.recording.level", "num.standby.replicas", "poll.ms",
            "probing.rebalance.interval.ms", "reconnect.backoff.max.ms", "reconnect.backoff.ms",
            "replication.factor", "request.timeout.ms", "retry.backoff.ms", "state.cleanup.delay.ms",
            "task.timeout.ms", "topology.optimization", "upgrade.from",
        ),
        _STREAMS,
    ),
}  # fmt: skip
"""Keys of Kafka's consumers, producers and streams that programs set."""
_TOPIC = re.compile(r"topic\.(?:`(?P<quoted>[^`]+)`|(?P<plain>[^.`]+))\.(?P<key>.+)")
_SCHEMA_NAMES = re.compile(r"(key|value)\.avro\.(record|namespace)")
_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_READ_POLICIES = {"continue": "IGNORE_AND_LOG", "fail": "TERMINATE", "dlq": "IGNORE_AND_LOG"}
_HINT = (
    "Settings are defaults.topic.autocreate, .partitions, .replication and settings of topics, topic.`name`.*, "
    "error.policy, error.policy.read, error.policy.write, dead.letter.queue, nullability and auto.offset.reset."
)


@dataclass(frozen=True)
class TopicSettings:
    """Of a topic that is made. ``config`` are Kafka's own settings, ``names`` those of records of Avro, by the keys
    ``value.avro.record``, ``value.avro.namespace`` and the same of the key."""

    partitions: int | None = None
    replication: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DeadLetterTopic:
    """Where records go that cannot be ``read``, or ``written``; ``place`` is that of the setting."""

    name: str
    place: Place
    read: bool
    written: bool


@dataclass(frozen=True)
class ProgramSettings:
    autocreate: bool = False
    defaults: TopicSettings = TopicSettings()
    topics: Mapping[str, TopicSettings] = field(default_factory=dict)
    autocreate_of: Mapping[str, bool] = field(default_factory=dict)
    starting: str = "earliest"
    error_handling: str | None = None  # of records that cannot be read
    dead_letters: DeadLetterTopic | None = None
    writing: str = "fail"  # what becomes of records that cannot be written: fail, continue or dlq
    nullability: str = "warn"  # of values that may be NULL where the original takes none: warn, strict or ignore
    notices: tuple[tuple[str, str], ...] = ()  # keys without effect, and what holds here

    def creates(self, topic: str) -> bool:
        return self.autocreate_of.get(topic, self.autocreate)

    def of_topic(self, topic: str) -> TopicSettings:
        own, all_ = self.topics.get(topic, TopicSettings()), self.defaults
        return TopicSettings(
            own.partitions or all_.partitions,
            own.replication or all_.replication,
            {**all_.config, **own.config},
            {**all_.names, **own.names},
        )


def read_settings(program: Program, problems: Problems) -> ProgramSettings:
    reader = _Reader()
    for each in program.settings:
        with problems.collecting():
            reader.read(each)
    return reader.result(problems)


class _Reader:
    def __init__(self) -> None:
        self._autocreate: dict[str | None, bool] = {}
        self._counts: dict[tuple[str | None, str], int] = {}
        self._config: dict[str | None, dict[str, str]] = {}
        self._names: dict[str | None, dict[str, str]] = {}
        self._starting = "earliest"
        self._reading: SetKey | None = None
        self._writing: SetKey | None = None
        self._dead_letters: SetKey | None = None
        self._nullability = "warn"
        self._notices: dict[str, str] = {}

    def read(self, given: SetKey) -> None:
        key = given.key
        topic = _TOPIC.fullmatch(key)
        without_effect = (
            _ENGINE.get(key)
            or _CLIENTS.get(key)
            or next((words for prefix, words in _ENGINE_PREFIXES.items() if key.startswith(prefix)), None)
        )
        if key.startswith("defaults.topic."):
            self._topic(None, key.removeprefix("defaults.topic."), given)
        elif topic is not None:
            self._topic(topic["quoted"] or topic["plain"], topic["key"], given)
        elif key == "auto.offset.reset":
            self._starting = _choice(given, ("earliest", "latest"))
        elif key == "nullability":
            self._nullability = _choice(given, ("warn", "strict", "ignore"))
        elif key in ("error.policy", "error.policy.read", "error.policy.write"):
            self._policy(given)
        elif key == "dead.letter.queue":
            self._dead_letters = given
        elif without_effect is not None:
            self._notices[key] = without_effect
        else:
            raise problem(given.place, sqlstates.INVALID_PARAMETER_VALUE, f'setting "{key}" is not known', _HINT)

    def _topic(self, topic: str | None, key: str, given: SetKey) -> None:
        if key == "autocreate":
            self._autocreate[topic] = _choice(given, ("true", "false")) == "true"
        elif key in ("partitions", "replication"):
            if not given.value.isdigit() or not 0 < int(given.value[:9]) <= 100_000:
                raise problem(
                    given.place, sqlstates.INVALID_PARAMETER_VALUE, f'setting "{given.key}" is a number of 1 or more'
                )
            self._counts[topic, key] = int(given.value)
        elif _SCHEMA_NAMES.fullmatch(key):
            parts = given.value.split(".") if key.endswith("namespace") else [given.value]
            if not all(map(_AVRO_NAME.fullmatch, parts)):
                raise problem(
                    given.place,
                    sqlstates.INVALID_PARAMETER_VALUE,
                    f'setting "{given.key}" is no name of Avro',
                    "Such a name has letters, digits and _, and begins with no digit.",
                )
            self._names.setdefault(topic, {})[key] = given.value
        else:
            self._config.setdefault(topic, {})[key] = given.value

    def _policy(self, given: SetKey) -> None:
        _choice(given, ("continue", "fail", "dlq"))
        if given.key != "error.policy.write":
            self._reading = given
        if given.key != "error.policy.read":
            self._writing = given

    def _dead_letter_topic(self) -> DeadLetterTopic | None:
        """Where ``dlq`` writes to. The setting alone does nothing."""
        topic = self._dead_letters
        policies = (self._reading, self._writing)
        wanted = [each for each in policies if each is not None and _policy_of(each) == "dlq"]
        if topic is None and wanted:
            raise problem(
                wanted[0].place,
                sqlstates.INVALID_PARAMETER_VALUE,
                f'setting "{wanted[0].key}" = dlq needs the setting "dead.letter.queue"',
                "SET dead.letter.queue = 'topic' names the topic of rejected records.",
            )
        if topic is None:
            return None
        if not topic.value:
            raise problem(topic.place, sqlstates.INVALID_PARAMETER_VALUE, f'setting "{topic.key}" names no topic')
        if not wanted:
            self._notices[topic.key] = "records go there with error.policy = dlq"
            return None
        return DeadLetterTopic(topic.value, topic.place, self._reading in wanted, self._writing in wanted)

    def result(self, problems: Problems) -> ProgramSettings:
        dead_letters = None
        with problems.collecting():
            dead_letters = self._dead_letter_topic()
        names = {name for name, _ in self._counts if name} | {name for name in (*self._config, *self._names) if name}
        return ProgramSettings(
            self._autocreate.get(None, False),
            self._of(None),
            {name: self._of(name) for name in names},
            {name: flag for name, flag in self._autocreate.items() if name is not None},
            self._starting,
            None if self._reading is None else _READ_POLICIES[_policy_of(self._reading)],
            dead_letters,
            _policy_of(self._writing) if self._writing is not None else "fail",
            self._nullability,
            tuple(self._notices.items()),
        )

    def _of(self, topic: str | None) -> TopicSettings:
        partitions, replication = (self._counts.get((topic, key)) for key in ("partitions", "replication"))
        return TopicSettings(partitions, replication, self._config.get(topic, {}), self._names.get(topic, {}))


def _policy_of(given: SetKey) -> str:
    return given.value.lower()


def _choice(given: SetKey, allowed: tuple[str, ...]) -> str:
    value = given.value.lower()
    if value not in allowed:
        raise problem(
            given.place,
            sqlstates.INVALID_PARAMETER_VALUE,
            f'setting "{given.key}" cannot be "{given.value}"',
            f"It is one of {', '.join(allowed)}.",
        )
    return value
