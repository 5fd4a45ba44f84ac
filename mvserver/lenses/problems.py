"""What is wrong with a program: collected with line and column, and told together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.calls import FUNCTIONS_HINT

_LIST = "Functions and what they take are listed in docs/sql/lenses.md."
_UNNEST = re.compile(r"function unnest\((.*)\) does not exist")


@dataclass(frozen=True, order=True)
class Place:
    """``offset`` counts from 0; ``line`` and ``column`` from 1."""

    offset: int
    line: int
    column: int


@dataclass(frozen=True)
class Problem:
    place: Place
    sqlstate: str
    message: str
    hint: str | None = None
    detail: str | None = None

    def __str__(self) -> str:
        detail = "" if self.detail is None else f" ({self.detail.rstrip('.')})"
        hint = "" if self.hint is None else f" Hint: {self.hint}"
        return f"line {self.place.line}, column {self.place.column}: {self.message}{detail} [{self.sqlstate}]{hint}"


class ProblemError(Exception):
    """Ends the reading of one part of a program."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Problems:
    """Those of one program, in the order of its text when they are told."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def __iter__(self) -> Iterator[Problem]:
        return iter(sorted(self._found, key=lambda problem: problem.place))

    def add(self, problem: Problem) -> None:
        if problem not in self._found:
            self._found.append(problem)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """A part of the program: what is wrong with it does not keep the others from being checked."""
        try:
            yield
        except ProblemError as error:
            self.add(error.problem)

    @contextmanager
    def told_at(self, place: Place, find: Callable[[int], Place] | None = None) -> Iterator[None]:
        """An error of the server's own checks as one of the program, at ``place`` or where its position says."""
        try:
            yield
        except SqlError as error:
            if error.severity == "FATAL" or error.sqlstate[:2] in ("57", "58", "08", "XX"):
                raise
            at = place if find is None or error.position is None else find(error.position)
            self.add(_in_dialect(Problem(at, error.sqlstate, error.message, error.hint, error.detail)))

    def raise_any(self, start: int = 0) -> None:
        """One ERROR with the list. ``start`` is where the program begins in what the client sent."""
        if not self._found:
            return
        found = list(self)
        shown = [str(each) for each in found[: limits.LENSES_PROBLEMS_SHOWN_MAX]]
        if len(found) > len(shown):
            shown.append(f"... and {len(found) - len(shown)} more")
        first = found[0]
        if len(found) == 1:
            message = f"line {first.place.line}, column {first.place.column}: {first.message}"
            raise SqlError(
                first.sqlstate, message, detail=first.detail, hint=first.hint, position=start + first.place.offset + 1
            )
        raise SqlError(
            first.sqlstate,
            f"the program has {len(found)} errors",
            detail="\n".join(shown),
            position=start + first.place.offset + 1,
        )


def _in_dialect(found: Problem) -> Problem:
    """What the first dialect says in words of its own."""
    message, hint = found.message, found.hint
    if (given := _UNNEST.fullmatch(message)) is not None:
        message, hint = f"LATERAL is over an array, and not over a value of type {given[1]}", None
    if hint is not None:
        hint = hint.replace(FUNCTIONS_HINT, _LIST)
    return replace(found, message=message, hint=hint)


def syntax(place: Place, message: str, hint: str | None = None) -> ProblemError:
    return ProblemError(Problem(place, sqlstates.SYNTAX_ERROR, message, hint))


def unsupported(place: Place, message: str, hint: str) -> ProblemError:
    return ProblemError(Problem(place, sqlstates.FEATURE_NOT_SUPPORTED, message, hint))


def problem(place: Place, sqlstate: str, message: str, hint: str | None = None) -> ProblemError:
    return ProblemError(Problem(place, sqlstate, message, hint))


def moved(found: Problem, place: Place) -> Problem:
    return replace(found, place=place)
