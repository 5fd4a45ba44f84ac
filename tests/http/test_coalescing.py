"""Epochs as one event, compared with the same epochs one by one on a bag of rows."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.http.coalescing import coalesced
from mvserver.http.events import CHANGE, Event, event

VIEW = 'post"gres.public."changes":[.é\\'
AT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def epoch(number: int, changes: Sequence[tuple[str, str]]) -> Event:
    """As the encoder writes it; rows are JSON texts."""
    inner = ",".join(f'{{"op":"{op}","row":{row}}}' for op, row in changes)
    body = f'{{"view":{json.dumps(VIEW)},"epoch":{number},"at":"{AT.isoformat()}","changes":[{inner}]}}'
    return event(CHANGE, number, f"t{number}", body.encode())


def changes_of(given: Event) -> list[tuple[str, str]]:
    return [(each["op"], json.dumps(each["row"])) for each in json.loads(given.body)["changes"]]


def apply(rows: Counter[str], given: Event) -> None:
    for op, row in changes_of(given):
        rows[row] += 1 if op in ("+I", "+U") else -1


@pytest.mark.parametrize("seed", range(20))
def test_one_event_does_what_the_epochs_do(seed: int) -> None:
    chance = random.Random(seed)
    held: dict[int, str] = {}
    before: Counter[str] = Counter()
    epochs = []
    for number in range(1, 30):
        changes = []
        for key in chance.sample(range(12), chance.randrange(1, 12)):
            text = json.dumps({"k": key, "v": chance.choice(["}],", '"', "é", chance.randrange(3), 1.50, None])})
            old = held.pop(key, None)
            if old is None:
                changes.append(("+I", text))
            elif chance.random() < 0.3:
                changes.append(("-D", old))
                continue
            else:
                changes += [("-U", old), ("+U", text)]
            held[key] = text
        epochs.append(epoch(number, changes))
        if number == 5:
            before = Counter(held.values())
    one = coalesced(["k"], epochs[5:])
    rows = Counter(before)
    apply(rows, one)
    assert +rows == Counter(held.values())
    assert min(rows.values()) >= 0
    assert (one.epoch, one.token, one.kind) == (29, "t29", CHANGE)
    found = json.loads(one.body)
    assert (found["view"], found["epoch"], found["at"]) == (VIEW, 29, AT.isoformat())
    keys = Counter((op, json.loads(row)["k"]) for op, row in changes_of(one))
    assert set(keys.values()) <= {1}  # the last state of each key, once
    for op, key in keys:
        was, now = (any(json.loads(row)["k"] == key for row in each) for each in (before, held.values()))
        assert op in {(True, True): ("-U", "+U"), (True, False): ("-D",), (False, True): ("+I",)}[was, now]


def test_rows_without_a_key_are_counted() -> None:
    row, other = '{"x": 1}', '{"x": 2}'
    one = coalesced([], [epoch(1, [("+I", row), ("+I", row), ("+I", other)]), epoch(2, [("-D", row), ("-D", other)])])
    assert changes_of(one) == [("+I", row)]
    assert changes_of(coalesced([], [epoch(1, [("+I", row)]), epoch(2, [("-D", row)])])) == []
    total = coalesced([], [epoch(n, [("-U", f'{{"n": {n}}}'), ("+U", f'{{"n": {n + 1}}}')]) for n in range(5)])
    assert changes_of(total) == [("-U", '{"n": 0}'), ("+U", '{"n": 5}')]


def test_what_is_worth_more_than_the_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_CHANGES_BYTES_MAX", 1_000)
    replaced = [epoch(n, [("-U", f'{{"n": {n}}}'), ("+U", f'{{"n": {n + 1}}}')]) for n in range(1_000)]
    assert len(changes_of(coalesced([], replaced))) == 2
    with pytest.raises(SqlError) as raised:
        coalesced([], [epoch(n, [("+I", '{"n": 1}')]) for n in range(1_000)])
    assert raised.value.sqlstate == "72000"
    monkeypatch.setattr(limits, "HTTP_COALESCED_BYTES_MAX", 10_000)
    with pytest.raises(SqlError):
        coalesced([], replaced)
