"""The formats of a topic's and of a directory's records: what the part ``stores`` measures, of eight columns.

The records are those of ``tests.bench.formats``, which has the decoding alone.
"""

from __future__ import annotations

import csv
import io
import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench import protobuf_records
from tests.bench.bench import Bench
from tests.bench.formats import AVRO_SCHEMA, DECLARED, row
from tests.bench.parts.stores import RATE, Source, measured, read_topic, topics
from tests.conformance import stores
from tests.conformance.stores import StoreUnderTest
from tests.services.schema_registry import Registry, running

_DECLARED = f"({', '.join(DECLARED)})"
_RECORDS = 1_000_000
_HEAD = 5  # a record's first bytes, with the id of its schema
_ARROW = pa.schema(
    [("id", pa.int64()), ("url", pa.string()), ("device", pa.string()), ("user_id", pa.string()),
     ("price", pa.float64()), ("quantity", pa.int32()), ("paid", pa.bool_()), ("note", pa.string())]
)  # fmt: skip


@dataclass(frozen=True)
class _Form:
    """How a record of a topic is written, and its number read again; ``registered`` ones are by a schema."""

    encode: Callable[[int], bytes]
    number: Callable[[bytes], int]
    registered: bool = False


def measure(bench: Bench) -> dict[str, Any]:
    rows = []
    with _sources(bench) as sources:
        for format_, source in sources:
            found = {"type": source.store.kind, "format": format_}
            found |= measured(bench, source, f"{source.store.name}_{format_}")
            rows.append(found)
            print(f"    {found}")
    return {"records_per_s": RATE, "rows": rows}


@contextmanager
def _sources(bench: Bench) -> Iterator[Sequence[tuple[str, Source]]]:
    records = int(_RECORDS * bench.settings.scale)
    with stores.folder() as folder, running() as registry:
        known = f"CREATE SCHEMA_REGISTRY bench_registry WITH ('type' = CONFLUENT, 'uris' = '{registry.address}')"
        found = [
            (format_, Source(_topics(bench, format_, form), folder, "STREAM", records,
                             read_topic(bench.broker, form.number), (known,) if form.registered else ()))
            for format_, form in _forms(registry).items()
        ]  # fmt: skip
        directory = folder / "files"
        yield [*found, ("parquet", Source(_files(directory), folder, "STREAM", records, _read_files(directory)))]


def _forms(registry: Registry) -> dict[str, _Form]:
    avro = registry.register("bench-avro", json.dumps(AVRO_SCHEMA)).to_bytes(4, "big")
    protobuf = registry.register("bench-protobuf", protobuf_records.TEXT, "PROTOBUF")
    parsed = fastavro.parse_schema(AVRO_SCHEMA)

    def avro_record(number: int) -> bytes:
        out = io.BytesIO(b"\0" + avro)
        out.seek(_HEAD)
        fastavro.schemaless_writer(out, parsed, _row(number))
        return out.getvalue()

    def avro_number(record: bytes) -> int:
        read: Any = fastavro.schemaless_reader(io.BytesIO(record[_HEAD:]), parsed, None)
        return int(read["id"])

    return {
        "json": _Form(lambda number: json.dumps(_row(number)).encode(), lambda record: json.loads(record)["id"]),
        "csv": _Form(_line, lambda record: int(next(csv.reader([record.decode()]))[0])),
        "avro": _Form(avro_record, avro_number, registered=True),
        "protobuf": _Form(
            lambda number: protobuf_records.protobuf_record(_row(number), protobuf),
            protobuf_records.number_of,
            registered=True,
        ),
    }


def _row(number: int) -> dict[str, Any]:
    return row(number, whole=False)


def _line(number: int) -> bytes:
    values = ("" if value is None else str(value) for value in _row(number).values())
    return ",".join(values).encode()


def _topics(bench: Bench, format_: str, form: _Form) -> StoreUnderTest:
    made = topics(bench.broker, form.encode)
    registry = ", 'schema_registry.name' = bench_registry" if form.registered else ""
    return replace(
        made,
        properties=made.properties + registry,
        declared=_DECLARED,
        n="id",
        format=f", 'value.format' = '{format_}'",
    )


def _files(root: Path) -> StoreUnderTest:
    made = stores.files(root)

    def put(entity: str, numbers: Sequence[int]) -> None:
        directory = root / "store" / entity
        aside = directory / f".{uuid.uuid4().hex}"
        pq.write_table(pa.Table.from_pylist([_row(number) for number in numbers], _ARROW), aside)
        aside.rename(directory / f"{time.time_ns()}.parquet")

    return replace(made, put=put, declared=_DECLARED, n="id", format=", 'value.format' = 'parquet'")


def _read_files(root: Path) -> Callable[[str, int], None]:
    def read(entity: str, records: int) -> None:
        paths = (root / "store" / entity).glob("*.parquet")
        assert sum(pq.read_table(path).num_rows for path in paths) == records

    return read
