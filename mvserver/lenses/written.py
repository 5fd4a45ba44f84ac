"""Text of the first dialect under way, which remembers what of the program each part stands for."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

from mvserver import limits, sqlstates
from mvserver.lenses.problems import Place, problem


@dataclass
class Written:
    """``marks`` are offsets in ``text``, ascending, each with the place that what follows comes from."""

    text: str = ""
    marks: list[tuple[int, Place]] = field(default_factory=list)

    def add(self, *parts: str | Written | Place) -> Written:
        """Appends; a place says where the parts behind it come from. 54000 where the text is longer than one that the
        parser would look at: functions that have an argument several times grow with each that stands in another."""
        pieces, size = [self.text], len(self.text)
        for part in parts:
            if isinstance(part, Place):
                self.marks.append((size, part))
                continue
            if isinstance(part, Written):
                self.marks += [(size + at, place) for at, place in part.marks]
                part = part.text
            pieces.append(part)
            size += len(part)
            if size > limits.STATEMENT_BYTES_MAX and self.marks:
                raise problem(
                    self.marks[-1][1],
                    sqlstates.PROGRAM_LIMIT_EXCEEDED,
                    "what stands here is too long in the words of the first dialect",
                    f"The limit is {limits.STATEMENT_BYTES_MAX} characters. Name inner calls in a SELECT of WITH.",
                )
        self.text = "".join(pieces)
        return self

    def find(self, position: int, otherwise: Place) -> Place:
        """What a position in the text, counted from 1, comes from."""
        index = bisect.bisect_right([at for at, _ in self.marks], position - 1)
        return self.marks[index - 1][1] if index else otherwise


def written(*parts: str | Written | Place) -> Written:
    return Written().add(*parts)


def joined(separator: str, parts: list[Written]) -> Written:
    result = Written()
    for index, part in enumerate(parts):
        result.add(separator, part) if index else result.add(part)
    return result
