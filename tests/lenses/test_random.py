"""Programs that are changed at random: each runs or is refused with a SqlError, and then leaves nothing behind."""

from __future__ import annotations

import random
import time
from pathlib import Path

from mvserver.errors import SqlError
from mvserver.lenses.parser import parse_program
from mvserver.lenses.problems import Problems
from tests.lenses.programs import EXPRESSIONS, MERCHANTS, SUMS, TOPICS
from tests.routing.fakes import Bench

WORDS = [
    *(
        "SELECT",
        "STREAM",
        "TABLE",
        "FROM",
        "WHERE",
        "GROUP",
        "BY",
        "WINDOW",
        "TUMBLE",
        "5m",
        "JOIN",
        "ON",
        "WITHIN",
        "1h",
    ),
    *("(", ")", ",", ";", ".", "*", "=", "'x'", "1", "`q`", "-", "+", "/", "%", "AND", "OR", "NOT", "IN", "LIKE", "IS"),
    *(
        "CASE",
        "WHEN",
        "THEN",
        "END",
        "AS",
        "_key",
        "_value",
        "_meta",
        "WITH",
        "INSERT",
        "INTO",
        "LATERAL",
        "NULL",
        "SET",
    ),
    *("COUNT", "SUM", "CAST", "STORE", "KEY", "JSON"),
]
LETTERS = "abcSELECT STREAM*FROM(),;.'`-/*\n\t0159e+_$\"é’%<>=!|[]"
OWN = ("countries", "merchants", "input", "amounts")


def changed(chance: random.Random) -> str:
    words = chance.choice((EXPRESSIONS, SUMS, MERCHANTS)).split(" ")
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(words))
        what = chance.random()
        if what < 0.4:
            del words[at]
        elif what < 0.8:
            words.insert(at, chance.choice(WORDS))
        else:
            words[at] = words[at][: chance.randrange(len(words[at]) + 1)]
    return " ".join(words)


def test_changed_programs(tmp_path: Path) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    bench = Bench(tmp_path)
    bench.run("CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'h:1')", "USE STORE k")
    bench.run(*(text.format(store="k") for text in TOPICS))
    kafka = bench.stores.place("KAFKA", "h:1")
    topics = set(kafka.entities)
    for _ in range(300):
        before, program = bench.dump(), changed(chance)
        try:
            bench.run(f"CREATE PROCESSOR p AS $${program}$$")
        except SqlError as error:
            refused: str | None = error.sqlstate
        else:
            refused = None
            bench.run("DROP PROCESSOR p")
        assert refused != "XX000", program
        assert refused is None or (bench.dump(), set(kafka.entities)) == (before, topics), program
        for relation in bench.catalog.relations.all():
            if relation.name not in OWN:
                bench.run(f'DROP RELATION "{relation.name}"')
        for topic in set(kafka.entities) - topics:
            del kafka.entities[topic]
    bench.close()


def test_any_text_is_read_or_refused() -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(3_000):
        text = "".join(chance.choice(LETTERS) for _ in range(chance.randrange(80)))
        problems = Problems()
        program = parse_program(chance.choice(("", "INSERT INTO a SELECT STREAM ")) + text, problems)
        assert problems or program.inserts
