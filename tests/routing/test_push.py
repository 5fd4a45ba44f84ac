"""A push query in the router: what it is refused for, and that it is checked before a stream is read for it."""

from __future__ import annotations

from typing import Any

import pytest

from mvserver.errors import SqlError
from mvserver.front import Field
from mvserver.routing import push
from mvserver.sql.push import BOUNDED_HINT, push_query
from mvserver.streaming.push.push_rows import PushRows
from tests.routing.fakes import Bench


class PlainShaper:
    def __init__(self, columns: Any) -> None:
        self.fields = tuple(Field(name, 25) for name, _ in columns)

    def close(self) -> None:
        pass


@pytest.fixture
def reading(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The bench's engine reads streams, too."""
    monkeypatch.setattr(
        type(filled.services.pulls), "shaper", lambda self, columns: PlainShaper(columns), raising=False
    )

    def subscribe(self: Any, plan: Any, start_position: str) -> PushRows:
        self._call("subscribe", start_position)
        return PushRows()

    monkeypatch.setattr(type(filled.engine), "subscribe", subscribe, raising=False)
    return filled


def refused(bench: Bench, text: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        bench.router.execute(push_query(text), bench.context)
    assert "subscribe" not in bench.engine.names()
    return caught.value


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT url FROM clicks", ["url"]),
        ("SELECT url, count(*) AS n FROM clicks GROUP BY url", ["op", "url", "n"]),
        ("SELECT DISTINCT url FROM clicks", ["op", "url"]),
        ("SELECT window_start, url FROM TUMBLE(clicks, SIZE 1 MINUTES)", ["window_start", "url"]),
        (
            "SELECT window_end, count(*) AS n FROM TUMBLE(clicks, SIZE 1 MINUTES) GROUP BY window_start, window_end",
            ["op", "window_end", "n"],
        ),
        (
            "SELECT window_end, count(*) AS n FROM TUMBLE(clicks, SIZE 1 MINUTES) GROUP BY window_start, window_end "
            "EMIT FINAL",
            ["window_end", "n"],
        ),
        ("SELECT a.url FROM clicks a JOIN clicks b WITHIN 5 MINUTES ON a.url = b.url", ["url"]),
        ("SELECT url FROM clicks UNION ALL SELECT url FROM clicks", ["url"]),
    ],
)
def test_rows_that_replace_each_other_come_with_their_kind(reading: Bench, text: str, columns: list[str]) -> None:
    fields = reading.router.fields(push_query(text), reading.context)
    assert fields is not None
    assert [field.name for field in fields] == columns
    result = reading.router.execute(push_query(text), reading.context)
    result.close()
    assert "subscribe" in reading.engine.names()


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("SELECT nope FROM clicks", "42703", 'column "nope" does not exist'),
        ("SELECT url FROM nosuch", "42P01", 'relation "nosuch" does not exist'),
        ("SELECT url FROM clicks WITH ('starting.position' = 'x')", "22023", None),
        ("SELECT url, url FROM clicks", "42701", None),
        ("SELECT url AS op, count(*) AS n FROM clicks GROUP BY url", "42701", 'column "op" specified more than once'),
    ],
)
def test_what_is_wrong_in_any_query(reading: Bench, text: str, sqlstate: str, message: str | None) -> None:
    error = refused(reading, text)
    assert error.sqlstate == sqlstate
    assert message is None or error.message == message


def test_the_way_out_is_named(reading: Bench) -> None:
    with pytest.raises(SqlError) as caught:
        push_query("SELECT url FROM clicks ORDER BY url")
    assert str(caught.value.hint).endswith(BOUNDED_HINT)


def test_it_begins_at_the_latest_position(reading: Bench) -> None:
    result = reading.router.execute(push_query("SELECT url FROM clicks LIMIT 3"), reading.context)
    assert result.tag == "SELECT "
    assert isinstance(result.batches, push.PushBatches)
    assert reading.router.fields(push_query("SELECT url AS a FROM clicks"), reading.context) == (Field("a", 25),)
    names = reading.engine.names()
    assert names.index("check_plan") < names.index("resolve_position") < names.index("subscribe")
    (positioned,) = [call for call in reading.engine.calls if call[0] == "resolve_position"]
    assert positioned[-1] == "latest"
    result.close()
