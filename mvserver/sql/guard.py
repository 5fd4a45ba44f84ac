"""Bounds for hostile or runaway texts: size, nesting and length, before any parser runs.

Parsers recurse, and so do the readers of their trees; Python's stack is finite. So the depth that a statement's tree
can have is computed from its tokens, without recursion, and refused beyond ``limits``: brackets and CASEs nest, prefix
operators nest, and a chain of binary operators is a tree as deep as it is long (chains of AND and OR are balanced by
our parsers, so they do not count). The recursion limit of the interpreter is raised once to what the deepest accepted
statement needs; should a parser still run out of stack, :func:`no_recursion_error` turns that into the same error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mvserver import interrupts, limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.lexer import NUMBER, OPERATOR, PARAMETER, STRING, WORD, Token

sys.setrecursionlimit(max(sys.getrecursionlimit(), limits.RECURSION_LIMIT))

_OPEN = frozenset("([{")
_CLOSE = frozenset(")]}")
_PREFIX_OPERATORS = frozenset({"-", "+", "~", "@", "!"})
_NOT_OPERATORS = frozenset({".", ",", ":", "=>", ":=", "..", "?", "`", "\\"})
_WORD_OPERATORS = frozenset({"like", "ilike", "similar", "is", "in", "between", "at", "collate", "isnull", "notnull"})
# Where an operand list starts anew: what stands before is finished, so its chain does not grow any more.
_BOUNDARIES = frozenset(
    {
        "and", "or", "when", "then", "else", "from", "where", "group", "having", "order", "on", "select", "with",
        "limit", "join", "values", "as", "set",
    }
)  # fmt: skip
# Lists whose literals are one node of the tree (``literal_runs``), by the word before them: how they open and close,
# and whether several follow each other, as the rows of VALUES do.
_LISTS = {"in": ("(", ")", False), "array": ("[", "]", False), "values": ("(", ")", True)}
_BEFORE_NAMES = frozenset({".", "::", "as"})
_BEFORE_OPERANDS = frozenset({"all", "by", "distinct"})  # words of no operand, behind which one begins
_OPENING, _ITEM, _NEGATIVE, _BEHIND_ITEM, _BEHIND_ROW = range(5)  # what a list waits for, or has just had
_LITERALS = frozenset({NUMBER, STRING, PARAMETER})
_SET_OPERATIONS = frozenset({"union", "intersect", "except"})


def check_size(text: str) -> None:
    """54000 for a text that is longer than the parser will look at."""
    if len(text) * 4 <= limits.STATEMENT_BYTES_MAX:
        return
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limits.STATEMENT_BYTES_MAX:
        raise SqlError(
            sqlstates.PROGRAM_LIMIT_EXCEEDED,
            "statement is too long",
            detail=f"It has {size} bytes; the limit is {limits.STATEMENT_BYTES_MAX}.",
            hint="Split it into several statements, or pass long values as parameters.",
        )


class _Level:
    """One open bracket or CASE.

    ``depth`` is the depth of the operand list's present tree, ``finished`` the deepest of those before it, ``prefixes``
    the prefix operators that wait for their operand.
    """

    __slots__ = ("depth", "finished", "is_case", "of_position", "prefixes")

    def __init__(self, is_case: bool) -> None:
        self.is_case = is_case
        self.of_position = False  # position(... IN ...), whose IN is none of a list
        self.depth = 0
        self.finished = 0
        self.prefixes = 0

    def boundary(self) -> None:
        self.finished = max(self.finished, self.depth)
        self.depth = 0


class _Walk:
    """The state of one pass over a statement's tokens."""

    __slots__ = ("level", "levels", "nesting")

    def __init__(self) -> None:
        self.level = _Level(False)
        self.levels = [self.level]
        self.nesting = 0  # open brackets, CASEs and waiting prefix operators, all levels together

    def open(self, token: Token, *, is_case: bool) -> None:
        self.level = _Level(is_case)
        self.levels.append(self.level)
        self._nest(token)

    def prefix(self, token: Token) -> None:
        self.level.prefixes += 1
        self._nest(token)

    def close(self, token: Token, *, is_case: bool) -> None:
        """A bracket that closes nothing is left to the parser, which names it."""
        if len(self.levels) == 1 or self.level.is_case is not is_case:
            return
        self.operand()
        inner = self.levels.pop()
        self.level = self.levels[-1]
        self.nesting -= 1
        depth = max(inner.finished, inner.depth) + 1 + self.level.prefixes
        self.level.depth = max(self.level.depth, depth)
        self.operand()
        if depth > limits.STATEMENT_CHAIN_MAX:
            raise _too_long(token)

    def operand(self) -> None:
        if self.level.prefixes:
            self.nesting -= self.level.prefixes
            self.level.prefixes = 0

    def chain(self, token: Token) -> None:
        self.operand()
        self.level.depth += 1
        if self.level.depth > limits.STATEMENT_CHAIN_MAX:
            raise _too_long(token)

    def boundary(self) -> None:
        self.operand()
        self.level.boundary()

    def _nest(self, token: Token) -> None:
        self.nesting += 1
        if self.nesting > limits.STATEMENT_DEPTH_MAX:
            raise too_deep(token.position)


