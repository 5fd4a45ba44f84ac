"""``unnest(a, b, …)`` in FROM: the arrays side by side, the shorter ones filled up with NULL."""

from __future__ import annotations

from sqlglot import exp

from mvserver import interrupts


def rewrite(root: exp.Expr) -> None:
    """DuckDB's own takes one array; in a select list it has several side by side."""
    for node in interrupts.asking(list(root.find_all(exp.Unnest))):
        if len(node.expressions) < 2 or not isinstance(node.parent, exp.From | exp.Join | exp.Lateral):
            continue
        lateral = node.parent if isinstance(node.parent, exp.Lateral) else None
        alias = (lateral or node).args.get("alias") or exp.TableAlias(this=exp.to_identifier("unnest", quoted=True))
        items: list[exp.Expr] = [
            exp.alias_(_call("unnest", array), f"unnest_{number}") for number, array in enumerate(node.expressions, 1)
        ]
        offset = node.args.get("offset")
        if isinstance(offset, exp.Identifier):  # the parser has taken the last name for it
            alias.append("columns", offset.copy())
        if offset:
            lengths = [_call("coalesce", _call("len", array), exp.Literal.number(0)) for array in node.expressions]
            last = exp.Add(this=_call("greatest", *lengths), expression=exp.Literal.number(1))
            items.append(exp.alias_(_call("unnest", _call("range", exp.Literal.number(1), last)), "ordinality"))
        rows = exp.Subquery(this=exp.Select(expressions=items))
        if lateral is not None:
            lateral.set("alias", alias)
            node.replace(rows)
        else:
            node.replace(exp.Lateral(this=rows, alias=alias.copy()))


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])
