"""Passwords in the one form that SCRAM hashes (RFC 4013), so that a client that types them otherwise still matches.

As PostgreSQL and libpq do it: a text that the profile refuses is hashed as it stands.
"""

from __future__ import annotations

import stringprep
import unicodedata

_PROHIBITED = (
    stringprep.in_table_a1,
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def prepared(password: str) -> bytes:
    if password.isascii() and password.isprintable():
        return password.encode("ascii")
    mapped = "".join(
        " " if stringprep.in_table_c12(character) else character
        for character in password
        if not stringprep.in_table_b1(character)
    )
    text = unicodedata.normalize("NFKC", mapped)
    return (text if _is_allowed(text) else password).encode("utf-8", "surrogatepass")


def _is_allowed(text: str) -> bool:
    if not text or any(refuses(character) for character in text for refuses in _PROHIBITED):
        return False
    if not any(map(stringprep.in_table_d1, text)):
        return True
    # a text that runs right to left does so from end to end
    if any(map(stringprep.in_table_d2, text)):
        return False
    return stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
