"""A cluster's errors in words that a user can read: one place for their codes and their words."""

from __future__ import annotations

import re

from confluent_kafka import KafkaError, KafkaException

from mvserver import sqlstates
from mvserver.errors import SqlError

_AFTER = re.compile(r" \(after \d+ms in state \w+(, \d+ identical error\(s\) suppressed)?\)")

# A partition has no leader for a moment: it was just made, or its leader moves. The same request goes through soon.
_ELECTING = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)
_UNREACHABLE = _ELECTING | frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._SSL,
        KafkaError._AUTHENTICATION,
        KafkaError._WAIT_COORD,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.SASL_AUTHENTICATION_FAILED,
    }
)
_NOT_ALLOWED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_WRONG_VALUE = frozenset(
    {
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_REPLICA_ASSIGNMENT,
        KafkaError.INVALID_CONFIG,
        KafkaError.POLICY_VIOLATION,
    }
)
_TOO_LARGE = frozenset(
    {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._BAD_MSG, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_MSG_SIZE}
)
# said of one record, whatever is written with it
_OF_RECORD = _TOO_LARGE | frozenset({KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD, KafkaError.INVALID_TIMESTAMP})


def could_not_connect(store: str, detail: str | None) -> SqlError:
    return SqlError(sqlstates.CONNECTION_FAILURE, f'could not connect to store "{store}"', detail=sentence(detail))


def no_entity(store: str, topic: str) -> SqlError:
    return SqlError(sqlstates.UNDEFINED_OBJECT, f'entity "{topic}" does not exist in store "{store}"')


def entity_exists(store: str, topic: str) -> SqlError:
    return SqlError(sqlstates.DUPLICATE_OBJECT, f'entity "{topic}" already exists in store "{store}"')


def unreachable(error: KafkaError) -> bool:
    """The cluster did not answer, or not yet: the same request may go through later."""
    return error.code() in _UNREACHABLE


def electing(error: KafkaError) -> bool:
    """The brokers are choosing a partition's leader, or have not all heard of it: a matter of milliseconds."""
    return error.code() in _ELECTING


def reported(store: str, topic: str | None, error: KafkaError, last_connection_error: str | None = None) -> SqlError:
    """The error for a request about a store or one of its topics."""
    code = error.code()
    if code in _UNREACHABLE:
        return could_not_connect(store, last_connection_error or error.str())
    if topic is not None:
        if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
            return no_entity(store, topic)
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            return entity_exists(store, topic)
        if code == KafkaError.TOPIC_EXCEPTION:
            return SqlError(
                sqlstates.INVALID_NAME, f'invalid entity name "{topic}"', detail=sentence(plain(error.str()))
            )
    state, message = sqlstates.SYSTEM_ERROR, f'store "{store}" reports an error'
    if code in _NOT_ALLOWED:
        state, message = sqlstates.INSUFFICIENT_PRIVILEGE, f'store "{store}" does not allow the request'
    elif code in _WRONG_VALUE:
        state, message = sqlstates.INVALID_PARAMETER_VALUE, f'store "{store}" refuses the properties of the entity'
    elif code in _TOO_LARGE:
        state, message = sqlstates.PROGRAM_LIMIT_EXCEEDED, f'a record is too large for store "{store}"'
    if topic is not None:
        message += f' "{topic}"' if code in _WRONG_VALUE else f' for entity "{topic}"'
    return SqlError(state, message, detail=sentence(plain(error.str())))


def of_record(error: KafkaError) -> bool:
    """A record is to blame, or one that was sent together with it."""
    return error.code() in _OF_RECORD


def kafka_error(error: KafkaException) -> KafkaError:
    """The structured error inside the exception."""
    found: KafkaError = error.args[0]
    return found


def plain(text: str) -> str:
    """librdkafka's text without its own state names."""
    return _AFTER.sub("", text).removeprefix("Broker: ").removeprefix("Local: ")


def sentence(text: str | None) -> str | None:
    if not text:
        return None
    text = plain(text).strip()
    return text if text.endswith((".", "?", "!")) else text + "."
