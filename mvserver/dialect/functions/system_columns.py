"""``xmin`` and its like, which no relation here has: all rows are of the catalog's present generation.

Tools ask by them what has changed since they last looked. Everything has, so they look at everything.
"""

from __future__ import annotations

from sqlglot import exp

from mvserver import interrupts

_FIRST_NORMAL = 3  # PostgreSQL's first transaction that is no special one
_OLDEST = 2_147_483_647  # the age of what is not a normal transaction
_HIDDEN = frozenset({"xmin", "xmax", "cmin", "cmax"})
_TRANSACTIONS = frozenset({"xmin", "xmax", "datfrozenxid", "relfrozenxid", "backend_xid", "backend_xmin"})


def settle(tree: exp.Expr, generation: int) -> None:
    """Replaces the columns, and ages of transactions, in place."""
    now = generation + _FIRST_NORMAL
    for call in interrupts.asking(list(tree.find_all(exp.Anonymous))):
        if call.name.lower() == "age" and len(call.expressions) == 1 and _is_transaction(call.expressions[0]):
            call.replace(_age(call.expressions[0], now))
    named = [column for column in tree.find_all(exp.Column) if _name(column) in _HIDDEN]
    if not named:
        return
    own = {_folded(each) for each in tree.find_all(exp.Identifier) if not isinstance(each.parent, exp.Column)}
    for column in interrupts.asking(named):
        name = _name(column)
        if name in own:  # the query gives something that name
            continue
        value = exp.cast(exp.Literal.number(now if name == "xmin" else 0), "UINTEGER", dialect="duckdb")
        listed = isinstance(column.parent, exp.Select) and column.arg_key == "expressions"
        column.replace(exp.alias_(value, name, quoted=True) if listed else value)


def _is_transaction(node: exp.Expr) -> bool:
    node = node.unnest()
    if isinstance(node, exp.Cast):
        return str(node.to.sql()).lower() == "xid"
    return isinstance(node, exp.Column) and _name(node) in _TRANSACTIONS


def _age(transaction: exp.Expr, now: int) -> exp.Expr:
    number = exp.cast(transaction.copy(), "BIGINT", dialect="duckdb")
    special = exp.If(
        this=exp.LT(this=number, expression=exp.Literal.number(_FIRST_NORMAL)), true=exp.Literal.number(_OLDEST)
    )
    age = exp.Sub(this=exp.Literal.number(now), expression=number.copy())
    return exp.cast(exp.Case(ifs=[special], default=age), "INT", dialect="duckdb")


def _name(column: exp.Column) -> str:
    return _folded(column.this) if isinstance(column.this, exp.Identifier) else ""


def _folded(identifier: exp.Identifier) -> str:
    return str(identifier.this) if identifier.quoted else str(identifier.this).lower()
