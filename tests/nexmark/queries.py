"""The Nexmark queries as this server has them: a file each, with the view and the SELECT that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.nexmark.events import COLUMNS

_FOLDER = Path(__file__).parent
_TIMED = "'value.format' = 'json', 'timestamp' = 'date_time'"


@dataclass(frozen=True)
class Query:
    name: str
    create: str
    select: str


def queries() -> dict[str, Query]:
    """By name, in the benchmark's order."""
    found = [_query(path) for path in (_FOLDER / "queries").glob("q*.sql")]
    return {query.name: query for query in sorted(found, key=lambda query: int(query.name[1:]))}


def oracle(name: str) -> str:
    """The query as the benchmark states it, for PostgreSQL, over tables of all events."""
    return (_FOLDER / "postgresql" / f"{name}.sql").read_text()


def declarations(store: str, topics: Mapping[str, str]) -> list[str]:
    """Streams of the three topics, and changelogs of those whose events have a key that they alone have."""
    made = [_declare("STREAM", kind, COLUMNS[kind], store, topics[kind], _TIMED) for kind in COLUMNS]
    for kind in ("person", "auction"):
        columns = f"{COLUMNS[kind]}, PRIMARY KEY (id)"
        made.append(_declare("CHANGELOG", f"{kind}s_by_id", columns, store, topics[kind], _TIMED))
    made.append(_declare("STREAM", "bid_as_sent", COLUMNS["bid"], store, topics["bid"], "'value.format' = 'json'"))
    return made


def _declare(what: str, name: str, columns: str, store: str, topic: str, properties: str) -> str:
    return f"CREATE {what} {name} ({columns}) WITH ('store' = '{store}', 'topic' = '{topic}', {properties})"


def _query(path: Path) -> Query:
    text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("--"))
    create, select = (part.strip() for part in text.split(";")[:2])
    return Query(path.stem, create, select)
