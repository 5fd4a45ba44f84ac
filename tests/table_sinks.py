"""Sinks of tables whose first opening goes wrong, for the tests of what is tried again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


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
