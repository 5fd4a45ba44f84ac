"""``FROM relation WITH ('key' = value)``: what a query may say about how it reads its source."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from sqlglot import exp

from mvserver import sqlstates
from mvserver.compiler.plans import ErrorHandling, Scan, ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.errors import SqlError
from mvserver.sql.statements.base import Properties
from mvserver.sql.types import Kind

STARTING_POSITION = "starting.position"
TIMESTAMP = "timestamp"
TIMESTAMP_FORMAT = "timestamp.format"
ERROR_HANDLING = "source.deserialization.error.handling"
WATERMARK_DELAY = "watermark.delay.millis"
IDLE_TIMEOUT = "source.idle.timeout.millis"
STATE_TTL = "state.ttl.millis"
ACCEPTED = (STARTING_POSITION, TIMESTAMP, TIMESTAMP_FORMAT, ERROR_HANDLING, WATERMARK_DELAY, IDLE_TIMEOUT)

# What DeltaStream has, and what to do here instead.
_EXPRESSION_ERRORS = "Leave out by WHERE, or by CASE, the values that an expression cannot take."
_RESUMED = "RESTART QUERY goes on with a query where it stood."
_LATER = {
    "expression.error.handling": _EXPRESSION_ERRORS,
    "source.deserialization.error.log.topic": "Rejected records are in mv_catalog.rejected_rows.",
    "source.deserialization.error.log.store": "Rejected records are in mv_catalog.rejected_rows.",
    "postgresql.slot.name": "Tables whose changes come by replication slots have it.",
}
_QUERY_LATER = {
    "parallelism.max": "Spark's master and its resources are settings of the server.",
    "query.name": "A query is known by its id, and by the relation that it writes: see mv_catalog.queries.",
    "resume.from.query.id": _RESUMED,
    "resume.from.query.name": _RESUMED,
    "resume.from.query.version": _RESUMED,
    "expression.error.handling": _EXPRESSION_ERRORS,
}
MILLIS_MAX = 36_600 * 86_400_000
_MOMENT_MS_MAX = 253_402_300_799_999  # the year 9999
_EVENT_TIME_KINDS = frozenset({Kind.BIGINT, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ})


def scan_of(relation: RelationShape, table: exp.Expression, default_starting: str) -> Scan:
    """The relation as this query reads it: its own defaults, overridden by the properties after its name."""
    properties = table.meta.get("properties")
    if not isinstance(properties, Properties):
        properties = Properties()
    _check_keys(properties, "source", (*ACCEPTED, *(name for name, _ in relation.reading)), _LATER)
    timestamp = relation.timestamp
    if TIMESTAMP in properties:
        timestamp = _event_time(relation, str(properties[TIMESTAMP]), properties.position(TIMESTAMP)).name
    return Scan(
        relation_id=relation.id,
        relation=relation.name,
        columns=relation.columns,
        value_format=relation.value_format,
        timestamp=timestamp,
        timestamp_format=_choice(properties, TIMESTAMP_FORMAT, ("sql", "iso8601"), relation.timestamp_format),
        starting_position=_starting(properties, default_starting),
        error_handling=ErrorHandling(
            _choice(properties, ERROR_HANDLING, tuple(e.value for e in ErrorHandling), relation.error_handling.value)
        ),
        kind=relation.kind,
        primary_key=relation.primary_key,
        key_format=relation.key_format,
        key_only=relation.key_only,
        partition_columns=relation.partition_columns,
        metadata=relation.metadata,
        value_schema=relation.value_schema,
        key_schema=relation.key_schema,
        value_delimiter=relation.value_delimiter,
        value_checked=relation.value_checked,
        watermark_delay_ms=millis(properties, WATERMARK_DELAY) or 0,
        idle_timeout_ms=millis(properties, IDLE_TIMEOUT) or None,
        reading=tuple(
            (name, value) for name, own in relation.reading if (value := _reading(properties, name, own)) is not None
        ),
    )


def _reading(properties: Properties, name: str, own: str | None) -> str | None:
    """A text; what it means is the store's matter."""
    if name not in properties:
        return own
    given = properties[name]
    if not isinstance(given, str) or not given.strip():
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{name}" must be a text',
            position=properties.position(name),
        )
    return given.strip()


def query_properties(select: exp.Expression) -> dict[str, int]:
    """What ``QUERY WITH (...)`` says, in milliseconds."""
    properties = select.meta.get("query_properties")
    if not isinstance(properties, Properties):
        return {}
    _check_keys(properties, "query", (STATE_TTL,), _QUERY_LATER)
    return {item.key: value for item in properties.items_ if (value := millis(properties, item.key)) is not None}


def _check_keys(properties: Properties, what: str, accepted: tuple[str, ...], later: Mapping[str, str]) -> None:
    for item in properties.items_:
        if item.key in accepted:
            continue
        if item.key in later:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'{what} property "{item.key}" is not supported',
                hint=later[item.key],
                position=item.position,
            )
        listed = ", ".join(f"'{key}'" for key in accepted)
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'unrecognized {what} property "{item.key}"',
            hint=f"The {what} properties are {listed}.",
            position=item.position,
        )


def _choice(properties: Properties, key: str, choices: tuple[str, ...], default: str) -> str:
    if key not in properties:
        return default
    given = str(properties[key])
    for choice in choices:
        if choice.lower() == given.lower():
            return choice
    raise SqlError(
        sqlstates.INVALID_PARAMETER_VALUE,
        f'invalid value for property "{key}": "{given}"',
        hint=f"The values are {', '.join(choices)}.",
        position=properties.position(key),
    )


def _starting(properties: Properties, default: str) -> str:
    """``earliest``, ``latest``, or a moment as milliseconds since 1970. Which stores can begin at one is not known
    here."""
    text = str(properties.get(STARTING_POSITION, default)).strip()
    moment = None if isinstance(properties.get(STARTING_POSITION), bool) else _moment_ms(text)
    return _choice(properties, STARTING_POSITION, ("earliest", "latest"), default) if moment is None else str(moment)


def _moment_ms(text: str) -> int | None:
    if text.isascii() and text.isdigit():
        return int(text[:20]) if 0 < int(text[:20]) <= _MOMENT_MS_MAX else None
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None or moment.year < 1971:  # without a zone it would be another moment for each session
        return None
    return round(moment.timestamp() * 1000)


def millis(properties: Properties, key: str) -> int | None:
    """0 or more milliseconds, at most a hundred years."""
    if key not in properties:
        return None
    text = str(properties[key]).strip()
    if isinstance(properties[key], bool) or not (text.isascii() and text.isdigit()) or int(text[:20]) > MILLIS_MAX:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'invalid value for property "{key}": "{text}"',
            hint=f"It is a number of milliseconds, 0 to {MILLIS_MAX}.",
            position=properties.position(key),
        )
    return int(text)


def _event_time(relation: RelationShape, name: str, position: int | None) -> ScanColumn:
    column = next((each for each in relation.columns if each.name == name), None)
    if column is None:
        column = next((each for each in relation.columns if each.name == name.lower()), None)
    if column is None:
        raise SqlError(
            sqlstates.UNDEFINED_COLUMN,
            f'column "{name}" named in property "{TIMESTAMP}" does not exist',
            position=position,
        )
    if column.type.kind not in _EVENT_TIME_KINDS:
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH,
            f'column "{name}" cannot be the event time because it has type {column.type}',
            hint="An event time is BIGINT (milliseconds since 1970), TIMESTAMP or TIMESTAMP_LTZ.",
            position=position,
        )
    return column
