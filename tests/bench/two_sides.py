"""Two sources with the same load, and the age of the left one's markers in a view of both."""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.bench import Running
from tests.bench.load import LiveLoad, start_together
from tests.bench.markers import ages_ms, watch_markers
from tests.bench.workload import Workload


@dataclass(frozen=True)
class Sides:
    running: Running  # its own source is the left one
    right_topic: str
    right: Workload
    rate: int  # a side

    def ages_ms(self, view: str, seconds: float, first_marker: int) -> list[float]:
        """From when both sides' marker of a number has been sent: the n-th of each are sent together."""
        bootstrap, own = self.running.bootstrap, self.running
        left = LiveLoad(bootstrap, own.topic, own.workload, self.rate, first_marker=first_marker)
        right = LiveLoad(bootstrap, self.right_topic, self.right, self.rate, first_marker=first_marker)
        with own.connect() as client:
            start_together([left, right])
            seen = watch_markers(client, view, left, seconds)
        partners = {marker.number: marker.stamp for marker in right.stop()}
        sent = {marker.number: marker.stamp for marker in left.stop()}
        return ages_ms({number: max(stamp, partners.get(number, stamp)) for number, stamp in sent.items()}, seen)