class _Lists:
    """Counts the tokens of lists of literals that the parser makes one node of (``literal_runs``): they cost it next to
    nothing. A list is known as such when its bracket closes, or a row of VALUES when its own does."""

    __slots__ = ("_form", "_literals", "_literals_of_rows", "_pending", "_rows", "_state", "_width", "free")

    def __init__(self) -> None:
        self.free = 0
        self._form: tuple[str, str, bool] | None = None
        self._state = _OPENING
        self._pending = 0  # tokens of a list or row that has not ended
        self._literals = 0
        self._rows = self._literals_of_rows = self._width = 0

    def begin(self, form: tuple[str, str, bool] | None) -> None:
        """Behind a word, which a list may follow; None where none may."""
        self._form = form
        if form is not None:
            self._state = _OPENING
            self._pending = self._literals = self._rows = self._literals_of_rows = self._width = 0

    def see(self, token: Token) -> None:
        """Any token but a word."""
        if self._form is None:
            return
        opening, closing, rows = self._form
        kind, state, text = token.kind, self._state, token.text
        self._pending += 1
        if (kind is NUMBER and state in (_ITEM, _NEGATIVE)) or (kind is STRING and state is _ITEM):
            self._literals += 1
            self._state = _BEHIND_ITEM
        elif kind is not OPERATOR:
            self._form = None
        elif text == "," and state is _BEHIND_ITEM:
            self._state = _ITEM
        elif text == "," and state is _BEHIND_ROW:
            self._state = _OPENING
        elif text == "-" and state is _ITEM:
            self._state = _NEGATIVE
        elif text == opening and state is _OPENING:
            self._state = _ITEM
        elif text == closing and state is _BEHIND_ITEM and rows:
            self._end_row()
        else:
            if text == closing and state is _BEHIND_ITEM and self._literals > limits.LITERALS_APART_MAX:
                self.free += self._pending
            self._form = None

    def _end_row(self) -> None:
        """The first rows are nodes, and each whose width differs from that before it."""
        apart = self._rows <= limits.LITERALS_APART_MAX and self._literals_of_rows <= limits.ROW_LITERALS_APART_MAX
        if not apart and self._literals == self._width:
            self.free += self._pending
        self._rows += 1
        self._literals_of_rows += self._literals
        self._width = self._literals
        self._state = _BEHIND_ROW
        self._pending = self._literals = 0


