"""Rows that come as they happen: what there is goes out before the server waits, and row limits take what is there."""

from __future__ import annotations

from tests.wire.client import SYNC, Driven, bind, describe, execute, kinds, parse, query, tags
from tests.wire.toy import ToyBackend


def logged_in() -> tuple[Driven, ToyBackend]:
    backend = ToyBackend()
    return Driven(backend).log_in(), backend


def pieces(driven: Driven, *data: bytes) -> list[str]:
    """What goes out between two waits of the server."""
    found: list[str] = []
    take = driven.machine.take_output

    def watched() -> bytes:
        out = take()
        if out:
            found.append(kinds(out))
        return out

    driven.machine.take_output = watched  # type: ignore[method-assign]
    try:
        driven.say(*data)
    finally:
        driven.machine.take_output = take  # type: ignore[method-assign]
    return found


def test_each_batch_goes_out_before_the_next_is_waited_for() -> None:
    driven, backend = logged_in()
    assert pieces(driven, query("live 5 2")) == ["TN", "DD", "DD", "D", "CZ"]
    assert backend.open_results == 0


def test_a_row_limit_takes_what_is_there() -> None:
    driven, backend = logged_in()
    driven.say(query("begin"))
    out = driven.say(parse("live 5 2"), bind(portal="p"), describe("P", "p"), execute(10, "p"), SYNC)
    assert kinds(out) == "12TNDDsZ"
    assert backend.open_results == 1
    assert kinds(driven.say(execute(1, "p"), execute(10, "p"), SYNC)) == "DsDsZ"
    out = driven.say(execute(10, "p"), execute(10, "p"), SYNC)
    assert (kinds(out), tags(out)) == ("DsCZ", ["SELECT 0"])
    assert backend.open_results == 0


def test_without_a_row_limit_it_goes_on() -> None:
    driven, _ = logged_in()
    assert "".join(pieces(driven, parse("live 3 2"), bind(), execute(0), SYNC)) == "12NDDDCZ"
    assert driven.flushes == 3
