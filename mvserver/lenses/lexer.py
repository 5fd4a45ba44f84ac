"""A program's text to tokens. The parser puts dashes and dots of names together: it knows where names stand."""

from __future__ import annotations

import bisect
import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.lenses.problems import Place, Problem, Problems


class TokenKind(enum.Enum):
    WORD = "word"
    NAME = "name"  # in back-quotes; text is decoded
    STRING = "string"  # text is decoded
    NUMBER = "number"
    DURATION = "duration"  # 5m
    OPERATOR = "operator"
    SEMICOLON = "semicolon"
    END = "end"


@dataclass(frozen=True)
class Token:
    kind: TokenKind
    text: str
    place: Place
    end: int

    @property
    def word(self) -> str:
        """In lower case, of a word; empty for all else."""
        return self.text.lower() if self.kind is TokenKind.WORD else ""

    def touches(self, other: Token) -> bool:
        """Whether the other one follows without a space."""
        return self.end == other.place.offset


_TOKEN = re.compile(
    r"""\s*+(?:
      (?P<word>[^\W\d]\w*)
    | (?P<duration>[0-9]+[A-Za-z]\w*)
    | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?!\w))
    | (?P<string>'[^']*+(?:''[^']*+)*+'|"[^"]*+(?:""[^"]*+)*+")
    | (?P<name>`[^`]*+(?:``[^`]*+)*+`)
    | (?P<comment>--[^\n]*)
    | (?P<block>/\*.*?\*/)
    | (?P<semicolon>;)
    | (?P<operator><=|>=|<>|!=|==|\|\||/(?!\*)|[-+*%<>=(),.\[\]])
    )""",
    re.VERBOSE | re.DOTALL,
)
_QUOTES = {"'": TokenKind.STRING, '"': TokenKind.STRING, "`": TokenKind.NAME}
_SPACE = re.compile(r"\s*")
_EXPONENT = re.compile(r"[0-9]+[eE][0-9]+\Z")


class Lines:
    """From offsets to lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer(r"\n", text))]

    def place(self, offset: int) -> Place:
        line = bisect.bisect_right(self._starts, offset)
        return Place(offset, line, offset - self._starts[line - 1] + 1)


def tokenize(text: str, problems: Problems) -> Sequence[Token]:
    """All tokens of a program, an END last. What is no token is a problem, and left out."""
    lines, tokens, at = Lines(text), list[Token](), 0
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            space = _SPACE.match(text, at)
            at = space.end() if space else at
            if at >= len(text):
                break
            begin, at = at, _strange(text, at, lines, problems)
            if text[begin] in _QUOTES:  # what is wrong is told: it stands for what it would be
                tokens.append(Token(_QUOTES[text[begin]], text[begin + 1 :], lines.place(begin), at))
            continue
        kind = str(match.lastgroup)
        start, at = match.span(kind)
        if kind not in ("comment", "block"):
            tokens.append(_token(kind, text[start:at], lines.place(start), at))
        if len(tokens) > limits.STATEMENT_TOKENS_MAX:
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED,
                "the program is too long",
                detail=f"It has more than {limits.STATEMENT_TOKENS_MAX} words, literals and operators.",
                hint="Split it into several processors.",
            )
    tokens.append(Token(TokenKind.END, "", lines.place(len(text)), len(text)))
    return tokens


def _token(kind: str, raw: str, place: Place, end: int) -> Token:
    if kind == "string":
        return Token(TokenKind.STRING, raw[1:-1].replace(raw[0] * 2, raw[0]), place, end)
    if kind == "name":
        return Token(TokenKind.NAME, raw[1:-1].replace("``", "`"), place, end)
    if kind == "duration" and _EXPONENT.match(raw):
        return Token(TokenKind.NUMBER, raw, place, end)
    return Token(TokenKind(kind), raw, place, end)


def _strange(text: str, at: int, lines: Lines, problems: Problems) -> int:
    """Where reading goes on behind what is no token."""
    place, character = lines.place(at), text[at]
    unterminated = {"'": "text", '"': "text", "`": "name in back-quotes"}.get(character)
    if text.startswith("/*", at):
        unterminated = "comment"
    if unterminated is not None:
        problems.add(Problem(place, sqlstates.SYNTAX_ERROR, f"unterminated {unterminated}", "Close it."))
        return len(text)
    hint = "Texts are in straight quotes." if character in "’‘“”" else None
    problems.add(Problem(place, sqlstates.SYNTAX_ERROR, f'unexpected character "{character}"', hint))
    return at + 1
