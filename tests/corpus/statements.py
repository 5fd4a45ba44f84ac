"""The statements of the corpus: those written by hand, those of a generator, and those that are known to differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.corpus.compare import Client

_FOLDER = Path(__file__).parent


def lines(file: Path) -> tuple[str, ...]:
    """Those that are neither empty nor a comment."""
    found = file.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in found if line and not line.startswith("--"))


def by_class(lines: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """``# title`` and below it the statements of that class."""
    found: dict[str, tuple[str, ...]] = {}
    title = ""
    for line in lines:
        if line.startswith("# "):
            title = line[2:]
            found.setdefault(title, ())
        else:
            found[title] = (*found[title], line)
    return found


BY_HAND = lines(_FOLDER / "by_hand.sql")
CLASSES = by_class(lines(_FOLDER / "known.txt"))
KNOWN = frozenset(text for texts in CLASSES.values() for text in texts)


def different(statements: Iterable[str], ours: Client, theirs: Client, way: str) -> dict[str, tuple[object, ...]]:
    """By statement in what it differs, and both answers."""
    found: dict[str, tuple[object, ...]] = {}
    for text in statements:
        own, other = ours.ask(text, way), theirs.ask(text, way)
        if own is None or other is None:
            continue
        what = own.differs(other, ordered="order by" in text.lower())
        if what:
            found[text] = (what, own, other)
    return found
