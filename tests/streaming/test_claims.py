"""What a subscriber has claimed, where it is restarted while a batch of it is under way."""

from __future__ import annotations

from mvserver.compiler.plans import ErrorHandling
from mvserver.streaming.pipeline.subscribers import Subscriber
from tests.streaming.states import target


def _subscriber() -> Subscriber:
    return Subscriber(target("SELECT k FROM events"), 1, {"at": 0}, ErrorHandling.IGNORE_AND_LOG)


def test_a_commit_brings_along_a_claim_that_was_taken_back() -> None:
    subscriber = _subscriber()
    subscriber.claimed = {"at": 5}  # a batch from 0 to 5 is under way
    subscriber.claimed = subscriber.position  # the query is restarted
    subscriber.committed({"at": 5}, 5, 5, 0, None)
    assert (subscriber.position, subscriber.claimed) == ({"at": 5}, {"at": 5})


def test_a_commit_leaves_the_claim_of_the_next_batch() -> None:
    subscriber = _subscriber()
    subscriber.claimed = {"at": 9}  # two batches are under way
    subscriber.committed({"at": 5}, 5, 5, 0, None)
    assert (subscriber.position, subscriber.claimed) == ({"at": 5}, {"at": 9})
