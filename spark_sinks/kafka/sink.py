"""Output to a topic, each record exactly once: records and the source position they come from in one transaction.

The position travels as metadata of an offset commit on the sink's topic (see ``carried``), under a consumer group that
is the query's own. After any stop the writer reads it back and goes on from there. Opening the sink ends whatever an
earlier process of the same query left open, and makes that process unable to write any more, before the position is
read: so nothing can be committed behind the reader's back.

Brokers forget a group's offsets some days after the last commit (``offsets.retention.minutes``, 7 days by default), so
an idle query calls :meth:`KafkaSink.renew` once a day, and one that has written says so when it asks back.

Records that may be refused one by one are written without those that the brokers do not take, which go to another topic
in the same transaction. The brokers refuse whole batches, so all is sent again, each record as a batch of its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Header, Position, SinkRecords
from spark_sinks.kafka.admin import Cluster, client_settings
from spark_sinks.kafka.carried import pack, unpack
from spark_sinks.kafka.errors import could_not_connect, kafka_error, of_record, plain, reported, sentence, unreachable
from spark_sinks.kafka.limits import KAFKA_RECORD_BYTES_MAX, KAFKA_TIMEOUT_S, KAFKA_TRANSACTION_TIMEOUT_S
from spark_sinks.kafka.options import KafkaOptions
from spark_sinks.kafka.refused import RefusableRecords, Sent

_log = logging.getLogger(__name__)
_QUEUE_FULL_POLL_S = 0.05
_RETRY_PAUSE_S = 0.1
_ATTEMPT_S = 2.0  # one call into the client; the deadline is kept over several
_UNSTABLE_S = 10.0  # by the protocol it takes no time once the sink is open, but for a coordinator that is starting
_FENCED = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})
# said of a group's offsets while they, or who keeps them, are not decided
_UNDECIDED = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
# said of records that are thrown away because of another error
_PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})


class KafkaSink:
    """For one thread at a time.

    After an error of :meth:`write` nothing of it is visible, with one exception: when the cluster goes away during the
    commit, its outcome is not known. Then, and when another writer has taken over, the sink refuses further writes;
    make a new one and ask it for :meth:`committed_position`.
    """

    def __init__(
        self,
        store: str,
        options: KafkaOptions,
        topic: str,
        query_id: str,
        *,
        timeout_s: float = KAFKA_TIMEOUT_S,
        letters: str | None = None,
    ) -> None:
        """``letters`` is the topic of records that are refused; without it they are left out."""
        self._store = store
        self._options = options
        self._topic = topic
        self._identity = f"mvserver-{query_id}"
        self._timeout_s = timeout_s
        self._cluster = Cluster(store, options, timeout_s=timeout_s)
        self._producer: Producer | None = None
        self._group: Consumer | None = None
        self._partitions: tuple[int, ...] = ()
        self._places: list[tuple[str, int]] = []  # all that it writes to
        self._in_transaction = False
        self._known: tuple[Position | None] | None = None  # what the caller has read or written last
        self._undone = False
        self._refused: KafkaError | None = None  # why a record of the present transaction was not taken
        # Where records may be refused, of the present transaction: whether a batch was, and which records surely are.
        # ``_singly``: each record is a batch of its own.
        self._refusable = RefusableRecords(topic, letters)
        self._suspected = False
        self._proved: dict[Sent, KafkaError] = {}
        self._singly = False
        self._broken: SqlError | None = None

    def open(self) -> None:
        """Fences off an earlier writer of the same query; its open transaction is aborted. Harmless when open."""
        if self._broken is not None:
            raise self._broken
        if self._producer is not None:
            return
        self._partitions = self._cluster.topic(self._topic).partitions  # a producer might make a missing topic
        self._places = [(self._topic, partition) for partition in self._partitions]
        letters = self._refusable.letters
        if letters is not None:
            self._places += [(letters, partition) for partition in self._cluster.topic(letters).partitions]
        producer = Producer(
            {
                **client_settings(self._options),
                "transactional.id": self._identity,
                "transaction.timeout.ms": int(KAFKA_TRANSACTION_TIMEOUT_S * 1000),
                "socket.timeout.ms": int(self._timeout_s * 1000),  # some calls keep to it rather than to their time-out
                "acks": "all",
                "partitioner": "murmur2_random",  # as Java's producers do, so that equal keys meet
                "delivery.report.only.error": True,
                "compression.type": "lz4",
                "message.max.bytes": KAFKA_RECORD_BYTES_MAX,  # the topic's own bound is the broker's to keep
                "linger.ms": 5,
                **({"batch.num.messages": 1} if self._singly else {}),
            }
        )
        try:
            self._until_done(producer.init_transactions, self._deadline())
        except KafkaException as error:
            raise self._named(kafka_error(error)) from error
        self._producer = producer
        self._group = Consumer(
            {
                **client_settings(self._options),
                "group.id": self._identity,
                "enable.auto.commit": False,
                "allow.auto.create.topics": False,
            }
        )

    def committed_position(self, *, expected: bool = False) -> Position | None:
        """The source position of the last committed write; None when there was none.

        ``expected``: the caller knows of an earlier write. The brokers' having forgotten it is then an error (55000),
        since starting anew would double the output.
        """
        self.open()
        position = self._read_position()
        self._known = (position,)
        if position is None and expected and not self._undone:
            raise SqlError(
                sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                f'topic "{self._topic}" in store "{self._store}" does not have the position of what was written to it',
                detail=f'Its brokers have forgotten the offsets of group "{self._identity}", or the topic was deleted '
                "and created again.",
                hint="Create the query anew, from the position where its output shall go on.",
            )
        return position

    def write(self, records: SinkRecords, position: Position) -> None:
        """All records and the position, or nothing. A time that is None or before 1970 becomes the time of writing.

        Where records may be refused, the transaction is tried again without each that is, so it may take long.
        """
        try:
            while (refused := self._tried(records, position)) is not None:
                for sent, error in self._proved.items():
                    records = self._refusable.without(sent, plain(error.str()), refused.sqlstate, records)
                self._singly = self._singly or not self._proved
        finally:
            if self._singly:
                self._singly = False
                self._discard()  # the next write sends batches again

    def _tried(self, records: SinkRecords, position: Position) -> SqlError | None:
        """Writes them; else why not, where that is to be tried again."""
        try:
            self._write(records, position)
        except SqlError as error:
            if records.refusals is None or self._broken is not None or not self._suspected:
                raise
            if not self._proved and self._singly:
                raise
            return error
        return None

    def _write(self, records: SinkRecords, position: Position) -> None:
        self._reopen()
        producer, deadline = self._writer(), self._deadline()
        notes = pack(position, len(self._partitions))
        try:
            if self._in_transaction:  # what an interrupted call left
                self._until_done(producer.abort_transaction, deadline)
            self._refused, self._suspected, self._proved = None, False, {}
            producer.begin_transaction()
            self._in_transaction = True
            if records.refusals is None:
                headers = records.headers or repeat((), len(records.keys))
                self._produce(producer, zip(records.keys, records.values, records.timestamps_ms, headers, strict=True))
            else:
                self._produce_each(producer, records)
            self._carry(producer, notes)
        except KafkaException as error:
            raise self._abort(producer, kafka_error(error)) from error
        self._commit(producer)
        self._known = (position,)

    def renew(self, position: Position) -> None:
        """Commits the position again, so that the brokers do not forget it."""
        self.write(SinkRecords((), (), ()), position)

    def close(self) -> None:
        """What is open is aborted where the cluster answers, else by the broker's own time-out."""
        if self._producer is not None and self._in_transaction and self._broken is None:
            try:
                self._producer.abort_transaction(_ATTEMPT_S)
            except KafkaException as error:
                _log.info("transaction %s was left open: %s", self._identity, kafka_error(error).str())
        self._discard()
        self._cluster.close()

    # --- opening and reading back ----------------------------------------------------------------------------------
    def _reopen(self) -> None:
        """Opens for a write. Opening again, after an error, fences off whoever wrote in the meantime: then what this
        caller is about to write may be there already."""
        if self._broken is None and self._producer is not None:
            return
        self.open()
        if self._known is not None and self._read_position() != self._known[0]:
            self._broken = SqlError(
                sqlstates.OBJECT_IN_USE,
                f'the output to topic "{self._topic}" in store "{self._store}" is not where this writer left it',
                detail="Another writer has written in between, or the brokers have undone the last transaction.",
            )
            raise self._broken

    def _read_position(self) -> Position | None:
        position = unpack(self._stable_notes())
        if self._producer is None:  # a transaction had to be ended
            self.open()
        return position

    def _stable_notes(self) -> dict[int, str]:
        repair_at: float | None = time.monotonic() + min(_UNSTABLE_S, self._timeout_s)
        deadline = time.monotonic() + min(_UNSTABLE_S, self._timeout_s) + self._timeout_s
        while True:
            notes = self._committed_notes()
            if notes is not None:
                return notes
            now = time.monotonic()
            if repair_at is not None and now > repair_at:
                self._end_hanging_transaction()
                repair_at = None
            elif now > deadline:
                raise could_not_connect(self._store, "An earlier transaction of this query does not end")
            time.sleep(_RETRY_PAUSE_S)

    def _committed_notes(self) -> dict[int, str] | None:
        """The metadata of the group's committed offsets; None while they are not decided: some of them belong to a
        transaction that has not ended, or their coordinator is only starting.

        A consumer asks, since librdkafka's admin client reads through a null pointer where the broker asked is not
        the coordinator any more (its issue 5040), which ends the process.
        """
        self.open()
        assert self._group is not None  # noqa: S101 - open() makes it
        places = [TopicPartition(self._topic, partition) for partition in self._partitions]
        try:
            found = self._group.committed(places, min(_ATTEMPT_S, self._timeout_s))
        except KafkaException as error:
            refused = kafka_error(error)
            if refused.code() not in _UNDECIDED:
                raise self._named(refused) from error
            self._cluster.topic(self._topic)  # raises where nobody answers
            return None
        for place in found:
            if place.error is not None:
                raise self._named(place.error)
        return {place.partition: place.metadata for place in found if place.metadata}

    def _end_hanging_transaction(self) -> None:
        """Aborts what a broker has left open though its coordinator counts it as ended.

        Seen on a broker that was killed within milliseconds of a commit: after its start it drops the markers of the
        transaction instead of writing them, so that records and position stay undecided, and readers of the topic
        wait. Opening the sink should have ended them; as it did not, the markers of a new transaction over the same
        partitions do. It is aborted: nobody has seen those records, and the position goes back with them.
        """
        producer = self._writer()
        _log.warning("transaction %s hangs on topic %s and is aborted", self._identity, self._topic)
        try:
            producer.begin_transaction()
            self._in_transaction = True
            for topic, partition in self._places:
                producer.produce(topic, key=b"mvserver", value=None, partition=partition)
            self._carry(producer, [""] * len(self._partitions))
            producer.flush(self._timeout_s)  # only partitions that have something get a marker
            self._until_done(producer.abort_transaction, self._deadline())
        except KafkaException as error:
            raise self._abort(producer, kafka_error(error)) from error
        self._discard()
        self._undone = True

    # --- the steps of a transaction --------------------------------------------------------------------------------
    def _writer(self) -> Producer:
        assert self._producer is not None  # noqa: S101 - open() makes it
        return self._producer

    def _produce(
        self,
        producer: Producer,
        records: Iterable[tuple[bytes | None, bytes | None, int | None, Sequence[Header]]],
    ) -> None:
        topic = self._topic
        for key, value, timestamp, headers in records:
            arguments: dict[str, Any] = {"topic": topic, "key": key, "value": value, "on_delivery": self._on_delivery}
            if headers:
                arguments["headers"] = list(headers)
            if timestamp is not None and timestamp > 0:
                arguments["timestamp"] = timestamp
            self._send(producer, arguments)
        producer.poll(0)

    def _produce_each(self, producer: Producer, records: SinkRecords) -> None:
        """Those that are refused to the letters, and the others."""
        for sent, message in self._refusable.messages(records):
            message["on_delivery"] = partial(self._on_delivery_of, sent)
            try:
                self._send(producer, message)
            except KafkaException as error:
                if of_record(kafka_error(error)):
                    self._suspected = True
                    self._proved[sent] = kafka_error(error)
                raise
        producer.poll(0)

    def _send(self, producer: Producer, message: dict[str, Any]) -> None:
        try:
            producer.produce(**message)
        except BufferError:
            self._make_room(producer, message)

    def _on_delivery_of(self, sent: Sent, error: KafkaError | None, message: Message) -> None:
        self._on_delivery(error, message)
        if error is not None and of_record(error):
            self._suspected = True
            if self._singly:
                self._proved[sent] = error

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._refused is None and error.code() not in _PURGED:
            self._refused = error

    def _make_room(self, producer: Producer, arguments: dict[str, Any]) -> None:
        deadline = self._deadline()
        while True:
            waiting = len(producer)
            producer.poll(_QUEUE_FULL_POLL_S)
            if len(producer) < waiting:
                deadline = self._deadline()  # slow is not dead
            try:
                producer.produce(**arguments)
            except BufferError:
                if time.monotonic() > deadline:
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT_QUEUE)) from None
            else:
                return

    def _carry(self, producer: Producer, notes: Sequence[str]) -> None:
        assert self._group is not None  # noqa: S101 - open() makes it
        offsets = [
            TopicPartition(self._topic, partition, 0, note)
            for partition, note in zip(self._partitions, notes, strict=False)
        ]
        group = self._group.consumer_group_metadata()
        self._until_done(
            lambda timeout: producer.send_offsets_to_transaction(offsets, group, timeout), self._deadline()
        )

    def _commit(self, producer: Producer) -> None:
        try:
            self._until_done(producer.commit_transaction, time.monotonic() + KAFKA_TRANSACTION_TIMEOUT_S)
        except KafkaException as raised:
            error = kafka_error(raised)
            if error.txn_requires_abort() or error.fatal() or error.code() in _FENCED:
                raise self._abort(producer, error) from raised
            detail = self._cluster.connection_error() or error.str()
            self._broken = SqlError(
                sqlstates.CONNECTION_FAILURE,
                f'store "{self._store}" went away during a commit',
                detail=f"{sentence(detail)} Whether the last records were written is known when it is back.",
            )
            raise self._broken from raised
        self._in_transaction = False

    def _abort(self, producer: Producer, error: KafkaError) -> SqlError:
        """Ends the transaction and gives the error to raise."""
        if error.fatal() or error.code() in _FENCED:
            self._broken = self._named(error)
            return self._broken
        try:
            producer.poll(0)
            self._until_done(producer.abort_transaction, self._deadline())
        except KafkaException as failed:
            # The next opening ends what stays open, or says what keeps it from doing so.
            _log.info("transaction %s could not be aborted: %s", self._identity, kafka_error(failed).str())
        # Once a record was refused, every later call fails, without saying why.
        named = self._named(self._refused or error)
        self._discard()
        return named

    def _discard(self) -> None:
        """The next write begins with a new producer: one whose records were refused or thrown away goes on with wrong
        sequence numbers."""
        self._in_transaction = False
        self._producer = None
        if self._group is not None:
            self._group.close()
            self._group = None

    # --- errors and time -------------------------------------------------------------------------------------------
    def _named(self, error: KafkaError) -> SqlError:
        if error.code() in _FENCED:
            return SqlError(
                sqlstates.OBJECT_IN_USE,
                f'another writer has taken over the output to topic "{self._topic}" in store "{self._store}"',
                detail=f"Transactional id {self._identity} has a newer producer.",
            )
        if error.fatal() and not unreachable(error):
            return SqlError(
                sqlstates.SYSTEM_ERROR,
                f'output to topic "{self._topic}" in store "{self._store}" cannot go on',
                detail=sentence(plain(error.str())),
            )
        if unreachable(error):
            return could_not_connect(self._store, self._cluster.connection_error() or error.str())
        return reported(self._store, self._topic, error)

    def _deadline(self) -> float:
        return time.monotonic() + self._timeout_s

    @staticmethod
    def _until_done(call: Callable[[float], Any], deadline: float) -> None:
        """A retriable error means that the same call is to be made again, in which the client goes on where it was."""
        while True:
            try:
                call(max(0.1, min(_ATTEMPT_S, deadline - time.monotonic())))
            except KafkaException as error:
                if not kafka_error(error).retriable() or time.monotonic() + _RETRY_PAUSE_S > deadline:
                    raise
                time.sleep(_RETRY_PAUSE_S)
            else:
                return
