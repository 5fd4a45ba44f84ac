"""Random input: records with NULLs, out of order, some very late; a changelog with updates and deletes.

What PostgreSQL is told of it besides the rows is what the oracle needs and no query can know: for each record the
greatest event time that its partition had before it (``seen``), by which lateness is judged, and the order of a
changelog's records.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

PARTITIONS = 3
EPOCH = dt.datetime(1969, 12, 31, 23, 56)  # so that a part of the times is before 1970, from which windows are counted
LAST = EPOCH + dt.timedelta(days=1)  # of a last record in each partition, which moves all watermarks past the others
KEYS = ("a", "b", "c", "d", "é", "", "😀")

_ORDERS = "id BIGINT, k VARCHAR, g INTEGER, amount DECIMAL(12, 2), q BIGINT, x DOUBLE, ok BOOLEAN, ts TIMESTAMP"
_ITEM = "STRUCT<itemId BIGINT, unitPrice DECIMAL(12, 2), subItem STRUCT<tagName VARCHAR>>"
ORDERS = f"{_ORDERS}, item {_ITEM}, items ARRAY<{_ITEM}>, byTag MAP<VARCHAR, {_ITEM}>"
_NESTED = {"item": "item", "items": "item[]", "bytag": "jsonb"}  # in PostgreSQL
PAYMENTS = "pid BIGINT, pk VARCHAR, paid DECIMAL(12, 2), ts TIMESTAMP"
CUSTOMERS = "ck VARCHAR, region VARCHAR, level INTEGER, ts TIMESTAMP"
_PG = {"VARCHAR": 'text COLLATE "C"', "DOUBLE": "double precision"}


@dataclass(frozen=True)
class Record:
    """``time`` is its event time and its own; ``value`` None: a delete of ``key``. ``seen`` is the greatest time of its
    partition before it."""

    partition: int
    key: str | None
    value: dict[str, Any] | None
    time: dt.datetime
    seen: dt.datetime | None = None

    def payload(self) -> bytes | None:
        return None if self.value is None else json.dumps(self.value, default=_text).encode()


@dataclass(frozen=True)
class Item:
    """A nested value. ``spelled`` says how a record spells the names of its fields."""

    spelled: str  # a method of str, or "" for the declared spelling
    id: int | None
    price: Decimal | None
    tag: str | None

    def fields(self) -> dict[str, Any]:
        def spell(name: str) -> str:
            return getattr(name, self.spelled)() if self.spelled else name

        return {
            spell("itemId"): self.id,
            spell("unitPrice"): self.price,
            spell("subItem"): None if self.tag is None else {spell("tagName"): self.tag},
        }

    def row(self) -> str:
        """As PostgreSQL's text of a composite value."""
        inner = "" if self.tag is None else f'"(""{self.tag}"")"'
        return f"({'' if self.id is None else self.id},{'' if self.price is None else self.price},{inner})"


def _item(rng: random.Random) -> Item:
    spelled = rng.choice(("", "", "", "", "lower", "upper", "swapcase"))
    price = _maybe(rng, Decimal(rng.randint(-500, 9_999)).scaleb(-2))
    return Item(spelled, _maybe(rng, rng.randint(0, 9)), price, _maybe(rng, rng.choice(("x", "Y", "é"))))


def _of_postgres(value: Any) -> Any:
    if isinstance(value, Item):
        return value.row()
    if isinstance(value, list):
        return "{" + ",".join('"' + item.row().replace('"', '\\"') + '"' for item in value) + "}"
    if isinstance(value, dict):
        return json.dumps({tag: {"itemid": item.id} for tag, item in value.items()})
    return value


def _text(value: object) -> object:
    if isinstance(value, Item):
        return value.fields()
    if isinstance(value, Decimal):
        return float(value)
    assert isinstance(value, dt.datetime)
    return value.isoformat(sep=" ")


@dataclass
class Topic:
    """Records in the order in which they are produced."""

    name: str
    columns: str
    records: list[Record] = field(default_factory=list)

    def pieces(self, rng: random.Random, count: int) -> list[list[Record]]:
        cuts = sorted(rng.sample(range(1, len(self.records)), count - 1))
        return [self.records[a:b] for a, b in zip([0, *cuts], [*cuts, len(self.records)], strict=True)]

    def column_names(self) -> list[str]:
        return [part.strip().split(" ")[0] for part in self.columns.replace("(12, 2)", "").split(",")]


def orders(rng: random.Random, count: int) -> Topic:
    def row(number: int) -> dict[str, Any]:
        return {
            "id": number,
            "k": _maybe(rng, rng.choice(KEYS)),
            "g": _maybe(rng, rng.randint(-2, 3)),
            "amount": _maybe(rng, Decimal(rng.randint(-50_000, 90_000)).scaleb(-2)),
            "q": _maybe(rng, rng.choice((0, 1, 2, 7, rng.randint(-(10**12), 10**12)))),
            "x": _maybe(rng, rng.choice((0.0, 0.5, -1.25, 1e9, rng.uniform(-9, 9)))),
            "ok": _maybe(rng, rng.random() < 0.5),
            "item": _maybe(rng, _item(rng)),
            "items": _maybe(rng, [_item(rng) for _ in range(rng.randint(0, 3))]),
            "bytag": _maybe(rng, {rng.choice("aAb"): _item(rng) for _ in range(rng.randint(0, 3))}),
        }

    return Topic("orders", _ORDERS, list(_timed(rng, count, row)))


