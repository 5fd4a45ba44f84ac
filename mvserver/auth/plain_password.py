"""The check of a password that is sent as it is, as HTTP's basic authentication does."""

from __future__ import annotations

import hmac

from mvserver import limits
from mvserver.auth.password_check import PasswordCheck
from mvserver.auth.passwords import Md5Verifier, ScramVerifier, Verifier


def check_plain(check: PasswordCheck, address: str, role: str, password: str) -> None:
    """Returns where the password is the role's; 28P01, or 28000 after too many failures. Computes for some
    milliseconds, also for a role that does not exist."""
    check.begin(address, role)
    challenge = check.challenge(role, check.kept(role))
    check.attempt(address, role)
    good = _matches(challenge.verifier, role, password)
    check.conclude(address, role, challenge, good and not challenge.is_made_up)


def _matches(verifier: Verifier, role: str, password: str) -> bool:
    if isinstance(verifier, Md5Verifier):
        return hmac.compare_digest(Md5Verifier.of(password, role).digits, verifier.digits)
    if verifier.iterations > limits.PLAIN_PASSWORD_ITERATIONS_MAX:
        return False  # a verifier that was given as such: the client of a SCRAM exchange does this work itself
    made = ScramVerifier.of(password, verifier.salt, verifier.iterations)
    return hmac.compare_digest(made.stored_key, verifier.stored_key)
