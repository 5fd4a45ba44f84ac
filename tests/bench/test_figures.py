"""How figures are made from what was seen, and how they get into the document."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.bench import event_readers, machine, processes, render, results, scan_only
from tests.bench.load import Marker
from tests.bench.markers import ages_ms
from tests.bench.parts import backlog, pauses
from tests.bench.parts.view_cost import shares
from tests.bench.stats import latency_summary, percentile, rate_after_first


def test_percentiles_are_values_that_were_seen() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.9, 0.99, 1.0)] == [50, 90, 99, 100]
    assert percentile([7.0], 0.99) == 7.0
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    for values, share in (([], 0.5), ([1.0], 0.0), ([1.0], 1.1)):
        with pytest.raises(ValueError):
            percentile(values, share)
    assert latency_summary([1.0, 2.0, 4.0]) == {"n": 3, "p50_ms": 2.0, "p90_ms": 4.0, "p99_ms": 4.0, "max_ms": 4.0}


def test_the_rate_does_not_count_what_the_first_look_shows() -> None:
    points = [(0.0, 0), (5.0, 0), (6.0, 100), (7.0, 600), (8.0, 1_100)]
    assert rate_after_first(points, 1_100) == 500
    with pytest.raises(ValueError, match="all events became visible at once"):
        rate_after_first([(0.0, 0), (1.0, 10)], 10)
    with pytest.raises(ValueError, match="only 600 of 1100"):
        rate_after_first(points[:-1], 1_100)
    with pytest.raises(ValueError, match="nothing became visible"):
        rate_after_first(points[:2], 1_100)


def test_ages_and_lost_markers() -> None:
    stamps = {marker.number: marker.stamp for marker in (Marker(5, 10.0), Marker(6, 10.1), Marker(7, 10.2))}
    assert ages_ms(stamps, {5: 10.125, 6: 10.225}) == pytest.approx([125, 125])
    with pytest.raises(AssertionError, match="1 of 3 markers never became visible, the first is 6"):
        ages_ms(stamps, {5: 10.125, 7: 10.3})
    with pytest.raises(AssertionError):
        ages_ms(stamps, {})


def test_what_a_view_adds() -> None:
    assert shares({1: 0.1, 10: 0.19, 100: 0.64}) == {"tenth_share": 0.1, "hundredth_share": 0.05}


def test_what_readers_of_events_have_got() -> None:
    def event(second: int) -> bytes:
        body = f'{{"view":"v","epoch":{second},"at":"1970-01-01T00:00:{second:02d}.000000+00:00","changes":[]}}'
        return b"2a\r\nid: x\nevent: change\ndata: " + body.encode() + b"\n\n\r\n"

    early, first, second, last = event(9), event(10), event(11), event(29)
    pieces = [(10.5, 1, early + first), (11.25, 1, second[:20]), (11.5, 1, second[20:]), (10.25, 2, first),
              (29.0, 1, last), (29.5, 2, b"x\r\nevent: reset\ndata: {}\n\n\r\n"), (29.6, 2, b"")]  # fmt: skip
    found = event_readers.summary(pieces, readers=2, began=10.0, seconds=20.0)
    assert found["missed"] == 1  # of second 11 by reader 2; the last may be on its way
    assert found["told"] == {"reset": 1, "lost": 1}
    assert (found["n"], found["max_ms"]) == (4, 500.0)


def test_the_scan_rate_leaves_out_the_first_batch() -> None:
    def report(second: int, rows: int, ms: int) -> dict[str, object]:
        stamp = f"2026-01-01T00:00:{second:02d}.000Z"
        return {"timestamp": stamp, "numInputRows": rows, "durationMs": {"triggerExecution": ms}}

    progress = [report(0, 1_000, 9_000), report(10, 4_000, 3_000), report(13, 0, 5), report(14, 2_000, 1_000)]
    assert scan_only.rate(progress) == {"events_per_s": 1_200.0, "events": 6_000, "seconds": 5.0}
    assert scan_only.rate(progress[:1])["events_per_s"] == pytest.approx(1_000 / 9)
    with pytest.raises(ValueError, match="nothing was read"):
        scan_only.rate([report(0, 0, 1)])


def test_own_process_is_measured() -> None:
    before = processes.usage(os.getpid())
    assert before.rss_bytes > 1_000_000
    while processes.usage(os.getpid()).cpu_s == before.cpu_s:
        pass
    assert processes.cores_between(before, processes.usage(os.getpid())) > 0
    assert os.getpid() in processes.tree(os.getppid())


_READERS = {
    "busy": {"readers": 1_000, "epochs_per_s": 10.0, "cores": 0.1, "missed": 0} | latency_summary([0.01]),
    "idle": {"readers": 10_000, "readers_mib": 170, "server_mib": 80, "lost": 0},
}
_BACKLOG = {
    "records": 100_000, "records_per_s": 40_000, "alone_per_s": 50_000, "share_of_alone": 0.8, "cpu_us_a_record": 25.5,
} | latency_summary([500.0])  # fmt: skip
SAMPLES: dict[str, dict[str, object]] = {
    "freshness": {
        "rows": [
            {"views": 3, "events_per_s": 1_000, "key_sets": 3, "with_where": 0, "keys": 21_000}
            | latency_summary([100.0, 120.5])
        ]
    },
    "lanes": {
        "rows": [
            {"lane": "live", "at_the_end": "live", "views": 3, "events_per_s": 1_000, "cores": 0.61}
            | latency_summary([40.0])
        ]
    },
    "own_writes": {"rows": [{"views": 3, "events_per_s": 1_000, "lane": "live"} | latency_summary([30.0])]},
    "stores": {"records_per_s": 1_000, "rows": [{"type": "KINESIS", "relation": "stream", **_BACKLOG}]},
    "store_formats": {"records_per_s": 1_000, "rows": [{"type": "KAFKA", "format": "avro", **_BACKLOG}]},
    "stream_joins": {
        "rows": [{"join": "interval", "events_per_s": 10_000, "joined_rows": 600_123} | latency_summary([200.0])]
    },
    "changelog_join": {"rows": [{"changes_per_s": 1_000, "joined_rows": 77_000} | latency_summary([150.0])]},
    "changelog_group": {
        "events": 1_000_000,
        "rows": [
            {"source": "changelog", "aggregates": "count, max", "events_per_s": 90_000, "cpu_us_per_event": 17.3}
            | {"live_per_s": 10_000}
            | latency_summary([300.0])
        ],
    },
    "tenth_view": {
        "records": 5_000_000,
        "events_per_s": 10_000,
        "fill_s": 31.5,
        "p99_raised": 0.42,
        "rows": [{"when": "before"} | latency_summary([100.0]), {"when": "while"} | latency_summary([142.0])],
    },
    "join_memory": {
        "rows_of_an_hour": 7_200_000,
        "rows": [
            {"hours": 1, "events_a_side": 3_600_000, "rss_mib_while_reading": 2_400, "rss_mib_after_restart": 1_100}
            | {"rss_bytes_per_row": 12.5, "disk_mib": 310}
        ],
    },
    "backlog": {
        "events": 5_000_000,
        "rows": [
            {
                "workload": "wide",
                "views": 1,
                "keys": 200,
                "events_per_s": 250_000,
                "scan_only_per_s": 400_000,
                "share_of_scan": 0.625,
                "start_to_first_row_s": 9.5,
                "start_to_all_s": 31.25,
                "rss_mib": 1_900,
            }
        ],
    },
    "nexmark": {
        "events": 1_000_000,
        "scan_only_per_s": 400_000,
        "rows": [{"query": "q5", "events": 920_000, "rows": 700, "events_per_s": 50_000, "cpu_us_per_event": 31.5}],
    },
    "read_paths": {
        "rows": [
            {"path": "finished rows", "query": "look-up", "clients": 8, "live": False, "ratio": 2.0}
            | {"per_s_with": 9_000.0, "per_s_without": 4_500.0, "p50_ms_with": 0.8, "p50_ms_without": 1.7}
            | {"p99_ms_with": 2.0, "p99_ms_without": 4.0, "cpu_us_with": 110, "cpu_us_without": 230}
        ]
    },
    "web": _READERS | {"whole": _READERS},
    "watching": {
        "burst_events": 5_000,
        "rows": [
            {"lane": "batches", "view": "few", "keys": 200, "burst_ms": 180.4, "watched_ms": 190.1, "share": 0.0538}
        ],
        "commits": [{"groups": 200, "records": 5_000, "changes": 400, "cpu_ms": 8.5, "watched_cpu_ms": 33.0}],
        "reads": [{"read": "look-up", "rows": 1, "present_ms": 1.2, "past_ms": 2.4, "ratio": 2.0}],
    },
    "view_cost": {
        "burst_events": 20_000,
        "tenth_share": 0.08,
        "hundredth_share": 0.03,
        "rows": [{"views": 1, "keys": 200, "burst_ms": 180.4}],
    },
    "pull": {
        "rows_held": 100_000,
        "rows": [
            {"query": "look-up", "protocol": "simple", "clients": 1, "system": "mvserver", "per_s": 1_500.5}
            | {"ratio": 0.21}
            | latency_summary([0.6])
        ],
        "streamed": {
            "rows": 5_000_000,
            "mib": 240.5,
            "rows_per_s": 1_200_000,
            "postgres_rows_per_s": 2_000_000,
            "ratio": 0.6,
            "rss_growth_mib": 30.2,
        },
        "connections": [
            {"connections": 1_000, "active": 1, "kib_each": 25.5, "per_s": 1_000.0} | latency_summary([0.9]),
            {"connections": 200, "active": 200, "per_s": 1_000.0} | latency_summary([90.0]),
        ],
        "under_10000_events_per_s": [{"query": "look-up", "clients": 1, "per_s": 900.0} | latency_summary([1.5])],
    },
    "startup": {"first_answer_s": 0.9, "first_change_s": 9.1, "runs": 5},
    "cpu": {"views": 10, "rows": [{"events_per_s": 0, "cores": 0.05, "rss_mib": 900}]},
    "memory": {
        "rows": [
            {
                "keys": 1_000_000,
                "rss_bytes_per_key": 61.5,
                "disk_bytes_per_key": 40.0,
                "rss_mib_while_filling": 2_000,
                "rss_mib_after_restart": 1_000,
            }
        ]
    },
}


def test_every_part_has_its_place_in_the_document_and_a_table(tmp_path: Path) -> None:
    described = machine.describe()
    assert described["cores"] == os.cpu_count()
    json.dumps(described)
    for part, result in SAMPLES.items():
        results.save(part, described, 1.0, result, tmp_path)
    documents = [tmp_path / document.name for document in render.DOCUMENTS]
    for copied, document in zip(documents, render.DOCUMENTS, strict=True):
        copied.write_text(document.read_text())
    assert set(render.write(results.load(tmp_path), documents)) == set(SAMPLES)
    first = "".join(document.read_text() for document in documents)
    assert "| 1,000 | 3 | 3 | 0 | 21,000 | 100 | 120.5 | 120.5 | 120.5 | 2 |" in first
    assert "| wide | 1 | 200 | 250,000 | 400,000 | 62.5 % | 9.5 | 31.25 | 1,900 |" in first
    assert "The tenth view adds 8.0 % of the batch with one view, the hundredth 3.0 %." in first
    assert "| q5 | 920,000 | 700 | 50,000 | 12.5 % | 31.5 |" in first
    assert "| idle | 0.05 | 900 |" in first
    assert "| KINESIS | stream | 100,000 | 40,000 | 50,000 | 80.0 % | 25.5 | 500 | 500 | 500 | 500 | 1 |" in first
    assert "| KAFKA | avro | 100,000 | 40,000 | 50,000 | 80.0 % | 25.5 | 500 | 500 | 500 | 500 | 1 |" in first
    assert "| interval | 10,000 | 600,123 | 200 | 200 | 200 | 200 | 1 |" in first
    assert "| 1,000 | 77,000 | 150 | 150 | 150 | 150 | 1 |" in first
    assert "| changelog | count, max | 90,000 | 17.3 | 10,000 | 300 | 300 |" in first
    assert "filled after 31.5 s; meanwhile the p99 of the others is +42.0 %." in first
    assert "| 1 | 3,600,000 | 2,400 | 1,100 | 12.5 | 310 |" in first
    assert "| look-up | simple | 1 | mvserver | 1,500 | 0.21 | 0.6 | 0.6 |" in first
    assert "5,000,000 rows (240 MiB) streamed: 1,200,000 rows a second, PostgreSQL 2,000,000 (0.60 of it)" in first
    assert "| 200 | 200 |  | 1,000 | 90 | 90 |" in first
    render.write(results.load(tmp_path), documents)
    again = "".join(document.read_text() for document in documents)
    assert again == first  # a table that is written again replaces the one before


def test_a_trial_says_so() -> None:
    measured = {"machine": machine.describe(), "scale": 0.01, "result": SAMPLES["startup"]}
    assert "At scale 0.01: a trial" in render.render("startup", measured)


def test_a_document_without_the_place_is_refused() -> None:
    with pytest.raises(render.MarkerError, match="0 documents have"):
        render.write({"freshness": {}}, [])
    with pytest.raises(render.MarkerError, match="has 0 places"):
        render.replace("# Performance", "freshness", "x")
    twice = "<!-- bench:a -->\n<!-- /bench:a -->\n" * 2
    with pytest.raises(render.MarkerError, match="has 2 places"):
        render.replace(twice, "a", "x")


def test_the_scan_only_program_is_where_the_harness_looks() -> None:
    assert Path(scan_only.__file__) == backlog._SCAN


def test_pauses_are_summed_up_by_message() -> None:
    found = [
        {"message": "Query", "text": name, "pause_ms": pause} for name, pause in (("a", 3.0), ("b", 70.0), ("c", 4.0))
    ]
    row = pauses._summary("Query", found)
    assert row == {"message": "Query", "sent": 3, "median_ms": 4.0, "longest_ms": 70.0, "over": 1}
    shown = render._pauses({"promised_ms": 50.0, "rows": [row], "longest": pauses._longest(found)})
    assert "| Query | 3 | 4 | 70 | 1 |" in shown
    assert shown.index("| Query | b | 70 |") < shown.index("| Query | a | 3 |")
