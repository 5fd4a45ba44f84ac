"""Text to tokens, by PostgreSQL's lexical rules plus this dialect's typographic quotes.

It is the only reader of raw text: the guard, the splitter, the statement parsers and sqlglot's parser all work on its
tokens, so quotes and comments mean the same to all of them, nothing is scanned twice, and every token knows where in
the whole text it stands. It does not recurse and is linear in the text.
"""

from __future__ import annotations

import enum
import re

from mvserver import interrupts, limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.literals import decode_escapes, decode_unicode


class TokenKind(enum.IntEnum):
    WORD = 1  # text is folded to lower case
    IDENTIFIER = 2  # double-quoted; text is decoded
    STRING = 3  # text is the decoded value
    NUMBER = 4
    OPERATOR = 5  # punctuation too
    PARAMETER = 6  # $1; text is the digits
    HEX_STRING = 7
    BIT_STRING = 8
    END = 9  # the semicolon or the end of the text; closes every statement


class Token:
    """``start`` and ``end`` are 0-based offsets into the whole text, ``end`` exclusive."""

    __slots__ = ("end", "kind", "start", "text")

    def __init__(self, kind: TokenKind, text: str, start: int, end: int) -> None:
        self.kind = kind
        self.text = text
        self.start = start
        self.end = end

    @property
    def position(self) -> int:
        return self.start + 1

    def __repr__(self) -> str:
        return f"Token({self.kind.name}, {self.text!r}, {self.start}, {self.end})"


WORD = TokenKind.WORD
IDENTIFIER = TokenKind.IDENTIFIER
STRING = TokenKind.STRING
NUMBER = TokenKind.NUMBER
OPERATOR = TokenKind.OPERATOR
PARAMETER = TokenKind.PARAMETER
HEX_STRING = TokenKind.HEX_STRING
BIT_STRING = TokenKind.BIT_STRING
END = TokenKind.END

# Longest first; '>' closes STRUCT<...> and friends, so readers of types count the characters of '>>' themselves.
_OPERATORS = [
    "<<->>", "!~~*", "->>", "#>>", "!~~", "~~*", "!~*", "||/", "<->", "<=>",
    "::", "||", "<=", ">=", "<>", "!=", "->", "=>", ":=", "<<", ">>", "~~", "~*", "!~", "&&", "@>", "<@", "#>", "#-",
    "?|", "?&", "@@", "@?", "|/", "^@", "..",
    "(", ")", "[", "]", "{", "}", ",", ".", ":", "+", "-", "*", "/", "%", "^", "=", "<", ">", "&", "|", "#", "~", "!",
    "@", "?", "`", "\\",
]  # fmt: skip

_MASTER = re.compile(
    r"""\s*+(?:
      (?P<word>[^\W\d][\w$]*)
    | (?P<number>(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<string>'[^']*+(?:''[^']*+)*+')
    | (?P<identifier>"[^"]*+(?:""[^"]*+)*+")
    | (?P<comment>--[^\n\r]*)
    | (?P<block>/\*)
    | (?P<semicolon>;)
    | (?P<typographic>[’‘][^'’]*+(?:(?:''|’’)[^'’]*+)*+['’])
    | (?P<parameter>\$[0-9]+)
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    | (?P<operator>"""
    + "|".join(re.escape(operator) for operator in _OPERATORS)
    + r""")
    )""",
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")
_ESCAPED_BODY = re.compile(r"'((?:[^'\\]++|\\.|'')*+)'", re.S)
_BLOCK_EDGE = re.compile(r"/\*|\*/")
_QUERY_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![\w$])")
_WORD_AT = re.compile(r"[^\W\d][\w$]*")
_UPPER_ASCII = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_QUOTED_PREFIXES = frozenset({"e", "x", "b", "n"})


def fold(name: str) -> str:
    """An unquoted identifier as it is stored; only ASCII letters fold, as in PostgreSQL."""
    return name.lower() if name.isascii() else name.translate(_UPPER_ASCII)


def tokenize(text: str) -> list[Token]:
    """All tokens of the text; each statement (also the last, also an empty one) is closed by an END token."""
    if "\0" in text:
        raise SqlError(sqlstates.CHARACTER_NOT_IN_REPERTOIRE, 'invalid byte sequence for encoding "UTF8": 0x00')
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise SqlError(
                sqlstates.CHARACTER_NOT_IN_REPERTOIRE,
                'invalid character for encoding "UTF8": a lone surrogate',
                position=error.start + 1,
            ) from None
    return _Lexer(text).run()


