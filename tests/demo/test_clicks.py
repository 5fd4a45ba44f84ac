"""The demo's own half without a server: clicks, truth, files, comparison."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from mvserver.demo import clicks
from mvserver.demo.check import compare, verdict
from mvserver.demo.clicks import ClickGenerator, Truth
from mvserver.demo.feeder import CLICKS_PER_FILE, UNDECODABLE_IN_FILE, Feeder
from mvserver.demo.folder import NotOursError, fresh_folder


def test_the_same_seed_gives_the_same_clicks() -> None:
    times = list(range(1000))
    assert ClickGenerator(1).clicks(times) == ClickGenerator(1).clicks(times)
    assert ClickGenerator(1).clicks(times) != ClickGenerator(2).clicks(times)


def test_a_click_is_one_line_of_json_with_the_streams_columns() -> None:
    click = ClickGenerator(1).clicks([1_700_000_000_000])[0]
    line = click.line()
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    fields = json.loads(line)
    assert set(fields) == {"event_time", "device_id", "url", "ip", "userid"}
    assert fields["event_time"] == 1_700_000_000_000


def test_what_the_tutorial_asks_for_is_among_the_clicks() -> None:
    made = ClickGenerator(42).clicks([0] * 20_000)
    assert Counter(click.url for click in made).most_common(1)[0][0] == "./home"
    assert any(click.userid == "User_9" and click.device_id == "mobile" for click in made)


def test_the_undecodable_record_is_no_json() -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(clicks.UNDECODABLE)


def test_truth_equals_a_count_by_hand_and_the_comparison_finds_each_kind_of_difference() -> None:
    made = ClickGenerator(7).clicks([0] * 5_000)
    truth = Truth()
    truth.add(made[:2_000])
    truth.add(made[2_000:])
    assert truth.total == 5_000
    by_url, by_url_device, by_user = truth.rows()
    assert by_url == {(url,): (n,) for url, n in Counter(click.url for click in made).items()}
    assert by_url_device == {k: (n,) for k, n in Counter((c.url, c.device_id) for c in made).items()}
    assert by_user == {k: (n,) for k, n in Counter((c.userid, c.url, c.device_id) for c in made).items()}
    found = [[(*key, *values) for key, values in rows.items()] for rows in truth.rows()]
    assert all(comparison.equal for comparison in truth.compare(found))
    found[0][0] = (found[0][0][0], found[0][0][1] + 1)
    assert [comparison.equal for comparison in truth.compare(found)] == [False, True, True]


def test_comparison_counts(capsys: pytest.CaptureFixture[str]) -> None:
    expected = {(None,): (1,), ("a",): (2,), ("b",): (3,)}
    comparison = compare("v", expected, [(None, 1), ("a", 9), ("a", 9), ("z", 1)], keys=1)
    assert (comparison.missing, comparison.unexpected, comparison.different, comparison.doubled) == (1, 1, 1, 1)
    assert (comparison.expected, comparison.found, comparison.equal) == (3, 4, False)
    same = compare("w", expected, [("b", 3), (None, 1), ("a", 2)], keys=1)
    assert same.equal
    assert verdict([same]) is True
    assert capsys.readouterr().out == "  w: 3 rows, all equal\nPASS: 3 rows of 1 views compared, 0 wrong\n"
    assert verdict([same, comparison]) is False
    assert capsys.readouterr().out.endswith("FAIL: 7 rows of 2 views compared, 4 wrong\n")


def test_the_feeder_leaves_whole_files_that_hold_what_it_counted(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path, seed=3)
    feeder.start()
    deadline = time.monotonic() + 10
    while feeder.files <= UNDECODABLE_IN_FILE and time.monotonic() < deadline:
        assert all(path.read_bytes().endswith(b"\n") for path in tmp_path.glob("[!.]*"))
    feeder.stop()
    assert feeder.error is None
    assert feeder.undecodable == 1
    lines = [line for path in sorted(tmp_path.iterdir()) for line in path.read_bytes().splitlines()]
    assert not list(tmp_path.glob(".*"))
    assert lines.count(clicks.UNDECODABLE) == 1
    decoded = [json.loads(line) for line in lines if line != clicks.UNDECODABLE]
    assert feeder.truth.visits == Counter((c["userid"], c["url"], c["device_id"]) for c in decoded)
    assert len(decoded) == feeder.fed == feeder.files * CLICKS_PER_FILE
    newest = max(click["event_time"] for click in decoded)
    ages = feeder.became_visible(feeder.fed, newest + 100.0)
    assert len(ages) == feeder.files
    assert min(ages) == 100.0
    assert feeder.became_visible(feeder.fed, newest + 200.0) == []


def test_only_the_demos_own_folder_is_made_fresh(tmp_path: Path) -> None:
    folder = fresh_folder(tmp_path / "demo-data")
    (folder / "data").mkdir()
    assert [path.name for path in fresh_folder(tmp_path / "demo-data").iterdir()] == [".mvserver-demo"]
    other = tmp_path / "precious"
    other.mkdir()
    (other / "thesis.txt").write_text("x")
    with pytest.raises(NotOursError, match="was not made by the demo"):
        fresh_folder(other)
    assert (other / "thesis.txt").read_text() == "x"
    (tmp_path / "empty").mkdir()
    assert fresh_folder(tmp_path / "empty").is_dir()
