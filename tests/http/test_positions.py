"""Ids of events of several views: who comes back with one is where he was in each of them."""

from __future__ import annotations

from mvserver.http.feeds import ViewName
from mvserver.http.streams import Positions, read_position

A, B, C = (ViewName("d", "s", name) for name in "abc")


def test_views_that_have_not_begun_have_no_place() -> None:
    positions = Positions([A, B, C])
    assert positions.text is None
    positions[B] = "0123456789abcdef-1"
    assert positions.text == "-,0123456789abcdef-1,-"
    assert read_position(positions.text, [A, B, C]) == {B: "0123456789abcdef-1"}
    positions[A], positions[C] = "0123456789abcdef-2", "0123456789abcdef-3"
    assert positions.text == "0123456789abcdef-2,0123456789abcdef-1,0123456789abcdef-3"
    positions.forget(B)
    assert read_position(positions.text, [A, B, C]) == {A: "0123456789abcdef-2", C: "0123456789abcdef-3"}


def test_a_text_of_other_views_is_none() -> None:
    assert read_position("0123456789abcdef-1", [A, B]) == {}
    assert read_position(None, [A]) == {}
