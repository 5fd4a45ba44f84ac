"""Statements that wait for Spark, and names along the whole search path, now and at each later start."""

from __future__ import annotations

import threading
import time

import pytest

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing import lookup
from mvserver.streaming.spark.state import SparkLostError
from tests.routing.fakes import Bench

VIEW = "CREATE MATERIALIZED VIEW v AS SELECT url, COUNT(*) AS n FROM clicks GROUP BY url"


def starting(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Spark is up when the event is set."""
    up = threading.Event()

    def wait(timeout_s: float) -> None:
        if not up.wait(timeout_s):
            raise SqlError(sqlstates.CANNOT_CONNECT_NOW, "Spark is still starting")

    monkeypatch.setattr(bench.engine, "wait_until_ready", wait)
    return up


def test_a_cancel_ends_the_wait_within_a_second(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    starting(filled, monkeypatch)
    asked = threading.Event()

    def cancelled() -> bool:
        asked.set()
        return True

    filled.context.cancelled = cancelled
    began = time.monotonic()
    error = filled.error(VIEW)
    assert (error.sqlstate, error.message) == ("57014", "canceling statement due to user request")
    assert asked.is_set()
    assert time.monotonic() - began < 1.0


def test_the_wait_has_its_bound(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    starting(filled, monkeypatch)
    object.__setattr__(filled.services, "spark_start_timeout_s", 0.6)
    began = time.monotonic()
    assert filled.error(VIEW).sqlstate == "57P03"
    assert 0.5 < time.monotonic() - began < 3.0


def test_it_goes_on_when_spark_is_up(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    up = starting(filled, monkeypatch)
    timer = threading.Timer(0.3, up.set)
    timer.start()
    filled.run(VIEW)
    timer.join()
    assert [query.kind for query in filled.catalog.queries.all()] == ["materialized_view"]


def test_what_spark_lost_is_asked_again(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def check_plan(plan: object) -> None:
        asked.append(plan)
        if len(asked) < 3:
            raise SparkLostError("Spark ended (signal 9)")

    monkeypatch.setattr(filled.engine, "check_plan", check_plan)
    filled.run(VIEW)
    assert len(asked) == 3
    object.__setattr__(filled.services, "spark_start_timeout_s", -1.0)
    asked.clear()
    error = filled.error(VIEW.replace("VIEW v", "VIEW w"))
    assert (error.sqlstate, error.detail) == ("57P03", "Spark ended (signal 9).")
    assert len(filled.catalog.queries.all()) == 1


def test_a_cancel_is_seen_although_spark_hangs(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, asked = threading.Event(), threading.Event()

    def check_plan(plan: object) -> None:
        asked.set()
        hangs.wait(60)

    monkeypatch.setattr(filled.engine, "check_plan", check_plan)
    filled.context.cancelled = asked.is_set
    began = time.monotonic()
    assert filled.error(VIEW).sqlstate == "57014"
    assert time.monotonic() - began < 30
    assert not filled.catalog.queries.all()
    hangs.set()


def test_a_name_means_later_what_it_meant_when_the_view_was_made(filled: Bench) -> None:
    filled.run("CREATE SCHEMA s")
    filled.context.schema = "s"
    filled.context.settings["search_path"] = "s, public"
    filled.run(VIEW)  # in s, over public.clicks
    (query,) = filled.catalog.queries.all()
    clicks = filled.catalog.relations.by_id(query.source_ids[0])
    assert clicks is not None
    assert filled.catalog.names.path(clicks) == ("postgres", "public", "clicks")
    filled.run("CREATE STREAM clicks (other INT) WITH ('store' = 'f', 'topic' = 'clicks', 'value.format' = 'json')")
    found = lookup.known_resolver(query, filled.services)
    assert found(("clicks",), None).id == clicks.id
    assert found(("public", "clicks"), None).id == clicks.id
    assert lookup.resolver(filled.context, filled.services)(("clicks",), None).id != clicks.id
