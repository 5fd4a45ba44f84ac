"""The text of a function: checked when it is made, and compiled where it runs.

A body is what stands inside ``def f(arguments):``, as in PL/Python; the arguments are names. It is put into the
function as a tree, not as text, so that lines, and texts of several lines, stay as they were written.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

MODULES = frozenset(
    {
        "base64", "binascii", "bisect", "calendar", "cmath", "collections", "collections.abc", "colorsys", "copy",
        "dataclasses", "datetime", "decimal", "difflib", "enum", "fnmatch", "fractions", "functools", "hashlib",
        "heapq", "hmac", "html", "ipaddress", "itertools", "json", "math", "numbers", "operator", "re", "statistics",
        "string", "struct", "textwrap", "typing", "unicodedata", "urllib.parse", "uuid", "zlib",
    }
)  # fmt: skip
"""What a body may import: modules that compute, and ask neither the clock, the system nor the network."""

ENTRY = "mv_function"


class BodyError(Exception):
    """What is wrong with a body; ``line`` and ``column`` count from 1, and are 0 where the whole of it is meant."""

    def __init__(self, message: str, line: int = 0, column: int = 0, *, supported: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.is_syntax = supported


def compiled(name: str, parameters: Sequence[str], body: str) -> Callable[..., Any]:
    """The function itself."""
    code = compile(_checked_tree(parameters, body), file_name(name), "exec", dont_inherit=True)
    space: dict[str, Any] = {"__name__": name, "__builtins__": __builtins__}
    exec(code, space)  # noqa: S102 - what the process is for
    function: Callable[..., Any] = space[ENTRY]
    return function


def check(name: str, parameters: Sequence[str], body: str) -> None:
    """Raises BodyError. Nothing of the body runs."""
    tree = _checked_tree(parameters, body)
    try:
        compile(tree, file_name(name), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _located(error, body) from error
    except (ValueError, RecursionError) as error:
        raise BodyError(str(error)) from error


def imported(body: str) -> Iterator[str]:
    """The modules that a body names, wherever in it."""
    for node in ast.walk(ast.parse(textwrap.dedent(body))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def file_name(name: str) -> str:
    return f"<function {name}>"


def _checked_tree(parameters: Sequence[str], body: str) -> ast.Module:
    try:
        found = ast.parse(textwrap.dedent(body))
    except SyntaxError as error:
        raise _located(error, body) from error
    except (ValueError, RecursionError, MemoryError) as error:  # NUL, or brackets that are nested too deep
        raise BodyError(str(error) or "the body is nested too deep") from error
    if not found.body:
        raise BodyError("the body is empty")
    _check_imports(found, body)
    _check_yields(found, body)
    arguments = ast.arguments([], [ast.arg(each) for each in parameters], None, [], [], None, [])
    function = ast.FunctionDef(ENTRY, arguments, found.body, [], None, lineno=1, col_offset=0)
    return ast.fix_missing_locations(ast.Module([function], []))


def _check_imports(tree: ast.Module, body: str) -> None:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module if node.module is not None and not node.level else "."]
        for name in names:
            if name not in MODULES:
                assert isinstance(node, ast.stmt)  # noqa: S101 - both are
                raise BodyError(
                    f'a function cannot import "{name}"',
                    node.lineno,
                    node.col_offset + 1 + _indentation(body),
                    supported=False,
                )


def _check_yields(tree: ast.Module, body: str) -> None:
    """Of the body itself, not of functions within it: its call would answer with a generator."""
    front: list[ast.AST] = list(tree.body)
    while front:
        node = front.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)):
            line, column = node.lineno, node.col_offset + 1 + _indentation(body)
            raise BodyError("a function answers with return, not with yield or await", line, column, supported=False)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp)):
            front.extend(ast.iter_child_nodes(node))


def _located(error: SyntaxError, body: str) -> BodyError:
    line, column = error.lineno or 0, (error.offset or 0) + (_indentation(body) if error.offset else 0)
    return BodyError(error.msg, line, column)


def _indentation(body: str) -> int:
    """How much of each line the common indentation is."""
    dedented = textwrap.dedent(body).splitlines()
    for before, after in zip(body.splitlines(), dedented, strict=False):
        if after.strip():
            return len(before) - len(after)
    return 0
