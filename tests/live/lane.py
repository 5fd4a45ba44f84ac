"""What the tests ask of a lane."""

from __future__ import annotations

from tests.faults.live import LiveServer

WITHIN_S = 180.0


def lane(server: LiveServer, topic: str) -> tuple[str, str | None]:
    """The lane of a topic's pipeline, and why it is not live."""
    found = server.query(f"SELECT lane, lane_reason FROM mv_catalog.pipelines WHERE entity = '{topic}'")
    return found[0] if found else ("", None)


def generation(server: LiveServer, topic: str) -> int:
    return int(server.query(f"SELECT generation FROM mv_catalog.pipelines WHERE entity = '{topic}'")[0][0])


class Live(int):
    """The number of a live generation, and how much the server's log had told when it was seen."""

    told = 0


def wait_live(server: LiveServer, topic: str, after: int = 0) -> Live:
    """Until the topic is read live, by a generation behind ``after``."""
    told = 0

    def is_live() -> bool:
        nonlocal told
        told = len(server.log())  # before the look: what ends the lane behind it is told later
        return lane(server, topic)[0] == "live" and generation(server, topic) > after

    try:
        server.wait_for(is_live, WITHIN_S, "the lane is not live")
    except AssertionError as error:
        raise AssertionError(f"the lane is {lane(server, topic)}") from error
    live = Live(generation(server, topic))
    live.told = told
    return live


_OF_THE_MACHINE = ("it fell behind", "no record came for")


def was_left(server: LiveServer, topic: str, since: Live) -> list[str]:
    """Why the live lane was left since this generation, besides that the machine was too busy for it."""
    if generation(server, topic) == since:
        return []
    ((pipeline,),) = server.query(f"SELECT id FROM mv_catalog.pipelines WHERE entity = '{topic}'")
    words = f"pipeline {pipeline} leaves the live lane: "
    told = [line.partition(words)[2] for line in server.log()[since.told :].splitlines() if words in line]
    return [reason for reason in told if not reason.startswith(_OF_THE_MACHINE)] if told else ["it is not told"]
