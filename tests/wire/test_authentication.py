"""Log-in with passwords: transcripts of the engine, and real clients over sockets."""

from __future__ import annotations

import hashlib
import logging
import os
import random
import struct
import subprocess
from collections.abc import Iterator

import psycopg
import pytest

from mvserver import limits
from mvserver.auth import passwords
from mvserver.auth.password_check import PasswordCheck
from mvserver.pgwire.authentication import PasswordAuthentication, TrustLoopback
from mvserver.pgwire.machine import State
from tests.wire.client import TERMINATE, Driven, RawClient, error_fields, errors, kinds, message, split, startup
from tests.wire.scram import ScramClient, sasl_initial, sasl_response
from tests.wire.server import Running
from tests.wire.toy import ToyBackend

SECRET = b"the secret of a catalog"
OFFER = struct.pack("!i", 10) + b"SCRAM-SHA-256\0\0"


class Kept:
    """A PasswordSource in memory; ``asked`` are the roles that were looked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.verifiers = {
            "u": passwords.stored("hush", "u", "scram-sha-256"),
            "old": passwords.stored("hush", "old", "md5"),
            "ünï": passwords.stored("pässwörd", "ünï", "scram-sha-256"),
        }

    def password_of(self, role: str) -> str | None:
        self.asked.append(role)
        return self.verifiers.get(role)


def method(*, md5: bool = False) -> PasswordAuthentication:
    return PasswordAuthentication(PasswordCheck(Kept(), secret=SECRET, md5=md5))


def driven(authentication: PasswordAuthentication | None = None, **options: object) -> Driven:
    return Driven(ToyBackend(), authentication=authentication or method(), **options)


def request(answer: bytes) -> tuple[int, bytes]:
    """The one request for authentication in an answer: its kind and what comes with it."""
    ((kind, body),) = split(answer)
    assert kind == "R"
    return struct.unpack("!i", body[:4])[0], body[4:]


def exchanged(engine: Driven, user: str, client: ScramClient) -> bytes:
    """The answer to the client's proof."""
    assert engine.say(startup(user=user, database="toy"))[5:] == OFFER
    kind, challenge = request(engine.say(sasl_initial("SCRAM-SHA-256", client.first())))
    assert kind == 11
    return engine.say(sasl_response(client.final(challenge)))


# --- the engine -----------------------------------------------------------------------------------------------------


def test_scram_transcript() -> None:
    engine, client = driven(), ScramClient("hush")
    answer = exchanged(engine, "u", client)
    (first, final), (second, ok), *greeting = split(answer)
    assert (first, final) == ("R", struct.pack("!i", 12) + client.expected)
    assert (second, ok) == ("R", struct.pack("!i", 0))
    assert [kind for kind, _ in greeting][-2:] == ["K", "Z"]
    assert engine.machine.state is State.READY


@pytest.mark.parametrize("user", ["u", "nosuch", "old"])
def test_whatever_is_wrong_the_client_hears_the_same_at_the_same_place(user: str) -> None:
    engine = driven()
    answer = exchanged(engine, user, ScramClient("wrong"))
    assert kinds(answer) == "E"
    assert error_fields(next(split(answer))[1]) == {
        "S": "FATAL", "V": "FATAL", "C": "28P01", "M": f'password authentication failed for user "{user}"',
    }  # fmt: skip
    assert engine.done
    assert engine.machine.session is None


def test_a_role_that_is_not_there_is_challenged_as_others_and_always_alike() -> None:
    challenges = []
    for _ in range(2):
        engine = driven()
        engine.say(startup(user="nosuch", database="toy"))
        _, challenge = request(engine.say(sasl_initial("SCRAM-SHA-256", ScramClient("x").first())))
        challenges.append(dict(part.split(b"=", 1) for part in challenge.split(b",")))
    assert challenges[0][b"s"] == challenges[1][b"s"]
    assert challenges[0][b"i"] == str(limits.SCRAM_ITERATIONS).encode()
    assert challenges[0][b"r"] != challenges[1][b"r"]


def test_a_made_up_verifier_is_never_a_way_in() -> None:
    """Also not for who guesses what it is made of: the exchange of a role that is not there cannot succeed."""
    engine = driven(PasswordAuthentication(PasswordCheck(Kept(), secret=b"")))
    assert errors(exchanged(engine, "nosuch", ScramClient("")))[0]["C"] == "28P01"


def test_md5_transcript() -> None:
    engine = driven(method(md5=True))
    kind, salt = request(engine.say(startup(user="old", database="toy")))
    assert (kind, len(salt)) == (5, 4)
    digits = hashlib.md5(b"hushold").hexdigest()
    proof = b"md5" + hashlib.md5(digits.encode() + salt).hexdigest().encode() + b"\0"
    assert kinds(engine.say(message(b"p", proof))).startswith("RS")
    again = driven(method(md5=True))
    again.say(startup(user="old", database="toy"))
    assert errors(again.say(message(b"p", proof)))[0]["C"] == "28P01"  # the salt is another one


def test_where_md5_is_allowed_scram_is_still_asked_of_who_has_it() -> None:
    assert driven(method(md5=True)).say(startup(user="u", database="toy"))[5:] == OFFER
    assert driven(method(md5=True)).say(startup(user="nosuch", database="toy"))[5:] == OFFER


