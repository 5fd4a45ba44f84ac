"""Whether two answers are the same, as far as the documents say that they are."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from tests.corpus.compare import Answer

SAME, DIGITS, REFUSED, UNTYPED, EVALUATED = "same", "digits", "refused", "untyped", "evaluated"
LIMITED = "limited"
ALLOWED = frozenset({SAME, DIGITS, REFUSED, UNTYPED, EVALUATED, LIMITED})
"""What docs/sql/postgresql.md has among the differences: digits behind the point, refusals with 0A000, constants and
parameters that nothing gives a type, and a value that one of the servers need not compute, which is an error. What
PostgreSQL refuses for a limit of its own may be answered."""

_OPEN_TYPES = ("42P18", "42725", "42883", "42804")
_LIMITS = ("arguments to GROUPING must be grouping expressions",)
"""``grouping(upper(x))`` in a sub-query, although the query around it is grouped by that."""
_OLDER_NAMES = {"bool": "?column?"}
"""``SELECT true`` has another name since PostgreSQL 18."""
_NUMERIC, _FLOATS, _INTEGERS = 1700, (700, 701), (20, 21, 23)
_FIRST_OWN = 16384
_JSON = (114, 3802)
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")


def judged(ours: Answer, theirs: Answer, *, ordered: bool, parameters: bool = False) -> str:
    """In what they differ, or one of ``ALLOWED``."""
    if theirs.error in _OPEN_TYPES and (parameters or "unknown" in theirs.message):
        return UNTYPED
    if ours.error or theirs.error:
        return _errors(ours, theirs)
    if [_OLDER_NAMES.get(name, name) for name in ours.names] != [_OLDER_NAMES.get(n, n) for n in theirs.names]:
        return "names"
    kinds, own_kinds = ([_known(oid) for oid, _ in each.types] for each in (theirs, ours))
    if own_kinds != kinds:
        return "types"
    if ours.rows == theirs.rows:
        return SAME
    own, other = _plain(ours, kinds), _plain(theirs, kinds)
    if not ordered:
        own, other = sorted(own, key=repr), sorted(other, key=repr)
    return DIGITS if own == other else "rows"


def _errors(ours: Answer, theirs: Answer) -> str:
    if ours.error == "0A000":
        return REFUSED
    if ours.error[:2] == theirs.error[:2]:
        return SAME
    if not ours.error and theirs.message.startswith(_LIMITS):
        return LIMITED
    if {ours.error[:2], theirs.error[:2]} <= {"", "21", "22"}:
        return EVALUATED
    return "SQLSTATE" if ours.error and theirs.error else f"error of {'ours' if ours.error else 'PostgreSQL'}"


def _known(oid: int) -> int:
    """Types that users have made have an oid of their own in each server."""
    return min(oid, _FIRST_OWN)


def _plain(answer: Answer, kinds: list[int]) -> list[tuple[object, ...]]:
    return [tuple(_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True)) for row in answer.rows]


def _cell(cell: bytes | None, kind: int) -> object:
    if cell is None:
        return None
    text = cell.decode()
    if kind == _NUMERIC:
        return _rounded(text, 9)
    if kind in _FLOATS:
        return _rounded(text, 12)
    if kind in _JSON:
        return _NUMBER.sub(lambda number: str(_rounded(number[0], 12)), text)
    return text


def _rounded(text: str, digits: int) -> object:
    """Texts that are no numbers, or like bytes ``5e99999999`` beyond all of them, as they are."""
    try:
        number = Decimal(text)
        if not number.is_finite():
            return text
        if number == 0:
            return 0
        return round(number, digits - 1 - number.adjusted()).normalize() if digits == 12 else _places(number)
    except InvalidOperation:
        return text


def _places(number: Decimal) -> Decimal:
    return number.quantize(Decimal("1e-9")).normalize() if number.adjusted() < 18 else number.normalize()


def summary(what: str, ours: Answer, theirs: Answer) -> str:
    """One for all differences of a class, by what the servers say."""
    said = [re.sub(r"\"[^\"]*\"|'[^']*'|\d+", "*", each.message)[:90] for each in (ours, theirs)]
    if what == "types":
        pairs = {(a[0], b[0]) for a, b in zip(ours.types, theirs.types, strict=False) if a[0] != b[0]}
        return f"types {sorted(pairs)}"
    return f"{what}: {ours.error} {said[0]} | {theirs.error} {said[1]}"
