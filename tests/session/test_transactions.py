"""Random walks through the transaction states against a small model of PostgreSQL's rules."""

from __future__ import annotations

import os
import random

import pytest

from mvserver.errors import SqlError
from mvserver.session.session import Session
from tests.session.fakes import World, run, show

STEPS = (
    "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a", "ROLLBACK TO b", "RELEASE a",
    "SELECT a FROM nothing", "SELECT a FROM v", "SET application_name = '{n}'", "SET LOCAL application_name = '{n}'",
    "CREATE SCHEMA s{n}",
)  # fmt: skip


class Model:
    """What PostgreSQL would say: status, the setting's value, the definitions that are there."""

    def __init__(self) -> None:
        self.status = "I"
        self.session, self.local = "", None  # type: str, str | None
        self.start: tuple[str, str | None] = ("", None)
        self.points: list[tuple[str, tuple[str, str | None], int]] = []
        self.queue: list[str] = []
        self.done: list[str] = []

    @property
    def shown(self) -> str:
        return self.session if self.local is None else self.local

    def end(self, commit: bool) -> None:
        if commit and self.status == "T":
            self.done += self.queue
        elif self.status != "I":
            self.session = self.start[0]
        self.local, self.queue, self.points, self.status = None, [], [], "I"

    def find(self, name: str) -> int | None:
        return next((at for at in range(len(self.points) - 1, -1, -1) if self.points[at][0] == name), None)

    def step(self, text: str) -> bool:
        """Does it; False where it fails."""
        word, _, rest = text.partition(" ")
        if text.startswith("ROLLBACK TO"):
            at = self.find(text[-1])
            if self.status == "I" or at is None:
                return False
            _, (self.session, self.local), kept = self.points[at]
            self.points, self.queue, self.status = self.points[: at + 1], self.queue[:kept], "T"
            return True
        if text in ("COMMIT", "ROLLBACK"):
            self.end(text == "COMMIT")
            return True
        if self.status == "E":
            return False
        if text == "BEGIN":
            if self.status == "I":
                self.status, self.start = "T", (self.session, self.local)
        elif word in ("SAVEPOINT", "RELEASE"):
            if self.status == "I":
                return False
            if word == "SAVEPOINT":
                self.points.append((rest, (self.session, self.local), len(self.queue)))
                return True
            at = self.find(rest)
            if at is None:
                return False
            self.points = self.points[:at]
        elif text.startswith("SET LOCAL"):
            if self.status == "T":
                self.local = text.split("'")[1]
        elif word == "SET":
            self.session, self.local = text.split("'")[1], None
        elif word == "CREATE":
            (self.queue if self.status == "T" else self.done).append(text)
        return text != "SELECT a FROM nothing"

    def take(self, text: str) -> bool:
        ok = self.step(text)
        if not ok and self.status == "T":
            self.status = "E"
        return ok


@pytest.mark.parametrize("round_", range(20))
def test_random_walks(world: World, session: Session, round_: int) -> None:
    seed = int(os.environ.get("MVSERVER_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
    seed += round_
    print(f"seed {seed}")
    chosen = random.Random(seed)
    model = Model()
    walked: list[str] = []
    for n in range(60):
        text = chosen.choice(STEPS).format(n=n)
        walked.append(text)
        expected = model.take(text)
        try:
            run(session, text)
            ok = True
        except SqlError:
            ok = False
        assert ok is expected, walked
        assert session.transaction_status() == model.status, walked
        assert session.parameter_status()["application_name"] == model.shown, walked
        assert world.router.done == model.done, walked
    run(session, "ROLLBACK")
    model.end(commit=False)
    assert show(session, "application_name") == model.shown
