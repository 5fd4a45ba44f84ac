"""A query that does not bind: which of its expressions is the cause, said in PostgreSQL's words and with its place."""

from __future__ import annotations

import re

from sqlglot import exp

from mvserver import interrupts, limits, sqlstates
from mvserver.dialect.typing import operators
from mvserver.dialect.typing.operand_checks import OperandChecks
from mvserver.dialect.typing.operand_rules import NO_OPERATOR, no_operator
from mvserver.dialect.typing.operators import SYMBOLS
from mvserver.errors import SqlError

_WINDOW_FUNCTIONS = frozenset(
    {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "first_value",
     "last_value", "nth_value"}
)  # fmt: skip
_OF_TYPES = (sqlstates.UNDEFINED_FUNCTION, sqlstates.DATATYPE_MISMATCH, sqlstates.CANNOT_COERCE)
_MAY_FAIL = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe, exp.Neg, exp.Cast, exp.Func)
_WRITTEN = re.compile(r"\w+(\.\w+)?")
_SCHEMA = re.compile(r"\w+\.$")


def explained(error: SqlError, checks: OperandChecks) -> SqlError:
    """The error, or a better one."""
    if error.sqlstate not in _OF_TYPES or error.position is not None:
        return error
    try:
        checks.check()
    except SqlError as found:
        return found
    culprit = _culprit(error, checks)
    return error if culprit is None else _about(culprit, error, checks)


def _culprit(error: SqlError, checks: OperandChecks) -> exp.Expr | None:
    """The innermost expression that alone has the same error."""
    nodes = [node for node in interrupts.asking(checks.tree.walk(bfs=True)) if isinstance(node, _MAY_FAIL)]
    for node in reversed(nodes[-limits.EXPRESSIONS_BOUND_APART_MAX :]):
        try:
            checks.bind([node])
        except SqlError as found:
            if (found.sqlstate, found.message) == (error.sqlstate, error.message):
                return node
    return None


def _about(node: exp.Expr, error: SqlError, checks: OperandChecks) -> SqlError:
    if isinstance(node, exp.Cast):
        at = None if checks.text is None else operators.cast_place(node, checks.text)
        return SqlError(error.sqlstate, error.message, position=None if at is None else at + 1)
    operands = [node.this] if isinstance(node, exp.Neg) else _arguments(node)
    shown = [checks.shown(operand) for operand in operands]
    if isinstance(node, exp.Neg):
        hint = NO_OPERATOR.replace("types", "type").replace("casts", "cast").replace("add explicit", "add an explicit")
        return no_operator(f"- {shown[0]}", checks.place(node, operator=True), hint)
    if type(node) in SYMBOLS:
        return no_operator(f"{shown[0]} {SYMBOLS[type(node)][0]} {shown[1]}", checks.place(node, operator=True))
    start = node.meta.get("start")
    if start is None or checks.text is None:
        return error
    schema = _SCHEMA.search(checks.text, 0, start)
    start = start if schema is None else schema.start()
    name = _WRITTEN.match(checks.text, start)
    if name is None:
        return error
    if name[0].lower() in _WINDOW_FUNCTIONS:
        what = f"window function {name[0].lower()} requires an OVER clause"
        return SqlError(sqlstates.WRONG_OBJECT_TYPE, what, position=start + 1)
    if error.sqlstate != sqlstates.UNDEFINED_FUNCTION:
        error.position = start + 1
        return error
    return SqlError(
        sqlstates.UNDEFINED_FUNCTION,
        f"function {name[0].lower()}({', '.join(shown)}) does not exist",
        hint="No function matches the given name and argument types. You might need to add explicit type casts.",
        position=start + 1,
    )


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Anonymous) else list(node.iter_expressions())