@pytest.mark.parametrize(
    ("said", "sqlstate", "words"),
    [
        (message(b"Q", b"select 1\0"), "08P01", "expected password response, got message type 81"),
        (TERMINATE, "08P01", "expected password response, got message type 88"),
        (message(b"p"), "08P01", "invalid string in message"),
        (message(b"p", b"SCRAM-SHA-256\0\xff\xff\xff\xff"), "08P01", "malformed SCRAM message"),
        (message(b"p", b"SCRAM-SHA-256\0\0\0\0\x09abc"), "08P01", "insufficient data left in message"),
        (sasl_initial("SCRAM-SHA-256", b"n" * 1_025), "08P01", "SASL message is too long"),
        (sasl_initial("PLAIN", b"\0u\0hush"), "08P01", "client selected an invalid SASL authentication mechanism"),
        (b"p" + struct.pack("!i", limits.SHORT_MESSAGE_BYTES_MAX + 1), "08P01", "invalid message length"),
    ],
)
def test_answers_that_are_none_end_the_connection(said: bytes, sqlstate: str, words: str) -> None:
    engine = driven()
    engine.say(startup(user="u", database="toy"))
    (error,) = errors(engine.say(said))
    assert (error["S"], error["C"], error["M"]) == ("FATAL", sqlstate, words)
    assert engine.done


def test_after_repeated_failures_a_role_is_not_even_looked_for() -> None:
    kept = Kept()
    authentication = PasswordAuthentication(PasswordCheck(kept, secret=SECRET))
    for _ in range(limits.AUTHENTICATION_FAILURES_MAX):
        assert errors(exchanged(driven(authentication), "u", ScramClient("wrong")))[0]["C"] == "28P01"
    asked = len(kept.asked)
    (error,) = errors(driven(authentication).say(startup(user="u", database="toy")))
    assert (error["S"], error["C"], error["M"]) == ("FATAL", "28000", "too many failed authentication attempts")
    assert len(kept.asked) == asked
    assert kinds(driven(authentication, peer="192.0.2.7").say(startup(user="u", database="toy"))) == "R"


def test_looking_and_hanging_up_is_no_failure() -> None:
    authentication = method()
    for _ in range(2 * limits.AUTHENTICATION_FAILURES_MAX):
        driven(authentication).say(startup(user="u", database="toy"))
    answer = exchanged(driven(authentication), "u", ScramClient("hush"))
    assert kinds(answer).startswith("RR")


def test_whatever_is_said_instead_of_a_password_the_engine_answers_or_hangs_up() -> None:
    chance = random.Random(7)
    good = (sasl_initial("SCRAM-SHA-256", ScramClient("x").first()), sasl_response(b"c=biws,r=a,p=AAAA"))
    authentication = method(md5=True)
    for _ in range(1_500):
        engine = driven(authentication)
        engine.say(startup(user=chance.choice(["u", "old", "nosuch"]), database="toy"))
        for _ in range(3):
            said = bytearray(chance.choice(good))
            for _ in range(chance.randrange(4)):
                said[chance.randrange(len(said))] = chance.randrange(256)
            answer = engine.say(bytes(said[: chance.randrange(1, len(said) + 1)]))
            assert set(kinds(answer)) <= {"R", "E"}
            if engine.done:
                assert errors(answer)[0]["S"] == "FATAL"
                break
        assert engine.machine.session is None


def test_trust_is_for_the_machine_itself() -> None:
    engine = Driven(ToyBackend(), authentication=TrustLoopback(), peer="192.0.2.1", local=False)
    (error,) = errors(engine.say(startup()))
    assert error["C"] == "28000"


# --- real clients ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with Running(authentication=method(md5=True)) as server:
        yield server


def connect(running: Running, user: str, password: str | None) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        host="127.0.0.1", port=running.port, user=user, dbname="toy", password=password, autocommit=True,
        connect_timeout=10,
    )  # fmt: skip


@pytest.mark.parametrize(("user", "password"), [("u", "hush"), ("old", "hush"), ("ünï", "pässwörd")])
def test_psycopg_logs_in(running: Running, user: str, password: str) -> None:
    with connect(running, user, password) as connection:
        assert connection.pgconn.used_password
        assert connection.pgconn.parameter_status(b"session_authorization") == user.encode()


@pytest.mark.parametrize("user", ["u", "old", "nosuch"])
def test_psycopg_hears_of_a_wrong_password(running: Running, user: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mvserver")
    with pytest.raises(psycopg.OperationalError, match=f'password authentication failed for user "{user}"'):
        connect(running, user, "not-it")
    assert f"authentication failed for role '{user}' from 127.0.0.1" in caplog.text
    assert "not-it" not in caplog.text


def test_psycopg_without_a_password(running: Running) -> None:
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        connect(running, "u", None)


def test_psql_logs_in(running: Running) -> None:
    base = ["psql", "-w", "-h", "127.0.0.1", "-p", str(running.port), "-U", "u", "-c", "insert 1", "toy"]
    environment = {**os.environ, "PGPASSWORD": "hush"}
    good = subprocess.run(base, capture_output=True, text=True, env=environment, timeout=20, check=False)
    assert (good.returncode, good.stdout) == (0, "INSERT 0 1\n"), good.stderr
    environment["PGPASSWORD"] = "wrong"
    bad = subprocess.run(base, capture_output=True, text=True, env=environment, timeout=20, check=False)
    assert bad.returncode == 2
    assert 'password authentication failed for user "u"' in bad.stderr


def test_who_takes_too_long_over_the_password_is_told_and_hung_up_on() -> None:
    with (
        Running(authentication=method(), authentication_timeout_s=0.4) as running,
        RawClient(running.port) as client,
    ):
        client.send(startup(user="u", database="toy"))
        answer = client.rest()
        assert kinds(answer) == "RE"
        (error,) = errors(answer)
        assert (error["C"], error["M"]) == ("57014", "canceling authentication due to timeout")
