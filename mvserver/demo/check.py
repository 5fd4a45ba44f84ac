"""A view beside what was counted without it: equal row by row, or told apart by examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Row = tuple[Any, ...]
_EXAMPLES_MAX = 5


@dataclass(frozen=True)
class Comparison:
    """What a view has and should have. ``doubled`` counts rows whose key had been seen already."""

    name: str
    expected: int
    found: int
    missing: int
    unexpected: int
    different: int
    doubled: int
    examples: tuple[str, ...]

    @property
    def equal(self) -> bool:
        return not (self.missing or self.unexpected or self.different or self.doubled)

    def __str__(self) -> str:
        if self.equal:
            return f"{self.name}: {self.found:,} rows, all equal"
        counts = f"{self.missing} missing, {self.unexpected} unexpected, {self.different} different"
        lines = [f"{self.name}: {self.found:,} rows for {self.expected:,}: {counts}, {self.doubled} doubled"]
        return "\n".join([*lines, *(f"    {example}" for example in self.examples)])


def compare(name: str, expected: Mapping[Row, Row], found: Iterable[Row], keys: int) -> Comparison:
    """``expected`` maps keys to values; of each found row the first ``keys`` columns are its key."""
    seen: set[Row] = set()
    rows = unexpected = different = doubled = 0
    examples: list[str] = []
    for row in found:
        rows += 1
        key, values = tuple(row[:keys]), tuple(row[keys:])
        if key in seen:
            doubled += 1
            problem = f"{key}: found twice"
        elif key not in expected:
            unexpected += 1
            problem = f"{key}: found {values}, should not be there"
        elif values != expected[key]:
            different += 1
            problem = f"{key}: found {values}, should be {expected[key]}"
        else:
            problem = ""
        seen.add(key)
        if problem and len(examples) < _EXAMPLES_MAX:
            examples.append(problem)
    absent = [key for key in expected if key not in seen]
    examples += [f"{key}: not found, should be {expected[key]}" for key in absent[: _EXAMPLES_MAX - len(examples)]]
    return Comparison(name, len(expected), rows, len(absent), unexpected, different, doubled, tuple(examples))


def verdict(comparisons: Iterable[Comparison]) -> bool:
    """Prints one line a view and PASS or FAIL; whether all are equal."""
    everything = list(comparisons)
    for comparison in everything:
        print(f"  {comparison}")
    equal = all(comparison.equal for comparison in everything)
    rows = sum(comparison.found for comparison in everything)
    wrong = sum(c.missing + c.unexpected + c.different + c.doubled for c in everything)
    print(f"{'PASS' if equal else 'FAIL'}: {rows:,} rows of {len(everything)} views compared, {wrong} wrong")
    return equal
