"""``x LIKE ANY (array)`` and its like: one of an array of patterns, or all of them."""

from __future__ import annotations

from sqlglot import exp

from mvserver.dialect.functions.arrays import array_literal, compared_array
from mvserver.dialect.functions.to_char import call


def any_pattern(like: exp.Expr) -> exp.Expr | None:
    """By the pattern's answers for each element; None for a comparison with a single pattern."""
    pattern = like.args["expression"]
    array = compared_array(pattern)
    if array is None or isinstance(array, exp.Query | exp.Subquery):
        return None
    array = array_literal(array) or array
    every = isinstance(pattern, exp.All) or (isinstance(pattern, exp.Anonymous) and pattern.name.lower() == "all")
    element = exp.to_identifier("_pattern", quoted=True)
    test = like.copy()
    test.set("expression", exp.Column(this=element.copy()))
    matched: exp.Expr = exp.Escape(this=test, expression=exp.Literal.string("\\"))
    answers = call("list_transform", array.copy(), exp.Lambda(this=matched, expressions=[element]))
    answer = exp.to_identifier("_answer", quoted=True)
    unknown = exp.Lambda(
        this=exp.Is(this=exp.Column(this=answer.copy()), expression=exp.Null()), expressions=[answer]
    )  # fmt: skip
    decided = exp.false() if every else exp.true()
    return exp.Paren(
        this=exp.Case(
            ifs=[
                exp.If(this=exp.Is(this=array.copy(), expression=exp.Null()), true=exp.Null()),
                exp.If(this=call("list_contains", answers, decided), true=decided.copy()),
                exp.If(
                    this=exp.GT(
                        this=call("len", call("list_filter", answers.copy(), unknown)),
                        expression=exp.Literal.number(0),
                    ),
                    true=exp.Null(),
                ),
            ],
            default=exp.true() if every else exp.false(),
        )
    )