_FREED_TOGETHER = 10_000  # tokens


class _Lexer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[Token] = []

    def run(self) -> list[Token]:
        text, tokens = self._text, self._tokens
        match_at, append = _MASTER.match, self._tokens.append
        at, size, steps = 0, len(text), 0
        while at < size:
            steps += 1
            if not steps % interrupts.EVERY:
                interrupts.check()
            if len(tokens) > limits.TEXT_TOKENS_MAX:
                while tokens:  # all of them at once would hold up all threads
                    del tokens[-_FREED_TOGETHER:]
                raise _too_many(at)
            match = match_at(text, at)
            if match is None:
                at = self._unusual(at)
                continue
            kind = match.lastgroup or ""
            start, end = match.span(kind)
            at = end
            if kind == "word":
                at = self._word(start, end)
            elif kind == "operator":
                append(Token(OPERATOR, text[start:end], start, end))
            elif kind == "number":
                if tokens and tokens[-1].kind is WORD and tokens[-1].text == "query":
                    identity = _QUERY_ID.match(text, start)
                    if identity is not None:
                        at = self._query_id(start, identity.end())
                        continue
                self._check_junk(start, end, "numeric literal")
                append(Token(NUMBER, text[start:end], start, end))
            elif kind == "string":
                self._string(text[start + 1 : end - 1].replace("''", "'"), start, end)
            elif kind == "identifier":
                self._identifier(text[start + 1 : end - 1].replace('""', '"'), start, end)
            elif kind == "semicolon":
                append(Token(END, ";", start, end))
            elif kind == "block":
                at = self._skip_block(start)
            elif kind == "typographic":
                self._string(text[start + 1 : end - 1].replace("''", "'").replace("’’", "’"), start, end)
            elif kind == "parameter":
                self._check_junk(start, end, "parameter")
                append(Token(PARAMETER, text[start + 1 : end], start, end))
            elif kind == "dollar":
                at = self._dollar(start, end)
        append(Token(END, "", size, size))
        return tokens

    def _word(self, start: int, end: int) -> int:
        text = self._text
        word = text[start:end]
        folded = word.lower() if word.isascii() else fold(word)
        if end < len(text):
            following = text[end]
            if following == "'" and folded in _QUOTED_PREFIXES:
                return self._prefixed_string(folded, start, end)
            if following == "&" and folded == "u" and text[end + 1 : end + 2] in ("'", '"'):
                return self._unicode(start, end + 1)
            if following == "-" and self._tokens and self._tokens[-1].kind is WORD and self._tokens[-1].text == "query":
                identity = _QUERY_ID.match(text, start)
                if identity is not None:
                    return self._query_id(start, identity.end())
        if end - start > 15 and len(word.encode()) > limits.IDENTIFIER_BYTES_MAX:
            raise _too_long(word, start)
        self._tokens.append(Token(WORD, folded, start, end))
        return end

    def _string(self, value: str, start: int, end: int) -> None:
        """Adds a literal, or continues the one before when only a line break stands between (as in the standard)."""
        tokens = self._tokens
        if tokens and tokens[-1].kind is STRING:
            previous = tokens[-1]
            gap = self._text[previous.end : start]
            if "\n" in gap or "\r" in gap:
                tokens[-1] = Token(STRING, previous.text + value, previous.start, end)
                return
        tokens.append(Token(STRING, value, start, end))

    def _identifier(self, name: str, start: int, end: int) -> None:
        if not name:
            raise SqlError(
                sqlstates.SYNTAX_ERROR, 'zero-length delimited identifier at or near """"', position=start + 1
            )
        if len(name) > 15 and len(name.encode()) > limits.IDENTIFIER_BYTES_MAX:
            raise _too_long(name, start)
        self._tokens.append(Token(IDENTIFIER, name, start, end))

    def _prefixed_string(self, prefix: str, start: int, quote: int) -> int:
        text = self._text
        if prefix == "e":
            match = _ESCAPED_BODY.match(text, quote)
            if match is None:
                raise self._unterminated("quoted string", start)
            self._string(decode_escapes(match.group(1), start + 1), start, match.end())
            return match.end()
        end = self._closing(quote, "'", start, "quoted string")
        body = text[quote + 1 : end - 1]
        if prefix == "n":
            self._string(body.replace("''", "'"), start, end)
            return end
        digits = "0123456789abcdefABCDEF" if prefix == "x" else "01"
        if any(character not in digits for character in body):
            wrong = next(character for character in body if character not in digits)
            family = "hexadecimal" if prefix == "x" else "binary"
            raise SqlError("22P02", f'"{wrong}" is not a valid {family} digit', position=start + 1)
        self._tokens.append(Token(HEX_STRING if prefix == "x" else BIT_STRING, body, start, end))
        return end

    def _unicode(self, start: int, quote: int) -> int:
        text = self._text
        character = text[quote]
        what = "quoted string" if character == "'" else "quoted identifier"
        end = self._closing(quote, character, start, what)
        value = decode_unicode(text[quote + 1 : end - 1].replace(character * 2, character), start + 1)
        if character == "'":
            self._string(value, start, end)
        else:
            self._identifier(value, start, end)
        return end

    def _closing(self, quote: int, character: str, start: int, what: str) -> int:
        at = quote + 1
        while True:
            at = self._text.find(character, at)
            if at < 0:
                raise self._unterminated(what, start)
            if self._text[at + 1 : at + 2] != character:
                return at + 1
            at += 2

    def _dollar(self, start: int, end: int) -> int:
        tag = self._text[start:end]
        close = self._text.find(tag, end)
        if close < 0:
            raise self._unterminated("dollar-quoted string", start)
        self._tokens.append(Token(STRING, self._text[end:close], start, close + len(tag)))
        return close + len(tag)

    def _skip_block(self, start: int) -> int:
        depth, at = 1, start + 2
        while depth:
            match = _BLOCK_EDGE.search(self._text, at)
            if match is None:
                raise self._unterminated("/* comment", start)
            depth += 1 if match.group() == "/*" else -1
            at = match.end()
        return at

    def _query_id(self, start: int, end: int) -> int:
        """A query's id without quotes (``TERMINATE QUERY 0f3a...``): a name, though it begins like a number."""
        self._tokens.append(Token(IDENTIFIER, self._text[start:end].lower(), start, end))
        return end

    def _check_junk(self, start: int, end: int, what: str) -> None:
        match = _WORD_AT.match(self._text, end)
        if match is not None:
            raise SqlError(
                sqlstates.SYNTAX_ERROR,
                f'trailing junk after {what} at or near "{self._text[start : match.end()]}"',
                position=start + 1,
            )

    def _unusual(self, at: int) -> int:
        """Where the master pattern finds no token: the end of the text, or an error to be named."""
        space = _SPACE.match(self._text, at)
        at = space.end() if space else at
        if at >= len(self._text):
            return at
        character = self._text[at]
        if character in "'’‘":
            raise self._unterminated("quoted string", at)
        if character == '"':
            raise self._unterminated("quoted identifier", at)
        hint = "Quote names with \" and texts with '." if character in "“”„«»´" else None
        raise SqlError(sqlstates.SYNTAX_ERROR, f'syntax error at or near "{character}"', hint=hint, position=at + 1)

    def _unterminated(self, what: str, start: int) -> SqlError:
        rest = self._text[start : start + limits.ERROR_EXCERPT_CHARACTERS_MAX]
        return SqlError(sqlstates.SYNTAX_ERROR, f'unterminated {what} at or near "{rest}"', position=start + 1)


def _too_many(at: int) -> SqlError:
    return SqlError(
        sqlstates.PROGRAM_LIMIT_EXCEEDED,
        "statement is too long",
        detail=f"A text has at most {limits.TEXT_TOKENS_MAX} words, literals and operators.",
        hint="Split it into several statements, or pass long lists as an array parameter.",
        position=at + 1,
    )


def _too_long(name: str, start: int) -> SqlError:
    return SqlError(
        sqlstates.INVALID_NAME,
        f'identifier "{name[: limits.IDENTIFIER_BYTES_MAX]}..." is too long',
        detail=f"An identifier has at most {limits.IDENTIFIER_BYTES_MAX} bytes; this one has {len(name.encode())}.",
        position=start + 1,
    )