def payments(rng: random.Random, count: int) -> Topic:
    def row(number: int) -> dict[str, Any]:
        return {
            "pid": number,
            "pk": _maybe(rng, rng.choice(KEYS)),
            "paid": _maybe(rng, Decimal(rng.randint(0, 9_999)).scaleb(-2)),
        }

    return Topic("payments", PAYMENTS, list(_timed(rng, count, row)))


def customers(rng: random.Random, count: int) -> Topic:
    """Times of a key never go back; a fifth of the records are deletes."""
    records = []
    at = EPOCH - dt.timedelta(minutes=1)
    come_to = [at] * PARTITIONS
    for _ in range(count):
        key = rng.choice(KEYS)
        partition = KEYS.index(key) % PARTITIONS
        if (
            rng.random() < 0.2
        ):  # a delete has no event time of its own: it is of the time that its partition has come to
            records.append(Record(partition, key, None, come_to[partition]))
            continue
        at += dt.timedelta(seconds=rng.randint(0, 20))
        come_to[partition] = at
        value = {"ck": key, "region": rng.choice(("north", "south", None)), "level": rng.randint(0, 4), "ts": at}
        records.append(Record(partition, key, value, at))
    for partition in range(PARTITIONS):
        value = {"ck": f"last {partition}", "region": None, "level": None, "ts": LAST}
        records.append(Record(partition, f"last {partition}", value, LAST))
    return Topic("customers", CUSTOMERS, records)


def _timed(rng: random.Random, count: int, row: Any) -> Iterator[Record]:
    seen: dict[int, dt.datetime] = {}
    at = EPOCH
    for number in range(count):
        at += dt.timedelta(milliseconds=rng.randint(0, 3_000))
        back = rng.choice((0, 0, rng.randint(0, 30), rng.randint(0, 300)) if rng.random() < 0.3 else (0,))
        time = at - dt.timedelta(seconds=back)
        partition = rng.randrange(PARTITIONS)
        before = seen.get(partition)
        seen[partition] = time if before is None else max(before, time)
        yield Record(partition, None, {**row(number), "ts": time}, time, before)
    for partition in range(PARTITIONS):
        nothing = dict.fromkeys(row(0)) | {"ts": LAST}
        yield Record(partition, None, nothing, LAST, seen.get(partition))


def _maybe(rng: random.Random, value: Any) -> Any:
    return None if rng.random() < 0.08 else value


def load(connection: Any, topics: Sequence[Topic]) -> None:
    """The same in PostgreSQL: streams with ``seen``; a changelog's history as ``<name>_all`` and its end under its
    name."""
    connection.execute('CREATE TYPE pg_temp.subitem AS (tagname text COLLATE "C")')
    connection.execute("CREATE TYPE pg_temp.item AS (itemid bigint, unitprice numeric(12, 2), subitem pg_temp.subitem)")
    for topic in topics:
        columns = ", ".join(
            f"{name} {_PG.get(kind, kind)}"
            for name, kind in (part.strip().split(" ", 1) for part in topic.columns.replace("(12, 2)", "").split(","))
        ).replace("DECIMAL", "DECIMAL(12, 2)")
        names = topic.column_names()
        if topic.name == "orders":
            columns += "".join(f", {name} {kind.replace('item', 'pg_temp.item')}" for name, kind in _NESTED.items())
            names += _NESTED
        places = ", ".join(["%s"] * (len(names) + 1))
        if topic.name != "customers":
            connection.execute(f"CREATE TEMP TABLE {topic.name} ({columns}, seen TIMESTAMP)".encode())
            rows = [(*(_of_postgres(r.value[n]) for n in names), r.seen) for r in topic.records if r.value is not None]
            connection.cursor().executemany(f"INSERT INTO {topic.name} VALUES ({places})".encode(), rows)
            continue
        more = "at TIMESTAMP, seq INTEGER, gone BOOLEAN"
        connection.execute(f"CREATE TEMP TABLE customers_all ({columns}, {more})".encode())
        rows = []
        for number, r in enumerate(topic.records):
            rest = [r.value[name] for name in names[1:]] if r.value else [None] * (len(names) - 1)
            rows.append((r.key, *rest, r.time, number, r.value is None))
        connection.cursor().executemany(f"INSERT INTO customers_all VALUES ({places}, %s, %s)".encode(), rows)
        connection.execute(
            f"CREATE TEMP VIEW customers AS SELECT {', '.join(names)} FROM (SELECT DISTINCT ON (ck) * FROM "
            "customers_all ORDER BY ck, seq DESC) AS last WHERE NOT gone".encode()
        )
