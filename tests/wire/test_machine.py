"""Transcripts of the engine, byte by byte, without sockets."""

from __future__ import annotations

import struct

import pytest

from mvserver import limits
from mvserver.errors import SqlError
from tests.wire.client import (
    FLUSH,
    PROTOCOL_3,
    SYNC,
    TERMINATE,
    Driven,
    bind,
    close,
    describe,
    errors,
    execute,
    kinds,
    message,
    parse,
    query,
    rows,
    special,
    split,
    startup,
    tags,
    text,
)
from tests.wire.toy import ToyBackend

READY = b"Z\0\0\0\x05I"


def logged_in() -> tuple[Driven, ToyBackend]:
    backend = ToyBackend()
    return Driven(backend).log_in(), backend


# --- start-up -------------------------------------------------------------------------------------------------------


def test_start_up_transcript() -> None:
    driven = Driven(ToyBackend())
    assert driven.say(special(5679)) == b"N"
    assert driven.say(special(5680)) == b"N"
    answer = driven.say(startup(user="u", database="toy", application_name="app"))
    assert kinds(answer) == "R" + "S" * 11 + "KZ"
    assert answer.startswith(b"R\0\0\0\x08\0\0\0\0")
    assert answer.endswith(b"K\0\0\0\x0c\0\0\0\x07\x01\x02\x03\x04" + READY)
    assert b"S\0\0\0\x18server_version\x0015.8\0" in answer
    assert b"application_name\0app\0" in answer


def test_start_up_one_byte_at_a_time() -> None:
    whole = Driven(ToyBackend()).say(startup())
    driven = Driven(ToyBackend())
    assert driven.say(*(bytes([byte]) for byte in startup())) == whole
    assert driven.say(*(bytes([byte]) for byte in query("insert 3"))) == b"C\0\0\0\x0fINSERT 0 3\0" + READY


def test_protocol_32_is_negotiated_down() -> None:
    answer = Driven(ToyBackend()).say(startup(PROTOCOL_3 | 2, user="u", database="toy", **{"_pq_.x": "1"}))
    first, body = next(split(answer))
    assert first == "v"
    assert body == struct.pack("!ii", PROTOCOL_3, 1) + b"_pq_.x\0"
    assert kinds(answer).startswith("vRS")
    assert "v" not in kinds(Driven(ToyBackend()).say(startup()))


@pytest.mark.parametrize(
    ("packet", "sqlstate", "words"),
    [
        (startup(2 << 16), "0A000", "unsupported frontend protocol 2.0"),
        (startup(database="toy"), "28000", "no PostgreSQL user name"),
        (startup(user="u", replication="database"), "0A000", "replication connections are not supported"),
        (startup(user="nobody", database="toy"), "28000", 'role "nobody" does not exist'),
        (startup(user="u", database="other"), "3D000", 'database "other" does not exist'),
        (struct.pack("!i", 4), "08P01", "invalid length of startup packet"),
        (struct.pack("!i", 10_001), "08P01", "invalid length of startup packet"),
        (b"GET / HTTP/1.1\r\n\r\n", "08P01", "invalid length of startup packet"),
        (struct.pack("!ii", 12, PROTOCOL_3) + b"user", "08P01", "invalid startup packet layout"),
        (struct.pack("!ii", 13, PROTOCOL_3) + b"user\0", "08P01", "invalid startup packet layout"),
        (special(5678, b"\0\0"), "08P01", "invalid length of cancel request"),
        (special(5678, b"\0\0\0\1" + b"x" * 300), "08P01", "invalid length of cancel request"),
        (startup(user="u", database="\udc80".encode("utf-8", "replace").decode()), "3D000", "does not exist"),
    ],
)
def test_wrong_start_up_packets(packet: bytes, sqlstate: str, words: str) -> None:
    driven = Driven(ToyBackend())
    answer = driven.say(packet)
    (error,) = errors(answer)
    assert (error["S"], error["V"], error["C"]) == ("FATAL", "FATAL", sqlstate)
    assert words in error["M"]
    assert driven.done


def test_encryption_is_asked_for_once() -> None:
    driven = Driven(ToyBackend())
    assert driven.say(special(5679)) == b"N"
    assert errors(driven.say(special(5679)))[0]["C"] == "08P01"
    assert driven.done


def test_connections_from_elsewhere_are_refused_under_trust() -> None:
    driven = Driven(ToyBackend(), local=False, peer="10.1.2.3")
    (error,) = errors(driven.say(startup()))
    assert (error["S"], error["C"]) == ("FATAL", "28000")


def test_cancel_request() -> None:
    driven = Driven(ToyBackend())
    assert driven.say(special(5678, struct.pack("!I", 9) + b"abcd")) == b""
    assert driven.cancels == [(9, b"abcd")]
    assert driven.done


