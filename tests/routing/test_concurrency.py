"""Sessions that define the same things at the same time, and a server that is killed in the middle of a statement."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from catalog.model import Query, Relation
from mvserver.errors import SqlError
from mvserver.session.context import SessionContext
from mvserver.sql import parse_one
from tests.routing.fakes import SETUP, Bench, MemoryClient

TOPIC = "'topic.partitions' = 1, 'topic.replicas' = 1"
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT url, count(*) AS n FROM clicks GROUP BY url"


def at_the_same_time(bench: Bench, texts: list[str]) -> list[str]:
    """The sorted outcomes: tags, or the errors' SQLSTATEs."""
    outcomes: list[str] = []
    start = threading.Barrier(len(texts))

    def session(text: str) -> None:
        statement = parse_one(text)
        start.wait(10)
        try:
            outcomes.append(bench.router.execute(statement, SessionContext("postgres", "postgres", store="k")).tag)
        except SqlError as error:
            outcomes.append(error.sqlstate)

    threads = [threading.Thread(target=session, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return sorted(outcomes)


def test_one_of_many_wins_and_keeps_its_entity(filled: Bench) -> None:
    text = f"CREATE STREAM s (x INT) WITH ('value.format' = json, {TOPIC})"
    assert at_the_same_time(filled, [text] * 6) == ["42P07"] * 5 + ["CREATE STREAM"]
    assert [r.name for r in filled.catalog.relations.all()].count("s") == 1
    assert "s" in filled.kafka().entities
    text = "CREATE STREAM t AS SELECT url FROM clicks"
    assert at_the_same_time(filled, [text] * 6) == ["42P07"] * 5 + ["CREATE STREAM"]
    assert "t" in filled.kafka().entities
    assert len(filled.catalog.queries.all()) == 1


def test_what_a_loser_takes_back_is_not_taken_up(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loser makes the topic. Another statement would declare a stream over it before it is gone again."""
    other = "CREATE STREAM other (x INT) WITH ('store' = k, 'topic' = 's', 'value.format' = json)"
    refused: list[str] = []
    meanwhile = threading.Thread(target=lambda: refused.append(filled.error(other).sqlstate))
    add = filled.catalog.relations.add

    def fail_once(relation: Relation) -> Relation:
        if relation.name == "s":
            meanwhile.start()
            raise SqlError("53100", "the catalog cannot be written")
        return add(relation)

    monkeypatch.setattr(filled.catalog.relations, "add", fail_once)
    filled.error(f"CREATE STREAM s (x INT) WITH ('store' = k, 'value.format' = json, {TOPIC})")
    meanwhile.join(30)
    assert refused == ["22023"]  # the topic is not there, and no partitions are given
    assert "s" not in filled.kafka().entities
    assert not {"s", "other"} & {relation.name for relation in filled.catalog.relations.all()}


WAITING = {
    "CREATE STREAM": ("create_entity", f"CREATE STREAM s (x INT) WITH ('store' = k, 'value.format' = json, {TOPIC})"),
    "CREATE STREAM AS": ("create_entity", "CREATE STREAM s AS SELECT url FROM clicks"),
    "CREATE CHANGELOG AS": (
        "create_entity",
        "CREATE CHANGELOG s AS SELECT url, count(*) AS n FROM clicks GROUP BY url",
    ),
    "DROP ENTITY": ("drop_entity", "DROP ENTITY idle IN STORE k"),
}


@pytest.mark.parametrize("name", WAITING)
def test_a_store_that_does_not_answer_holds_up_no_other_statement(
    filled: Bench, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    filled.run(f"CREATE ENTITY idle IN STORE k WITH ({TOPIC})")
    asked, answers = threading.Event(), threading.Event()
    late, text = WAITING[name]

    def wait(client: MemoryClient, method: str) -> None:
        if method == late:
            asked.set()
            assert answers.wait(60)

    monkeypatch.setattr(MemoryClient, "_may_fail", wait)
    tags: list[str] = []
    waiting = threading.Thread(target=lambda: tags.extend(at_the_same_time(filled, [text])))
    waiting.start()
    assert asked.wait(30)
    done: list[str] = []
    other = threading.Thread(target=lambda: done.extend(at_the_same_time(filled, ["CREATE SCHEMA elsewhere"])))
    other.start()
    other.join(20)
    answered = list(done)
    answers.set()
    waiting.join(30)
    other.join(30)
    assert answered == ["CREATE SCHEMA"]
    assert tags == [name.removesuffix(" AS")]


def test_a_transaction_gives_up_its_wait_for_an_entity(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has the turn may wait for the catalog, which the transaction holds."""
    monkeypatch.setattr("mvserver.routing.entity_turns._IN_TRANSACTION_S", 0.2)
    owner = object()
    filled.services.entity_turns.take(filled.catalog.stores.get("k").id, "s", owner, in_transaction=False)
    text = f"CREATE STREAM s (x INT) WITH ('store' = k, 'value.format' = json, {TOPIC})"
    with pytest.raises(SqlError) as refused:
        filled.router.execute_all([parse_one(text)], filled.context)
    assert (refused.value.sqlstate, refused.value.hint) == ("40001", "Run the transaction again.")
    assert "s" not in filled.kafka().entities
    filled.services.entity_turns.end(owner)
    filled.router.execute_all([parse_one(text)], filled.context)
    assert "s" in filled.kafka().entities


def test_random_definitions_of_several_sessions_leave_a_whole_catalog(filled: Bench) -> None:
    seed = int(os.environ.get("MVSERVER_TEST_SEED", time.time_ns() % 1_000_000))
    print(f"MVSERVER_TEST_SEED={seed}")
    chance = random.Random(seed)
    texts = [
        chance.choice((
            f"CREATE STREAM s{n} (x INT) WITH ('value.format' = json, {TOPIC})", f"DROP STREAM s{n}",
            f"DROP STREAM s{n} CASCADE", f"CREATE MATERIALIZED VIEW v{n} AS SELECT x FROM s{n}",
            f"DROP MATERIALIZED VIEW v{n}", f"CREATE STREAM c{n} AS SELECT x FROM s{n}", f"DROP STREAM c{n} CASCADE",
            f"DROP ENTITY s{n}",
        ))
        for n in (chance.randrange(2) for _ in range(60))
    ]  # fmt: skip
    for begin in range(0, len(texts), 6):
        allowed = {"42P07", "42P01", "2BP01", "40001", "42704", "42809"}
        for outcome in at_the_same_time(filled, texts[begin : begin + 6]):
            assert outcome in allowed or " " in outcome, outcome
        relations = {r.id: r for r in filled.catalog.relations.all()}
        for query in filled.catalog.queries.all():
            assert {query.sink_id, *query.source_ids} <= set(relations)
        views = [r for r in relations.values() if r.kind == "materialized view"]
        assert all(len(filled.catalog.queries.of_sink(view.id)) == 1 for view in views)
        used = {r.entity for r in relations.values() if r.store_id == filled.catalog.stores.get("k").id}
        assert used <= set(filled.kafka().entities)


# --- killed at a named step of a statement --------------------------------------------------------------------------
Step = tuple[str, Callable[[Bench], tuple[object, str]]]

STEPS: list[Step] = [
    ("the engine is asked", lambda b: (b.engine, "wait_until_ready")),
    ("the plan is checked", lambda b: (b.engine, "check_plan")),
    ("the position is resolved", lambda b: (b.engine, "resolve_position")),
    ("the entity is made", lambda b: (MemoryClient, "create_entity")),
    ("the relation is added", lambda b: (b.catalog.relations, "add")),
    ("the query is added", lambda b: (b.catalog.queries, "add")),
    ("the query is deleted", lambda b: (b.catalog.queries, "delete")),
    ("the relation is deleted", lambda b: (b.catalog.relations, "delete")),
    ("the change is committed", lambda b: (b.catalog, "_tell")),
    ("the engine reconciles", lambda b: (b.engine, "reconcile")),
]

_OFTEN = ("the entity is made", "the query is added", "the relation is deleted", "the change is committed")


def killed(folder: Path, text: str, step: Step, moment: str) -> bool:
    """Runs the statement in a fork that kills itself before or after the step; False when it never came there."""
    child = os.fork()
    if child == 0:
        try:
            bench = Bench(folder)
            bench.context.store = "k"
            bench.kafka().entities["clicks"] = {"partitions": "4", "replicas": "1"}
            owner, name = step[1](bench)
            real = getattr(owner, name)

            def wrapped(*arguments: object, **named: object) -> object:
                if moment == "before":
                    os.kill(os.getpid(), signal.SIGKILL)
                result = real(*arguments, **named)
                os.kill(os.getpid(), signal.SIGKILL)
                return result

            setattr(owner, name, wrapped)
            bench.run(text)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == signal.SIGKILL
    assert os.WEXITSTATUS(status) == 0
    return False


def names_and_queries(bench: Bench) -> tuple[list[str], list[Query]]:
    return [r.name for r in bench.catalog.relations.all()], list(bench.catalog.queries.all())


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    "step",
    [pytest.param(step, id=step[0], marks=() if step[0] in _OFTEN else pytest.mark.night) for step in STEPS],
)
def test_a_killed_statement_is_wholly_there_or_wholly_gone(tmp_path: Path, step: Step, moment: str) -> None:
    prepared = Bench(tmp_path)
    prepared.run(*SETUP)
    prepared.close()
    kills = 0
    base = ["clicks", "file_clicks"]
    for text, made in (
        (VIEW, ["v"]),
        ("CREATE STREAM c AS SELECT url FROM clicks", ["c"]),
        (f"CREATE STREAM s (x INT) WITH ('value.format' = json, {TOPIC})", ["s"]),
    ):
        kills += killed(tmp_path, text, step, moment)
        bench = Bench(tmp_path)
        names, queries = names_and_queries(bench)
        assert names in (base, base + made)
        assert [bench.catalog.relations.by_id(q.sink_id) is not None for q in queries] == [True] * len(queries)
        with_query = "AS SELECT" in text
        assert len(queries) == (1 if with_query and names != base else 0)
        bench.close()

        clean(tmp_path, made)
    run(tmp_path, VIEW)
    kills += killed(tmp_path, "DROP STREAM clicks CASCADE", step, moment)
    bench = Bench(tmp_path)
    names, queries = names_and_queries(bench)
    assert (names, len(queries)) in ((["clicks", "file_clicks", "v"], 1), (["file_clicks"], 0))
    bench.close()
    assert kills > 0


def run(folder: Path, text: str) -> None:
    bench = Bench(folder)
    bench.kafka().entities["clicks"] = {"partitions": "4", "replicas": "1"}
    bench.run("USE STORE k", text)
    bench.close()


def clean(folder: Path, names: list[str]) -> None:
    for name in names:
        run(folder, f"DROP RELATION {name} CASCADE" if in_catalog(folder, name) else "LIST STORES")


def in_catalog(folder: Path, name: str) -> bool:
    bench = Bench(folder)
    try:
        return name in [r.name for r in bench.catalog.relations.all()]
    finally:
        bench.close()
