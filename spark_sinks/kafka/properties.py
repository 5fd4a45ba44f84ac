"""The properties that CREATE ENTITY, CREATE STREAM and CSAS may give a topic that is made for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError

CONFIG = "kafka.topic."
PARTITIONS = ("topic.partitions", "kafka.partitions")
REPLICAS = ("topic.replicas", "kafka.replicas")
_DEFAULT = -1  # the broker's own
_PARTITIONS_MAX = 2**31 - 1
_REPLICAS_MAX = 2**15 - 1


@dataclass(frozen=True)
class TopicProperties:
    """-1 is the broker's default. Names are checked already; the values of ``configs`` are the broker's to judge."""

    partitions: int = _DEFAULT
    replicas: int = _DEFAULT
    configs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> TopicProperties:
        configs: dict[str, str] = {}
        for key, value in properties.items():
            if key.startswith(CONFIG) and len(key) > len(CONFIG):
                configs[key.removeprefix(CONFIG)] = _text(value)
        return cls(
            _number(properties, PARTITIONS, _PARTITIONS_MAX), _number(properties, REPLICAS, _REPLICAS_MAX), configs
        )


def _number(properties: Mapping[str, Any], keys: tuple[str, ...], most: int) -> int:
    given = [(key, properties[key]) for key in keys if properties.get(key) is not None]
    if not given:
        return _DEFAULT
    numbers = set()
    for key, value in given:
        text = str(value)
        if isinstance(value, bool) or not text.isascii() or not text.isdigit() or not 0 < int(text) <= most:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{key}" must be a number from 1 to {most}, not "{value}"',
            )
        numbers.add(int(text))
    if len(numbers) > 1:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f'properties "{keys[0]}" and "{keys[1]}" contradict each other'
        )
    return numbers.pop()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