def test_refused_for_the_cap() -> None:
    driven = Driven(ToyBackend(), refusal=SqlError("53300", "sorry, too many clients already", severity="FATAL"))
    assert driven.say(special(5679)) == b"N"
    assert errors(driven.say(startup()))[0]["C"] == "53300"


# --- simple queries -------------------------------------------------------------------------------------------------


def test_simple_query_transcript() -> None:
    driven, _ = logged_in()
    answer = driven.say(query("rows 2"))
    assert kinds(answer) == "TDDCZ"
    description = next(body for kind, body in split(answer) if kind == "T")
    assert description.startswith(b"\0\x05id\0" + struct.pack("!IhIhih", 0, 0, 20, 8, -1, 0) + b"name\0")
    assert rows(answer) == [
        (b"0", b"name-0", b"0", b"2023-11-14 22:13:20", b"t"),
        (b"1", b"name-1", b"0.125", b"2023-11-14 22:13:20.001", b"f"),
    ]
    assert tags(answer) == ["SELECT 2"]


def test_many_statements_notices_and_changed_parameters() -> None:
    driven, _ = logged_in()
    answer = driven.say(query("insert 1; notice psst; rows 1;; set TimeZone Europe/Berlin"))
    assert kinds(answer) == "CNCTDCCSZ"
    assert tags(answer) == ["INSERT 0 1", "NOTICE", "SELECT 1", "SET"]
    assert b"TimeZone\0Europe/Berlin\0" in answer
    assert b"SNOTICE\0VNOTICE\0C00000\0Mpsst\0DA detail.\0HA hint.\0\0" in answer
    assert kinds(driven.say(query("set TimeZone Europe/Berlin"))) == "CZ"


def test_empty_queries() -> None:
    driven, _ = logged_in()
    assert driven.say(query("")) == b"I\0\0\0\x04" + READY
    assert driven.say(query(" ; ")) == b"I\0\0\0\x04" + READY


def test_error_ends_the_text() -> None:
    driven, backend = logged_in()
    answer = driven.say(query("insert 1; error 22012 division by zero; insert 2"))
    assert kinds(answer) == "CEZ"
    assert errors(answer) == [
        {"S": "ERROR", "V": "ERROR", "C": "22012", "M": "division by zero", "D": "What happened.",
         "H": "What to do.", "P": "7"}
    ]  # fmt: skip
    assert backend.sessions[0].fails == 1


def test_bugs_are_reported_without_their_text(caplog: pytest.LogCaptureFixture) -> None:
    driven, _ = logged_in()
    answer = driven.say(query("boom"))
    (error,) = errors(answer)
    assert (error["C"], error["M"]) == ("XX000", "internal error")
    assert b"passwd" not in answer
    assert b"Traceback" not in answer
    assert "secret path /etc/passwd" in caplog.text
    assert error["H"].split()[-1].rstrip(".") in caplog.text
    assert tags(driven.say(query("insert 1"))) == ["INSERT 0 1"]


def test_transaction_status() -> None:
    driven, _ = logged_in()
    status = [driven.say(query(sql))[-1:] for sql in ("begin", "error 42601 x", "insert 1", "commit")]
    assert status == [b"T", b"E", b"E", b"I"]


def test_fatal_errors_end_the_connection() -> None:
    driven, backend = logged_in()
    answer = driven.say(query("fatal"))
    assert kinds(answer) == "E"
    assert errors(answer)[0]["S"] == "FATAL"
    assert driven.done
    driven.machine.close()
    assert backend.sessions[0].closed.is_set()


def test_function_calls_are_refused() -> None:
    driven, _ = logged_in()
    answer = driven.say(message(b"F", b"\0" * 14))
    assert kinds(answer) == "EZ"
    assert errors(answer)[0]["C"] == "0A000"


def test_copy_messages_outside_copy_are_ignored() -> None:
    driven, _ = logged_in()
    assert driven.say(message(b"d", b"data"), message(b"c"), message(b"f", b"why\0")) == b""
    assert tags(driven.say(query("insert 1"))) == ["INSERT 0 1"]


# --- extended queries -----------------------------------------------------------------------------------------------


def test_extended_transcript() -> None:
    driven, _ = logged_in()
    answer = driven.say(
        parse("echo $1::int4 $2::text"),
        describe("S"),
        bind([b"42", None], results=[1, 0]),
        describe("P"),
        execute(),
        SYNC,
    )
    assert kinds(answer) == "1tT2TDCZ"
    parts = list(split(answer))
    assert parts[1][1] == struct.pack("!HII", 2, 23, 25)
    assert parts[2][1].endswith(struct.pack("!IhIhih", 0, 0, 25, -1, -1, 0))
    assert struct.pack("!IhIhih", 0, 0, 23, -1, -1, 1) in parts[4][1]
    assert rows(answer) == [(b"\0\0\0\x2a", None)]
    assert tags(answer) == ["SELECT 1"]


