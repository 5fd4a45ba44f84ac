"""Records of JSON that are compared with the schemas that they were written with, besides being decoded.

The comparison is a function of Spark in Python: no library for it is among Spark's own jars. It reaches nothing: a
schema may refer to what the registry gives with it alone. A record of a schema that is not known asks for it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.decode.columns import WANTED, CheckFunction, DecodeColumn, Decoded
from spark_sinks.decode.json_schema_format import JSON_SCHEMA
from spark_sinks.decode.registered_records import HEADER_BYTES
from spark_sinks.schema_registry.base import KnownSchemas

if TYPE_CHECKING:
    import pyarrow as pa

_NAME = "mv_check_"
_DIGEST_BYTES = 16
_REASON_CHARS = 300
_SCHEMAS_KEPT_MAX = 32  # sets of schemas in a worker
Check = Callable[[bytes], str | None]


def require_checker() -> None:
    """0A000 where the extra is not installed."""
    if importlib.util.find_spec("jsonschema") is None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "comparing records with their schemas needs the package jsonschema",
            hint="Install the server with its extra: mvserver[jsonschema].",
        )


def decode_checked(
    columns: Sequence[DecodeColumn], value: str, prefix: str, schemas: KnownSchemas, *, trial: bool
) -> Decoded:
    """``value`` refers to a binary column."""
    decoder = JSON_SCHEMA.trial if trial else JSON_SCHEMA.decoder
    assert decoder is not None  # noqa: S101 - the format has both
    inner, function = decoder(columns, value, prefix), _function(schemas)
    checked, reason = f"{prefix}q", f"{prefix}z"
    stages = ((f"{function.name}({value}) AS {checked}",), *inner.stages)
    good = f"({inner.good} AND {checked} IS NULL)"
    if inner.reason is None:
        return Decoded(stages, inner.columns, good, None, (function,))
    stages = (*stages, (f"coalesce({inner.reason}, {checked}) AS {reason}",))
    return Decoded(stages, inner.columns, good, reason, (function,))


def _function(schemas: KnownSchemas) -> CheckFunction:
    each = [{"id": s.id, "kind": s.kind, "text": s.text, "references": s.references} for s in schemas.schemas]
    known = json.dumps({"schemas": each, "absent": schemas.absent})
    return CheckFunction(f"{_NAME}{hashlib.blake2b(known.encode(), digest_size=_DIGEST_BYTES).hexdigest()}", known)


# --- in Spark's workers ---------------------------------------------------------------------------------------------
def checked(schemas: str, values: pa.Array) -> pa.Array:
    """A reason or NULL for each record."""
    import pyarrow as pa

    check = _check_of(schemas)
    return pa.array([None if value is None else check(value) for value in values.to_pylist()], pa.string())


_checks: dict[str, Check] = {}


def _check_of(schemas: str) -> Check:
    found = _checks.get(schemas)
    if found is None:
        if len(_checks) >= _SCHEMAS_KEPT_MAX:
            _checks.clear()
        found = _checks[schemas] = record_check(schemas)
    return found


def record_check(schemas: str) -> Check:
    """Of a record with its schema's id before it. NULL is what has no reason here: also what is no record with an id,
    and no JSON, which the decoder says."""
    known = json.loads(schemas)
    texts = {each["id"]: each for each in known["schemas"]}
    absent = frozenset(known["absent"])

    @cache
    def validator(id_: int) -> Any:
        return _validator(texts[id_])

    def check(record: bytes) -> str | None:
        if len(record) < HEADER_BYTES or record[0] != 0:
            return None
        id_ = int.from_bytes(record[1:HEADER_BYTES], "big")
        if id_ in absent:
            return f"schema {id_} is not in the schema registry"
        if id_ not in texts:
            return f"{WANTED}{id_}"
        try:
            value = json.loads(record[HEADER_BYTES:])
        except (ValueError, RecursionError):
            return None
        return _reason(validator(id_), id_, value)

    return check


def _validator(schema: Mapping[str, Any]) -> Any:
    """A text where the schema cannot be used."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft7Validator, validator_for
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7

    if schema["kind"] != "JSON":
        return f"is of kind {schema['kind']}"
    try:
        whole = json.loads(schema["text"])
        made = validator_for(whole, default=Draft7Validator)
        made.check_schema(whole)
        registry: Any = Registry()
        for name, text in schema["references"]:
            registry = registry.with_resource(name, Resource.from_contents(json.loads(text), DRAFT7))
        return made(whole, registry=registry)
    except (ValueError, TypeError, RecursionError, SchemaError) as error:
        return f"cannot be used: {_first(error)}"


def _reason(validator: Any, id_: int, value: Any) -> str | None:
    from referencing.exceptions import Unresolvable

    if isinstance(validator, str):
        return f"schema {id_} {validator}"
    try:
        if validator.is_valid(value):
            return None
        wrong = next(validator.iter_errors(value))
    except Unresolvable as error:
        return f"schema {id_} cannot be used: {_first(error)}"
    except RecursionError:
        return f"the value is nested too deeply for schema {id_}"
    return f"the value is not of schema {id_}, at {wrong.json_path}: {_shown(wrong.message)}"


def _first(error: BaseException) -> str:
    return _shown(next(iter(str(error).splitlines()), type(error).__name__))


def _shown(words: str) -> str:
    return words.replace("\0", "\ufffd")[:_REASON_CHARS]