def check_tokens(tokens: Sequence[Token]) -> None:
    """54001 for a statement whose tree would be too deep, 54000 for one that would take too long to parse."""
    walk = _Walk()
    operand_before = False  # whether an operator that follows is binary
    set_operations = 0
    dots = 0  # of one chain
    lists = _Lists()
    for index, token in enumerate(tokens):
        if not index % interrupts.EVERY:
            interrupts.check()
        kind = token.kind
        if token.text != "." and index and tokens[index - 1].text != ".":
            dots = 0
        if kind is WORD:
            form = _LISTS.get(token.text)
            if form is not None and _is_no_list(token, tokens[index - 1].text, walk.level, operand_before):
                form = None
            lists.begin(form)
        else:
            lists.see(token)
        if kind in _LITERALS:
            operand_before = True
            if walk.level.prefixes:
                walk.operand()
            continue
        text = token.text
        if kind is OPERATOR and text == ",":
            walk.boundary()
            operand_before = False
            continue
        if kind is OPERATOR:
            if text == ".":
                dots += 1
                if dots > limits.STATEMENT_DEPTH_MAX:
                    raise too_deep(token.position)
                continue
            dots = 0
            if text in _OPEN:
                if text == "[" and operand_before:
                    walk.chain(token)  # a subscript stands above what it is applied to
                walk.open(token, is_case=False)
                walk.level.of_position = tokens[index - 1].text.lower() == "position"
                operand_before = False
            elif text in _CLOSE:
                walk.close(token, is_case=False)
                operand_before = True
            elif text in _NOT_OPERATORS:
                operand_before = False
            elif operand_before or text not in _PREFIX_OPERATORS:
                walk.chain(token)
                operand_before = text == "*" and not operand_before
            else:
                walk.prefix(token)
        elif kind is WORD:
            if text == "case":
                walk.open(token, is_case=True)
                operand_before = False
            elif text == "end" and walk.level.is_case:
                walk.close(token, is_case=True)
                operand_before = True
            elif text == "not":
                if not operand_before:
                    walk.prefix(token)
                operand_before = False
            elif text in _BOUNDARIES:
                walk.boundary()
                operand_before = False
            elif text in _WORD_OPERATORS:
                walk.chain(token)
                operand_before = text in ("isnull", "notnull")
            elif text in _SET_OPERATIONS:
                walk.boundary()
                operand_before = False
                set_operations += 1
                if set_operations > limits.STATEMENT_CHAIN_MAX:
                    raise _too_long(token)
            else:
                operand_before = True
                walk.operand()
        else:
            operand_before = True
            walk.operand()
    counted = len(tokens) - lists.free
    if counted > limits.STATEMENT_TOKENS_MAX:
        raise SqlError(
            sqlstates.PROGRAM_LIMIT_EXCEEDED,
            "statement is too long",
            detail=f"It has {counted} words, literals and operators, without those of lists of literals; the limit is "
            f"{limits.STATEMENT_TOKENS_MAX}.",
            hint="Split it into several statements.",
            position=tokens[0].position,
        )


def _is_no_list(word: Token, before: str, level: _Level, operand_before: bool) -> bool:
    """Whether the word is none of those before a list where it stands: a type, a column or an argument's clause."""
    if word.text == "array":
        return before in _BEFORE_NAMES or (operand_before and before not in _BEFORE_OPERANDS)
    return word.text == "in" and level.of_position


def check_nesting(depth: int, token: Token) -> None:
    """For grammars whose brackets the tokens do not tell (the < and > of types)."""
    if depth > limits.STATEMENT_DEPTH_MAX:
        raise too_deep(token.position)


@contextmanager
def no_recursion_error(position: int | None = None) -> Iterator[None]:
    """The last line of defence: running out of stack is an error of the statement, not of the server."""
    try:
        yield
    except RecursionError:
        raise SqlError(
            sqlstates.STATEMENT_TOO_COMPLEX,
            "stack depth limit exceeded",
            hint="Simplify the statement: nest fewer brackets, CASEs and sub-queries.",
            position=position,
        ) from None


def too_deep(position: int | None) -> SqlError:
    """54001, at a token."""
    return SqlError(
        sqlstates.STATEMENT_TOO_COMPLEX,
        "stack depth limit exceeded",
        detail=f"Brackets, CASEs and prefix operators nest at most {limits.STATEMENT_DEPTH_MAX} deep.",
        hint="Simplify the statement: nest fewer brackets, CASEs and sub-queries.",
        position=position,
    )


def _too_long(token: Token) -> SqlError:
    return SqlError(
        sqlstates.STATEMENT_TOO_COMPLEX,
        "stack depth limit exceeded",
        detail=f"One chain of operators has at most {limits.STATEMENT_CHAIN_MAX} of them.",
        hint="Simplify the statement: put parts of a long chain into brackets, or use IN or a function.",
        position=token.position,
    )
