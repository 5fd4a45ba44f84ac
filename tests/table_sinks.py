"""What tests of tables share: sinks whose first opening goes wrong, random commits, and a server that follows files."""

from __future__ import annotations

import datetime as dt
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from tests.faults.live import CATCH_UP_TIMEOUT_S, LiveServer

Key = dict[str, Any]
_NOON = dt.datetime(2024, 5, 17, 12, tzinfo=dt.UTC)


def random_commits(
    chance: random.Random, keys: int, commits: int, more: dict[str, Any]
) -> tuple[list[tuple[list[Key], list[Key]]], list[Key]]:
    """Of rows with the key (k, t, x): each commit's rows and keys that are gone; and what the table has at last."""
    truth: dict[tuple[Any, ...], Key] = {}
    made = []
    for _ in range(commits):
        rows, gone = [], []
        for at in chance.sample(range(keys * 2), keys):
            key = {"k": Decimal(at // 2).scaleb(-2), "t": _NOON + dt.timedelta(seconds=at % 2), "x": bytes([at % 3])}
            if chance.random() < 0.3:
                gone.append(key)
                truth.pop(tuple(key.values()), None)
            else:
                row = truth[tuple(key.values())] = {**key, **more, "v": chance.random()}
                rows.append(row)
        made.append((rows, gone))
    return made, sorted(truth.values(), key=repr)


@dataclass
class FollowedClicks:
    """A server with two tables that follow a directory: ``homes``, the rows of one page, and ``counts`` of all."""

    server: LiveServer
    fed: int = 0

    def feed(self, records: int) -> None:
        folder = self.server.data / "files" / "clicks"
        lines = [json.dumps({"n": n, "url": f"./{n % 7}"}) for n in range(self.fed, self.fed + records)]
        hidden = folder / f".{self.fed}"
        hidden.write_text("\n".join(lines) + "\n")
        hidden.rename(folder / f"{self.fed}.json")
        self.fed += records

    def found(self) -> Any:
        """How many rows ``homes`` has, how many different, the sum of ``twice``; the rows of ``counts`` in order."""
        raise NotImplementedError

    def check(self) -> None:
        """Both tables are what the records say."""
        counts = sorted(Counter(f"./{n % 7}" for n in range(self.fed)).items())
        homes = len([n for n in range(self.fed) if n % 7 == 0])
        wanted = [(homes, homes, 2 * sum(range(0, self.fed, 7)))], counts
        deadline, found = time.monotonic() + CATCH_UP_TIMEOUT_S, None
        while time.monotonic() < deadline:
            found = self.found()
            if found == wanted:
                return
            time.sleep(0.2)
        raise AssertionError(f"{found}, not {wanted}; {self.server.states()}; {self.server.log_tail()}")


class Opening:
    """Opens sinks. Of the first one the method ``name`` is what ``changed`` makes of it."""

    def __init__(
        self,
        open_sink: Callable[[], Any],
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        changed: Callable[[Callable[..., None]], Callable[..., None]],
    ) -> None:
        self.opened: list[Any] = []
        self._open_sink = open_sink
        self._monkeypatch = monkeypatch
        self._name = name
        self._changed = changed

    def __call__(self) -> Any:
        sink = self._open_sink()
        if not self.opened:
            self._monkeypatch.setattr(sink, self._name, self._changed(getattr(sink, self._name)))
        self.opened.append(sink)
        return sink
