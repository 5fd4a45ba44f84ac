"""SCRAM-SHA-256 and stored passwords: the RFCs' vectors, and what is refused."""

from __future__ import annotations

import base64

import pytest

from mvserver import limits
from mvserver.auth import passwords
from mvserver.auth.passwords import Md5Verifier, ScramVerifier
from mvserver.auth.saslprep import prepared
from mvserver.auth.scram import PLAIN, PLUS, ScramExchange, pretended
from mvserver.auth.throttle import Throttle
from mvserver.errors import SqlError
from tests.wire.scram import ScramClient

PENCIL = ScramVerifier.of("pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)


def vector_exchange() -> tuple[ScramExchange, bytes]:
    exchange = ScramExchange(PENCIL, nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    return exchange, exchange.first(PLAIN, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")


def test_rfc_7677_section_3() -> None:
    exchange, challenge = vector_exchange()
    assert challenge == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    answer = exchange.final(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert answer == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_proof_that_is_one_bit_off_does_not_hold() -> None:
    exchange, _ = vector_exchange()
    proof = bytearray(base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="))
    proof[0] ^= 1
    message = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=" + base64.b64encode(proof)
    assert exchange.final(message) is None


def test_nonces_are_new_each_time() -> None:
    assert ScramExchange(PENCIL).first(PLAIN, b"n,,n=,r=a") != ScramExchange(PENCIL).first(PLAIN, b"n,,n=,r=a")


@pytest.mark.parametrize(
    ("mechanism", "message", "sqlstate", "detail"),
    [
        ("SCRAM-SHA-1", b"n,,n=,r=a", "08P01", None),
        (PLUS, b"p=tls-server-end-point,,n=,r=a", "08P01", None),
        (PLAIN, b"", "08P01", "The message has no header."),
        (PLAIN, b"p=tls-server-end-point,,n=,r=a", "08P01",
         "The client binds to the channel, but chose a mechanism that does not."),
        (PLAIN, b"x,,n=,r=a", "08P01", "The channel-binding flag is not known."),
        (PLAIN, b"n,a=other,n=,r=a", "0A000", None),
        (PLAIN, b"n,,m=ext,n=,r=a", "0A000", None),
        (PLAIN, b"n,,n=", "08P01", "The message has no nonce."),
        (PLAIN, b"n,,r=a,n=", "08P01", 'Attribute "n" was expected.'),
        (PLAIN, b"n,,n=,r=", "08P01", "The nonce has characters that cannot be printed."),
        (PLAIN, b"n,,n=,r=a\x07", "08P01", "The nonce has characters that cannot be printed."),
        (PLAIN, b"n,,n=,r=\xff", "08P01", "The message is not UTF-8."),
        (PLAIN, b"n,,n=,r=a\0", "08P01", "The message has a zero byte."),
    ],
)  # fmt: skip
def test_first_messages_that_are_refused(mechanism: str, message: bytes, sqlstate: str, detail: str | None) -> None:
    with pytest.raises(SqlError) as raised:
        ScramExchange(PENCIL).first(mechanism, message)
    assert (raised.value.sqlstate, raised.value.detail, raised.value.severity) == (sqlstate, detail, "FATAL")


@pytest.mark.parametrize(
    ("message", "sqlstate", "words"),
    [
        (b"", "08P01", "malformed SCRAM message"),
        (b"c=biws,r=NONCE", "08P01", "malformed SCRAM message"),
        (b"c=biws,r=NONCE,p=dHzb", "08P01", "malformed SCRAM message"),
        (b"c=biws,r=NONCE,p=%%%%", "08P01", "malformed SCRAM message"),
        (b"c=biws,r=other,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", "08P01", "malformed SCRAM message"),
        (b"c=eSws,r=NONCE,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", "28000",
         "SCRAM channel binding check failed"),
        (b"r=NONCE,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", "08P01", "malformed SCRAM message"),
    ],
)  # fmt: skip
def test_last_messages_that_are_refused(message: bytes, sqlstate: str, words: str) -> None:
    exchange, challenge = vector_exchange()
    nonce = challenge.split(b",")[0][2:]
    with pytest.raises(SqlError) as raised:
        exchange.final(message.replace(b"NONCE", nonce))
    assert (raised.value.sqlstate, raised.value.message) == (sqlstate, words)


def test_a_proof_is_tied_to_the_channel() -> None:
    client = ScramClient("pencil")
    exchange = ScramExchange(PENCIL, binding=b"certificate")
    assert exchange.mechanisms == (PLUS, PLAIN)
    challenge = exchange.first(PLUS, client.first("p=tls-server-end-point,,"))
    assert exchange.final(client.final(challenge, binding=b"certificate")) == client.expected
    exchange = ScramExchange(PENCIL, binding=b"certificate")
    challenge = exchange.first(PLUS, client.first("p=tls-server-end-point,,"))
    with pytest.raises(SqlError, match="channel binding check failed"):
        exchange.final(client.final(challenge, binding=b"another"))


@pytest.mark.parametrize(
    ("mechanism", "header", "words"),
    [
        (PLAIN, "y,,", "SCRAM channel binding negotiation error"),
        (PLUS, "n,,", "malformed SCRAM message"),
        (PLUS, "p=tls-unique,,", "unsupported SCRAM channel-binding type"),
    ],
)
def test_a_binding_that_was_tampered_with_is_found(mechanism: str, header: str, words: str) -> None:
    with pytest.raises(SqlError, match=words):
        ScramExchange(PENCIL, binding=b"x").first(mechanism, ScramClient("pencil").first(header))
    assert ScramExchange(PENCIL).first(PLAIN, ScramClient("pencil").first("y,,"))


def test_the_made_up_challenge_of_a_role_is_always_the_same() -> None:
    one, other = pretended("anna", b"secret", 4096), pretended("anna", b"secret", 4096)
    assert (one.salt, one.iterations, len(one.salt)) == (other.salt, 4096, passwords.SALT_BYTES)
    assert pretended("ben", b"secret", 4096).salt != one.salt
    assert pretended("anna", b"another", 4096).salt != one.salt


# --- what is stored -------------------------------------------------------------------------------------------------


def test_a_verifier_as_postgresql_writes_it() -> None:
    text = PENCIL.text()
    assert text == (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$"
        "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )
    assert passwords.parse(text) == PENCIL
    assert "WG5d" not in repr(PENCIL)


def test_md5_as_postgresql_does_it() -> None:
    verifier = Md5Verifier.of("hush", "anna")
    assert verifier.text() == "md5a768340fabd7315490804d295272bf17"
    assert passwords.parse(verifier.text()) == verifier
    assert passwords.stored("hush", "anna", "md5") == verifier.text()


@pytest.mark.parametrize(
    "text",
    ["", "hush", "md5", "md5x768340fabd7315490804d295272bf17", PENCIL.text()[:-1], PENCIL.text().replace("4096", "0"),
     "SCRAM-SHA-256$4096:AAAA$AAAA:AAAA"],
)  # fmt: skip
def test_what_is_no_verifier_is_a_password(text: str) -> None:
    assert passwords.parse(text) is None
    kept = passwords.parse(passwords.stored(text, "anna", "scram-sha-256"))
    assert isinstance(kept, ScramVerifier)
    assert kept.iterations == limits.SCRAM_ITERATIONS
    assert kept == ScramVerifier.of(text, kept.salt, kept.iterations)


@pytest.mark.parametrize(
    ("typed", "hashed"),
    [
        ("plain", "plain"),
        ("I\u00adX", "IX"),  # RFC 4013, section 3
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
        ("b\u0308se", "b\u0308se"),
        ("u\u0308", "ü"),
        ("\u0007", "\u0007"),  # prohibited: as it stands
        ("\u0627\u0031", "\u06271"),  # does not end as it begins: as it stands
        ("\u0627\u0031\u0628", "\u0627\u0031\u0628"),
        ("\u00ad", "\u00ad"),  # nothing would be left
    ],
)
def test_passwords_are_prepared(typed: str, hashed: str) -> None:
    assert prepared(typed) == hashed.encode()


# --- the throttle ---------------------------------------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_after_some_failures_a_role_waits_and_others_do_not() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    for _ in range(limits.AUTHENTICATION_FAILURES_MAX):
        throttle.charge("192.0.2.1", "anna")
    clock.now = 20.0
    with pytest.raises(SqlError) as raised:
        throttle.check("192.0.2.1", "anna")
    assert (raised.value.sqlstate, raised.value.message) == ("28000", "too many failed authentication attempts")
    assert raised.value.hint == "Try again in 40 s."
    with pytest.raises(SqlError):
        throttle.charge("192.0.2.1", "anna")
    throttle.check("192.0.2.1", "ben")
    throttle.check("192.0.2.2", "anna")
    clock.now = limits.AUTHENTICATION_FAILURE_WINDOW_S
    throttle.check("192.0.2.1", "anna")


def test_one_password_is_not_tried_on_every_role() -> None:
    throttle = Throttle(Clock())
    for number in range(limits.AUTHENTICATION_FAILURES_OF_ADDRESS_MAX):
        throttle.charge("2001:db8::1", f"role{number}")
    with pytest.raises(SqlError):
        throttle.check("2001:db8::ffff", "anna")
    throttle.check("2001:db8:0:1::1", "anna")


def test_a_success_is_forgiven() -> None:
    throttle = Throttle(Clock())
    for _ in range(10 * limits.AUTHENTICATION_FAILURES_OF_ADDRESS_MAX):
        throttle.charge("192.0.2.1", "anna")
        throttle.forgive("192.0.2.1", "anna")
    throttle.check("192.0.2.1", "anna")


def test_what_the_throttle_remembers_is_bounded() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    for number in range(limits.AUTHENTICATION_FAILURES_REMEMBERED_MAX + 50):
        throttle.charge(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", "anna")
    assert len(throttle._attempts) == limits.AUTHENTICATION_FAILURES_REMEMBERED_MAX
