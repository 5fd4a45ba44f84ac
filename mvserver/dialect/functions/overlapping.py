"""``(start, end) OVERLAPS (start, end)``: which of PostgreSQL's functions it is, by the types of the four parts.

Each has periods of dates, instants or times of day, and ends that may be lengths. A constant is read as what the
function takes there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from mvserver import interrupts, sqlstates
from mvserver.dialect.functions.casts import constant_of
from mvserver.dialect.parameters import signatures
from mvserver.dialect.typing.duck_types import output_type
from mvserver.dialect.typing.operand_rules import NO_FUNCTION
from mvserver.errors import SqlError
from mvserver.pgcatalog.pgtypes import PgType, spelled
from mvserver.types import oids

_MACRO = "_overlaps"
_CHOSEN = "chosen"  # of a call: its parts are what the macro takes
_DUCK = {
    oids.TIME: "TIME", oids.TIMETZ: "TIMETZ", oids.TIMESTAMP: "TIMESTAMP", oids.TIMESTAMPTZ: "TIMESTAMPTZ",
    oids.INTERVAL: "INTERVAL",
}  # fmt: skip
_SHOWN_AS_TEXT = {"TIME WITH TIME ZONE": oids.TIMETZ}  # of types that no column of a result has


def call(node: exp.Overlaps) -> exp.Expr:
    """The macro's call, to be given its types by ``choose``."""
    ends: list[exp.Expr] = []
    for period in (node.this, node.expression):
        if not isinstance(period, exp.Tuple) or len(period.expressions) != 2:
            raise SqlError(sqlstates.SYNTAX_ERROR, "wrong number of parameters on one side of OVERLAPS expression")
        ends += period.expressions
    return exp.Anonymous(this=_MACRO, expressions=ends)  # not copies: what is in them is still to be adapted


def present(tree: exp.Expr) -> bool:
    return next(_calls(tree), None) is not None


def choose(tree: exp.Expr, type_of: Callable[[exp.Expr], str], given: Sequence[int]) -> None:
    """In place, inner ones first. ``given`` are the oids of the parameters, as far as they are known."""
    for node in interrupts.asking(reversed(list(_calls(tree)))):
        node.meta[_CHOSEN] = True
        types = [_oid(part, type_of, given) for part in node.expressions]
        try:
            chosen = signatures.function("overlaps", types)
        except signatures.AmbiguousError as error:
            raise _none_of(types, "is not unique", "Could not choose a best candidate function.") from error
        if chosen is None:
            raise _none_of(types, "does not exist", NO_FUNCTION)
        parts = [_typed(part, oid) for part, oid in zip(node.expressions, chosen.arguments, strict=True)]
        for start in (0, 2):
            if chosen.arguments[start + 1] == oids.INTERVAL:
                length = exp.Paren(this=parts[start + 1])
                parts[start + 1] = exp.Add(this=exp.Paren(this=parts[start].copy()), expression=length)
        node.set("expressions", parts)


def _calls(tree: exp.Expr) -> Iterator[exp.Anonymous]:
    return (node for node in tree.find_all(exp.Anonymous) if node.name == _MACRO and not node.meta.get(_CHOSEN))


def _oid(part: exp.Expr, type_of: Callable[[exp.Expr], str], given: Sequence[int]) -> int:
    bare = part.unnest()
    if isinstance(bare, exp.Parameter):
        number = int(bare.name) if bare.name.isdigit() else 0
        return (given[number - 1] if 0 < number <= len(given) else 0) or oids.UNKNOWN
    if isinstance(bare, exp.Null) or (isinstance(bare, exp.Literal) and bare.is_string):
        return oids.UNKNOWN
    kind = type_of(part)
    if kind in ("", '"NULL"'):
        return oids.UNKNOWN
    return _SHOWN_AS_TEXT.get(kind) or output_type(kind).pg.oid


def _typed(part: exp.Expr, oid: int) -> exp.Expr:
    bare = part.unnest()
    if isinstance(bare, exp.Literal) and bare.is_string:
        return constant_of(bare, _DUCK[oid])
    return exp.cast(part, _DUCK[oid], dialect="duckdb") if isinstance(bare, exp.Null | exp.Parameter) else part


def _none_of(types: Sequence[int], what: str, hint: str) -> SqlError:
    shown = ["unknown" if oid == oids.UNKNOWN else spelled(PgType(oid)) for oid in types]
    return SqlError(
        sqlstates.AMBIGUOUS_FUNCTION if what == "is not unique" else sqlstates.UNDEFINED_FUNCTION,
        f"function pg_catalog.overlaps({', '.join(shown)}) {what}",
        hint=hint,
    )
