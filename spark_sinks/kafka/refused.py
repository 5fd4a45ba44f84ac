"""Records that the brokers may refuse one by one: what is sent of each, and what instead of one that is refused."""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from spark_sinks.base import Refusal, RefusedLetterError, SinkRecords
from spark_sinks.kafka.errors import sentence

_log = logging.getLogger(__name__)


class Part(enum.Enum):
    RECORD = "record"
    LETTER = "letter"  # the same among the dead letters
    DELETION = "deletion"  # of the key of a row that is refused


@dataclass(frozen=True)
class Sent:
    """What is sent of the record of that number."""

    number: int
    part: Part


@dataclass(frozen=True)
class RefusableRecords:
    """Of a topic; ``letters`` is that of the records which it refuses. Without it they are left out."""

    topic: str
    letters: str | None

    def messages(self, records: SinkRecords) -> Iterator[tuple[Sent, dict[str, Any]]]:
        """All that is sent, as a producer takes it."""
        assert records.refusals is not None  # noqa: S101 - of these alone
        keyed, times = records.refusals.keyed, records.timestamps_ms
        for number, refusal in enumerate(records.refusals.found):
            key, value, time_ms = records.keys[number], records.values[number], times[number]
            headers = list(records.headers[number]) if records.headers else []
            message: dict[str, Any] = {"topic": self.topic, "key": key, "value": value}
            if time_ms is not None and time_ms > 0:
                message["timestamp"] = time_ms
            if refusal is None:
                yield Sent(number, Part.RECORD), {**message, "headers": headers} if headers else message
                continue
            if self.letters is not None:
                told = (("error.topic", self.topic), ("error.reason", refusal.reason))
                headers += [(name, text.encode()) for name, text in told]
                letter = {"topic": self.letters, "key": key, "value": value, "headers": headers}
                yield Sent(number, Part.LETTER), letter
            if keyed and value is not None and key is not None and not refusal.in_key:
                yield Sent(number, Part.DELETION), {**message, "value": None}

    def without(self, sent: Sent, reason: str, sqlstate: str, records: SinkRecords) -> SinkRecords:
        """What to write instead once this was refused. RefusedLetterError where it was a letter."""
        assert records.refusals is not None  # noqa: S101 - of these alone
        former = records.refusals.found[sent.number]
        if sent.part is Part.RECORD:
            refusal = Refusal(reason)
        else:
            assert former is not None  # noqa: S101 - else it would have been sent as a record
            if sent.part is Part.LETTER:
                raise RefusedLetterError(
                    sqlstate,
                    f'the topic of dead letters "{self.letters}" refuses a record',
                    detail=f'{sentence(reason)} The record was refused by topic "{self.topic}": '
                    f"{sentence(former.reason)}",
                    hint="Let it have larger records (max.message.bytes), and start the query again.",
                )
            refusal = replace(former, in_key=True)
        _log.warning("topic %s refuses a record: %s", self.topic, reason)
        return replace(records, refusals=records.refusals.with_one(sent.number, refusal))
