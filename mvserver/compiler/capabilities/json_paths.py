"""JSON paths of the function json_path_first and its relative, as a list of steps that the server's Java walks.

A path is ``$`` and steps: ``.name``, ``['name']``, ``[0]``, ``[-1]``, ``.*``, ``[*]``, ``..`` before a step, ``[1:3]``,
several of them in one pair of brackets, and ``[?(condition)]`` over what lies in the node, ``@``. The meaning is RFC
9535's. A program is JSON: ``["key", name]``, ``["index", n]``, ``["all"]``, ``["slice", start, end, step]``,
``["any of", step ...]``, ``["below"]`` and ``["where", condition]``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError

_NAME = re.compile(r"[A-Za-z_\u0080-\U0010FFFF][A-Za-z0-9_\-\u0080-\U0010FFFF]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"-?[0-9]{1,9}")
_SLICE = re.compile(r"(-?[0-9]{1,9})?\s*:\s*(-?[0-9]{1,9})?\s*(?::\s*(-?[0-9]{1,9})?)?")
_COMPARISON = re.compile(r"==|!=|<=|>=|<|>")
_WORDS = {"true": True, "false": False, "null": None}
_DEPTH_MAX = 20
_SPACE = " \t\r\n"


def steps(path: str) -> str:
    """The program of a path; 22023 where it is none."""
    reader = _Reader(path.strip())
    if not reader.accept("$"):
        raise reader.wrong('a path begins with "$"')
    found = reader.steps()
    if not reader.at_end:
        raise reader.wrong("a step is expected")
    return json.dumps(found, ensure_ascii=True, separators=(",", ":"))


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._text)

    def wrong(self, message: str) -> SqlError:
        return SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'JSON path "{self._text}" is not valid at "{self._text[self._at : self._at + 20]}": {message}',
            hint="Examples are $.a, $['a b'], $[0], $.items[*].name, $..id and $.points[?(@.x > 3)].y.",
        )

    def accept(self, sign: str) -> bool:
        if self._text.startswith(sign, self._at):
            self._at += len(sign)
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self.accept(sign):
            raise self.wrong(f'"{sign}" is expected')

    def _space(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    # --- steps ------------------------------------------------------------------------------------------------------
    def steps(self) -> list[Any]:
        found: list[Any] = []
        while True:
            if self.accept(".."):
                found.append(["below"])
                found.append(self._bracket() if self.accept("[") else self._dotted())
            elif self.accept("."):
                found.append(self._dotted())
            elif self.accept("["):
                found.append(self._bracket())
            else:
                return found

    def _dotted(self) -> list[Any]:
        if self.accept("*"):
            return ["all"]
        name = self._match(_NAME)
        if name is None:
            raise self.wrong("a name is expected")
        return ["key", name[0]]

    def _bracket(self) -> list[Any]:
        found = [self._selector()]
        while self.accept(","):
            found.append(self._selector())
        self._expect("]")
        return found[0] if len(found) == 1 else ["any of", *found]

    def _selector(self) -> list[Any]:
        self._space()
        if self.accept("*"):
            found: list[Any] = ["all"]
        elif self.accept("?"):
            self._space()
            found = ["where", self._condition()]
        elif self._at < len(self._text) and self._text[self._at] in "'\"":
            found = ["key", self._quoted()]
        elif (parts := self._match(_SLICE)) is not None:
            found = ["slice", *(None if part is None else int(part) for part in parts.groups())]
        elif (index := self._match(_WHOLE)) is not None:
            found = ["index", int(index[0])]
        else:
            raise self.wrong("a name in quotes, a number, * or ?(...) is expected")
        self._space()
        return found

    def _quoted(self) -> str:
        quote = self._text[self._at]
        made, at = [], self._at + 1
        while at < len(self._text) and self._text[at] != quote:
            at += self._text[at] == "\\"
            made.append(self._text[at : at + 1])
            at += 1
        if at >= len(self._text):
            raise self.wrong("the text has no end")
        self._at = at + 1
        return "".join(made)

    # --- conditions -------------------------------------------------------------------------------------------------
    def _condition(self) -> list[Any]:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise self.wrong("conditions are nested too deeply")
        found = self._chain("||", "or", lambda: self._chain("&&", "and", self._test))
        self._depth -= 1
        return found

    def _chain(self, sign: str, word: str, operand: Callable[[], list[Any]]) -> list[Any]:
        operands = [operand()]
        while self.accept(sign):
            operands.append(operand())
        return operands[0] if len(operands) == 1 else [word, *operands]

    def _test(self) -> list[Any]:
        self._space()
        if not self._text.startswith("!=", self._at) and self.accept("!"):
            return ["not", self._test()]
        if self.accept("("):
            found = self._condition()
            self._expect(")")
            self._space()
            return found
        left = self._operand()
        sign = self._match(_COMPARISON)
        if sign is None:
            if left[0] != "at":
                raise self.wrong("a comparison is expected")
            return ["is there", left[1]]
        return ["compare", sign[0], left, self._operand()]

    def _operand(self) -> list[Any]:
        self._space()
        if self.accept("@"):
            found: list[Any] = ["at", self.steps()]
        elif self._at < len(self._text) and self._text[self._at] in "'\"":
            found = ["value", self._quoted()]
        elif (number := self._match(_NUMBER)) is not None:
            text = number[0]
            found = ["value", int(text) if text.lstrip("-").isdigit() else float(text)]
        elif (word := self._match(_NAME)) is not None and word[0] in _WORDS:
            found = ["value", _WORDS[word[0]]]
        else:
            raise self.wrong("@, a text, a number, true, false or null is expected")
        self._space()
        return found
