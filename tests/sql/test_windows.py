"""Windows of FROM and EMIT, as they are read."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
from mvserver.sql.dialect import parse_select
from mvserver.sql.windows import WindowText

_MINUTE = 60_000


@pytest.mark.parametrize(
    ("source", "kind", "size", "step", "partition_by"),
    [
        ("TUMBLE(clicks, SIZE 5 MINUTES)", "tumble", 5 * _MINUTE, 0, []),
        ("tumble(s.clicks, size 1 minute) WITH ('timestamp' = 'at') c", "tumble", _MINUTE, 0, []),
        ("TUMBLE(clicks, SIZE INTERVAL '2' HOUR) AS c", "tumble", 120 * _MINUTE, 0, []),
        ("TUMBLE(clicks, SIZE INTERVAL '90 seconds')", "tumble", 90_000, 0, []),
        ("TUMBLE(clicks, SIZE 250 MILLISECONDS)", "tumble", 250, 0, []),
        ("HOP(clicks, SIZE 1 DAY, ADVANCE BY 1 HOUR)", "hop", 1440 * _MINUTE, 60 * _MINUTE, []),
        ("CUMULATE(clicks, SIZE 1 WEEK, STEP 1 DAY)", "cumulate", 7 * 1440 * _MINUTE, 1440 * _MINUTE, []),
        ("SESSION(clicks, GAP 30 SECONDS)", "session", 30_000, 0, []),
        ('SESSION(clicks PARTITION BY a, "B", gap, GAP 30 SECONDS)', "session", 30_000, 0, ["a", "B", "gap"]),
    ],
)
def test_windows(source: str, kind: str, size: int, step: int, partition_by: list[str]) -> None:
    table = parse_select(f"SELECT a FROM {source}").args["from_"].this
    window = table.meta["window"]
    assert isinstance(window, WindowText)
    assert (window.kind, window.size_ms, window.step_ms) == (kind, size, step)
    assert [name for name, _ in window.partition_by] == partition_by
    assert table.name == "clicks"


def test_a_stream_may_be_called_like_a_window() -> None:
    table = parse_select("SELECT a FROM session AS tumble").args["from_"].this
    assert (table.name, table.alias, table.meta.get("window")) == ("session", "tumble", None)


@pytest.mark.parametrize(("text", "final"), [("", False), (" EMIT CHANGES", False), (" EMIT FINAL", True)])
def test_emit(text: str, final: bool) -> None:
    assert parse_select(f"SELECT a FROM b GROUP BY a{text}").meta["emit_final"] is final


@pytest.mark.parametrize(
    ("text", "sqlstate", "message", "hint"),
    [
        ("TUMBLE(b, 5 MINUTES)", "42601", 'syntax error at or near "5"', "Write TUMBLE(stream, SIZE n unit)."),
        ("TUMBLE(b, SIZE 5)", "42601", "the length of a window must be a whole number and a unit, not 5",
         "Write TUMBLE(stream, SIZE n unit)."),
        ("TUMBLE(b, SIZE 1.5 HOURS)", "42601", "the length of a window must be a whole number and a unit, not 1.5",
         "Write TUMBLE(stream, SIZE n unit)."),
        ("TUMBLE(b, SIZE 0 SECONDS)", "22023", "the length of a window must be between 1 millisecond and 36600 days",
         None),
        ("TUMBLE(b, SIZE 1 MONTH)", "0A000", "windows of months are not supported",
         "A window is measured in milliseconds, seconds, minutes, hours, days or weeks."),
        ("HOP(b, SIZE 5 MINUTES)", "42601", 'syntax error at or near ")"', None),
        ("TUMBLE(b PARTITION BY a, SIZE 5 MINUTES)", "42601", 'syntax error at or near "PARTITION"',
         "Only SESSION has PARTITION BY; the others are grouped by GROUP BY alone."),
        ("TUMBLE(SELECT 1, SIZE 5 MINUTES)", "42601", 'syntax error at or near "SELECT"',
         "Write TUMBLE((SELECT ...), ...), with brackets of its own."),
        ("TUMBLE(TABLE b, DESCRIPTOR(at), INTERVAL '5' MINUTE)", "42601", 'syntax error at or near "TABLE"',
         "Write TUMBLE(stream, SIZE n unit)."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(text: str, sqlstate: str, message: str, hint: str | None) -> None:
    with pytest.raises(SqlError) as caught:
        parse_select(f"SELECT a FROM {text}")
    assert (caught.value.sqlstate, caught.value.message, caught.value.hint) == (sqlstate, message, hint)


def test_emit_is_the_end() -> None:
    with pytest.raises(SqlError) as caught:
        parse_select("SELECT a FROM b EMIT FINAL WHERE a")
    assert caught.value.sqlstate == "42601"
