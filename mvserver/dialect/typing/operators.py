"""The place of an operator in the tokens of the text, between its operands. The tree does not keep it."""

from __future__ import annotations

from sqlglot import exp

from mvserver.sql.lexer import OPERATOR, WORD, tokenize

SYMBOLS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Add: ("+",), exp.Sub: ("-",), exp.Mul: ("*",), exp.Div: ("/",), exp.IntDiv: ("/",), exp.Mod: ("%",),
    exp.DPipe: ("||",), exp.BitwiseAnd: ("&",), exp.BitwiseOr: ("|",), exp.BitwiseXor: ("#",),
    exp.BitwiseLeftShift: ("<<",), exp.BitwiseRightShift: (">>",),
    exp.EQ: ("=",), exp.NEQ: ("<>", "!="), exp.LT: ("<",), exp.LTE: ("<=",), exp.GT: (">",),
    exp.GTE: (">=",), exp.RegexpLike: ("~",), exp.RegexpILike: ("~*",), exp.Neg: ("-",),
}  # fmt: skip
"""As messages show them first."""
_WORDS: dict[type[exp.Expr], str] = {exp.Like: "like", exp.ILike: "ilike", exp.In: "in", exp.Between: "between",
    exp.Collate: "collate",
}  # fmt: skip


def span(node: exp.Expr | None) -> tuple[int, int] | None:
    """From the first to the last character of what is written of it by name, constant or call."""
    if node is None:
        return None
    places = [part.meta for part in node.walk() if "start" in part.meta]
    return (min(at["start"] for at in places), max(at["end"] for at in places)) if places else None


def is_of(tree: exp.Expr, text: str) -> bool:
    """False in a text of several statements, whose places are counted from its beginning."""
    return all(
        node.name.lower() in text[node.meta["start"] : node.meta["end"] + 1].lower()
        for node in tree.find_all(exp.Literal, exp.Identifier)
        if "start" in node.meta
    )


def cast_place(node: exp.Cast, text: str) -> int | None:
    """Of ``::``, or of the word CAST."""
    operand = span(node.this)
    if operand is None:
        return None
    before = [token for token in tokenize(text) if token.start < operand[0]]
    called = next((token for token in reversed(before) if token.kind is WORD), None)
    if called is not None and called.text == "cast":
        return called.start
    after = (token for token in tokenize(text) if token.start > operand[1] and token.text == "::")
    return next((token.start for token in after), None)


def _before(node: exp.Expr, right: tuple[int, int] | None, text: str) -> int | None:
    symbols = SYMBOLS.get(type(node), ())
    places = [
        token.start for token in tokenize(text)
        if right is not None and token.end <= right[0] and token.kind is OPERATOR and token.text in symbols
    ]  # fmt: skip
    return places[-1] if places else None


def place(node: exp.Expr, text: str) -> int | None:
    """The offset of the operator; None where it cannot be told."""
    left = span(node.this)
    if left is None:
        return _before(node, span(node.args.get("expression")), text)
    if isinstance(node, exp.Neg):
        before = text[: left[0]].rstrip().rstrip("(").rstrip()
        return len(before) - 1 if before.endswith("-") else None
    previous = None
    for token in tokenize(text):
        if token.start > left[1]:
            if token.kind is OPERATOR and token.text in SYMBOLS.get(type(node), ()):
                return token.start
            if token.kind is WORD and token.text == _WORDS.get(type(node)):
                negated = previous is not None and previous.kind is WORD and previous.text == "not"
                return previous.start if negated and previous is not None else token.start
        previous = token
    return None
