"""Sealed tokens in SQL, for what DuckDB shows of a history to those who may see some rows alone, and for what they ask.

The texts are those of ``mvserver.resume_tokens.Seal``. What is random there follows from the number here.
"""

from __future__ import annotations

import secrets

import duckdb

from mvserver.resume_tokens import CHECK_DIGITS, NONCE_DIGITS, NUMBER_DIGITS

_SECRET_BYTES = 16
_TABLE = '"_ledger".history_secret'


def secret_of(cursor: duckdb.DuckDBPyConnection) -> str:
    """That of this database, made at the first time."""
    cursor.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE} (secret VARCHAR NOT NULL)")
    rows = cursor.execute(f"SELECT secret FROM {_TABLE}").fetchall()
    if rows:
        return str(rows[0][0])
    made = secrets.token_hex(_SECRET_BYTES)
    cursor.execute(f"INSERT INTO {_TABLE} VALUES ($1)", [made])
    return made


def sealed(secret: str, incarnation: str, number: str) -> str:
    """The sealed number of an expression of type BIGINT."""
    nonce = f"left(sha256('{secret}n{incarnation}' || {number}), {NONCE_DIGITS})"
    of = f"'{incarnation}'"
    hidden = f"printf('%0{NUMBER_DIGITS}x', xor(CAST({number} AS UBIGINT), {_stream(secret, of, nonce)}))"
    return f"{nonce} || {hidden} || {_check(secret, of, f'{nonce} || {hidden}')}"


def unsealed(secret: str, incarnation: str, text: str) -> str:
    """The number, of expressions of a token's parts; NULL for what was not sealed here."""
    nonce = f"left({text}, {NONCE_DIGITS})"
    hidden = f"substr({text}, {NONCE_DIGITS + 1}, {NUMBER_DIGITS})"
    check = f"right({text}, {CHECK_DIGITS})"
    number = f"xor(CAST('0x' || {hidden} AS UBIGINT), {_stream(secret, incarnation, nonce)})"
    whole = f"left({text}, {NONCE_DIGITS + NUMBER_DIGITS})"
    return f"CASE WHEN {_check(secret, incarnation, whole)} = {check} THEN CAST({number} AS BIGINT) END"


def _stream(secret: str, incarnation: str, nonce: str) -> str:
    return f"CAST('0x' || left(sha256('{secret}s' || {incarnation} || {nonce}), {NUMBER_DIGITS}) AS UBIGINT)"


def _check(secret: str, incarnation: str, sealed_number: str) -> str:
    return f"left(sha256('{secret}t' || {incarnation} || {sealed_number}), {CHECK_DIGITS})"