def test_statements_without_rows_have_no_data() -> None:
    driven, _ = logged_in()
    assert kinds(driven.say(parse("insert 5"), describe("S"), bind(), describe("P"), execute(), SYNC)) == "1tn2nCZ"
    assert kinds(driven.say(parse(""), bind(), describe("P"), execute(), SYNC)) == "12nIZ"


def test_portals_are_read_in_parts() -> None:
    driven, backend = logged_in()
    driven.say(query("begin"))
    answer = driven.say(parse("rows 10 4"), bind(portal="p"), execute(3, "p"), SYNC)
    assert kinds(answer) == "12DDDsZ"
    assert backend.pulled == 4
    answer = driven.say(execute(5, "p"), execute(2, "p"), execute(0, "p"), execute(0, "p"), SYNC)
    assert kinds(answer) == "DDDDDsDDsCCZ"
    assert tags(answer) == ["SELECT 0", "SELECT 0"]
    assert backend.open_results == 0


def test_closing_a_suspended_portal_frees_its_result() -> None:
    driven, backend = logged_in()
    driven.say(query("begin"), parse("rows 10 4"), bind(portal="p"), execute(1, "p"), SYNC)
    assert backend.open_results == 1
    assert kinds(driven.say(close("P", "p"), SYNC)) == "3Z"
    assert backend.open_results == 0


def test_transaction_end_frees_portals() -> None:
    driven, backend = logged_in()
    driven.say(query("begin"), parse("rows 10 4"), bind(portal="p"), execute(1, "p"), SYNC)
    assert backend.open_results == 1
    driven.say(query("commit"))
    assert backend.open_results == 0
    driven.say(parse("rows 10 4"), bind(), execute(1), FLUSH)
    assert backend.open_results == 1
    driven.say(SYNC)
    assert backend.open_results == 0
    driven.say(query("begin"), parse("rows 10 4"), bind(), execute(1), SYNC)
    driven.machine.close()
    assert backend.open_results == 0


def test_rebinding_the_unnamed_portal_frees_it_and_named_ones_are_kept() -> None:
    driven, backend = logged_in()
    driven.say(query("begin"))
    driven.say(parse("rows 10 4"), bind(), execute(1), bind(), FLUSH)
    assert backend.open_results == 0
    answer = driven.say(bind(portal="p"), bind(portal="p"), SYNC)
    assert errors(answer)[0]["C"] == "42P03"


def test_command_portals_run_once() -> None:
    driven, _ = logged_in()
    answer = driven.say(parse("insert 5"), bind(), execute(), execute(), SYNC)
    assert kinds(answer) == "12CEZ"
    assert errors(answer)[0]["C"] == "55000"


def test_everything_is_skipped_until_sync() -> None:
    driven, backend = logged_in()
    answer = driven.say(
        parse("syntax"), bind(), describe("P"), execute(), query("insert 1"), close("S"), FLUSH, SYNC, query("insert 2")
    )
    assert kinds(answer) == "EZCZ"
    assert tags(answer) == ["INSERT 0 2"]
    assert errors(answer)[0]["P"] == "1"
    assert backend.sessions[0].syncs == 1


def test_pipeline_with_an_error_in_the_middle() -> None:
    driven, _ = logged_in()
    one = parse("insert 1") + bind() + execute()
    answer = driven.say(one + one + SYNC + parse("syntax") + one + SYNC + one + SYNC)
    assert kinds(answer) == "12C12CZEZ12CZ"


