"""Records of the Kinesis Producer Library, written here by its published format."""

from __future__ import annotations

import hashlib

from spark_sinks.kinesis.aggregated import UserRecord, hash_key, user_records

ALL = (0, 2**128 - 1)


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def aggregated(records: list[tuple[str, str | None, bytes]]) -> bytes:
    """Partition key, explicit hash key and data of each."""
    keys = list(dict.fromkeys(key for key, _, _ in records))
    explicit = list(dict.fromkeys(own for _, own, _ in records if own is not None))
    body = b"".join(field(1, key.encode()) for key in keys) + b"".join(field(2, own.encode()) for own in explicit)
    for key, own, data in records:
        tag = field(1, b"n") + field(2, b"v")
        record = number_field(1, keys.index(key))
        record += b"" if own is None else number_field(2, explicit.index(own))
        body += field(3, record + field(3, data) + field(4, tag))
    return b"\xf3\x89\x9a\xc2" + body + hashlib.md5(body).digest()


def test_user_records_come_out_in_order() -> None:
    data = aggregated([("a", None, b"1"), ("b", None, b"x" * 300), ("a", None, b"")])
    assert list(user_records("outer", data, ALL)) == [
        UserRecord("a", b"1", 0),
        UserRecord("b", b"x" * 300, 1),
        UserRecord("a", b"", 2),
    ]


def test_parts_of_other_shards_are_sent_again_and_so_left_out() -> None:
    middle = 2**127
    records: list[tuple[str, str | None, bytes]] = [(f"k{n}", None, b"%d" % n) for n in range(20)]
    records += [("k0", "0", b"low"), ("k0", str(2**128 - 1), b"high")]
    data = aggregated(records)
    low = user_records("outer", data, (0, middle - 1))
    high = user_records("outer", data, (middle, 2**128 - 1))
    assert sorted([*low, *high], key=lambda r: r.number or 0) == list(user_records("outer", data, ALL))
    assert all(hash_key(part.partition_key) < middle for part in low if part.data != b"low")
    assert [part.data for part in low if not part.data.isdigit()] == [b"low"]
    assert [part.data for part in high if not part.data.isdigit()] == [b"high"]


def test_what_only_begins_like_one_is_itself() -> None:
    whole = aggregated([("a", None, b"1")])
    body = whole[4:-16]
    wrong_key = field(3, number_field(1, 9) + field(3, b"1"))
    for data in (
        b"plain",
        b"",
        whole[:4],
        whole[:10],
        whole[:-1] + b"\0",
        whole[:-1],
        whole[:4] + body[:-1] + hashlib.md5(body[:-1]).digest(),
        whole[:4] + wrong_key + hashlib.md5(wrong_key).digest(),
        whole[:4] + b"\x0b" + hashlib.md5(b"\x0b").digest(),
        whole[:4] + b"\xff" * 12 + hashlib.md5(b"\xff" * 12).digest(),
    ):
        assert user_records("key", data, ALL) == (UserRecord("key", data),)
