"""Which answers a server in this process has put together without the steps of a statement."""

from __future__ import annotations

import pytest

from mvserver.pgwire.machine import Machine


def noted(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """From now on, in their order."""
    found: list[bytes] = []
    ordinary = Machine.look_up

    def look_up(machine: Machine) -> bytes | None:
        answer = ordinary(machine)
        if answer is not None:
            found.append(answer)
        return answer

    monkeypatch.setattr(Machine, "look_up", look_up)
    return found