@pytest.mark.parametrize(
    ("messages", "sqlstate", "words"),
    [
        ([bind(statement="none")], "26000", 'prepared statement "none" does not exist'),
        ([describe("S", "none")], "26000", "does not exist"),
        ([describe("P", "none")], "34000", 'portal "none" does not exist'),
        ([execute(0, "none")], "34000", 'portal "none" does not exist'),
        ([parse("echo $1::int4"), bind()], "08P01", "bind message supplies 0 parameters, but prepared statement"),
        ([parse("echo $1::int4"), bind([b"1", b"2"])], "08P01", "bind message supplies 2 parameters"),
        ([parse("echo $1::int4 $2::int4 $3::int4"), bind([b"1"] * 3, formats=[0, 1])], "08P01",
         "bind message has 2 parameter formats but 3 parameters"),
        ([parse("echo $1::int4"), bind([b"1"], formats=[7])], "22023", "unsupported format code: 7"),
        ([parse("echo $1::int4"), bind([b"1"], results=[0, 1])], "08P01",
         "bind message has 2 result formats but query has 1 columns"),
        ([parse("echo $1::int4"), bind([b"1"], results=[9])], "22023", "unsupported format code: 9"),
        ([parse("echo $1::int4"), bind([b"x"])], "22P02", 'invalid input syntax for type integer: "x"'),
        ([parse("echo $1::int4"), bind([b"x"], formats=[1])], "22P03",
         "incorrect binary data format in bind parameter 1"),
        ([message(b"P", b"no end")], "08P01", "invalid string in message"),
        ([message(b"P", b"\0\0\0\1")], "08P01", "insufficient data left in message"),
        ([message(b"B", text("") + text("") + b"\0\0\0\1\0\0\0\x09x")], "08P01", "insufficient data left"),
        ([message(b"D", b"Sx\0extra")], "08P01", "invalid message format"),
        ([message(b"D", b"Xx\0")], "08P01", "invalid DESCRIBE message subtype 88"),
        ([message(b"C", b"Qx\0")], "08P01", "invalid CLOSE message subtype 81"),
        ([message(b"E", b"\0\0")], "08P01", "insufficient data left in message"),
        ([message(b"D", b"")], "08P01", "no data left in message"),
        ([message(b"P", b"\xff\xfe\0\0\0\0")], "22021", "invalid byte sequence for encoding"),
    ],
)  # fmt: skip
def test_wrong_messages_are_errors_that_end_at_sync(messages: list[bytes], sqlstate: str, words: str) -> None:
    driven, _ = logged_in()
    answer = driven.say(*messages, SYNC, query("insert 1"))
    (error,) = errors(answer)
    assert (error["S"], error["C"]) == ("ERROR", sqlstate)
    assert words in error["M"]
    assert kinds(answer).endswith("EZCZ")


def test_a_parameter_that_cannot_be_read_fails_the_transaction() -> None:
    driven, _ = logged_in()
    driven.say(query("begin"))
    assert driven.say(parse("echo $1::int4"), bind([b"x"]), SYNC)[-1:] == b"E"


def test_closing_unknown_names_is_no_error() -> None:
    driven, _ = logged_in()
    assert kinds(driven.say(close("S", "none"), close("P", "none"), SYNC)) == "33Z"


def test_unknown_message_types_and_lengths_end_the_connection() -> None:
    for data, words in (
        (message(b"y"), "invalid frontend message type 121"),
        (message(b"p", b"x\0"), "invalid frontend message type 112"),
        (b"Q" + struct.pack("!I", 3), "invalid message length"),
        (b"Q" + struct.pack("!I", limits.MESSAGE_BYTES_MAX + 1), "invalid message length"),
        (b"Q\xff\xff\xff\xff", "invalid message length"),
        (b"S" + struct.pack("!I", limits.SHORT_MESSAGE_BYTES_MAX + 1), "invalid message length"),
    ):
        driven, _ = logged_in()
        answer = driven.say(data)
        (error,) = errors(answer)
        assert (error["S"], error["C"]) == ("FATAL", "08P01")
        assert words in error["M"]
        assert driven.done


def test_terminate() -> None:
    driven, backend = logged_in()
    assert driven.say(TERMINATE) == b""
    assert driven.done
    driven.machine.close()
    driven.machine.close()
    assert backend.sessions[0].closed.is_set()


def test_stop_waits_for_the_end_of_what_was_asked() -> None:
    driven, _ = logged_in()
    stop = SqlError("57P01", "terminating connection due to administrator command", severity="FATAL")
    driven.machine.stop(stop)
    answer = driven.say(parse("insert 1") + bind() + execute() + SYNC + query("insert 2"))
    assert kinds(answer) == "12CZE"
    assert errors(answer)[0]["C"] == "57P01"
    idle, _ = logged_in()
    idle.machine.stop(stop)
    assert kinds(idle.go()) == "E"


def test_a_large_result_is_handed_out_in_pieces() -> None:
    driven, _ = logged_in()
    answer = driven.say(query("rows 50000 50000"))
    assert len(rows(answer)) == 50_000
    assert driven.flushes >= len(answer) // (2 * limits.RESULT_CHUNK_BYTES)
    assert driven.flushes > 3
    assert tags(answer) == ["SELECT 50000"]


def test_the_zone_of_the_moment_is_used() -> None:
    driven, _ = logged_in()
    driven.say(query("set TimeZone Europe/Berlin"))
    answer = driven.say(parse("echo $1::timestamptz"), bind([b"2024-07-01 10:00"]), execute(), SYNC)
    assert rows(answer) == [(b"2024-07-01 10:00:00+02",)]
    driven.say(query("set TimeZone UTC"))
    answer = driven.say(parse("echo $1::timestamptz"), bind([b"2024-07-01 10:00+02"]), execute(), SYNC)
    assert rows(answer) == [(b"2024-07-01 08:00:00+00",)]
