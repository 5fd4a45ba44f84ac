"""Clicks that look like a shop's, seeded, and the count of them that the views must come to.

The statements are those of the tutorial that the demo follows: three views over one stream of clicks.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from mvserver.demo.check import Comparison, Row, compare

STREAM = """\
CREATE STREAM clicks (event_time BIGINT, device_id VARCHAR, url VARCHAR, ip VARCHAR, userid VARCHAR)
  WITH ('store'='{store}', 'topic'='clicks', 'value.format'='json', 'timestamp'='event_time');"""
VIEWS = (
    "CREATE MATERIALIZED VIEW url_visit_count AS SELECT url, count(*) AS url_visit_count FROM clicks GROUP BY url;",
    "CREATE MATERIALIZED VIEW url_device_visit_count AS SELECT url, device_id, count(*) AS visits FROM clicks "
    "GROUP BY url, device_id;",
    "CREATE MATERIALIZED VIEW user_url_device_visit_count AS SELECT userid, url, device_id, count(*) AS visits "
    "FROM clicks GROUP BY userid, url, device_id;",
)
HOME_VISITS = "SELECT * FROM url_visit_count WHERE url = './home';"
MOST_VISITED = "SELECT url FROM url_visit_count ORDER BY url_visit_count DESC LIMIT 1;"
USER_9_ON_MOBILE = (
    "SELECT url, visits FROM user_url_device_visit_count WHERE userid = 'User_9' AND device_id = 'mobile';"
)
ROWS = (
    ("url_visit_count", "SELECT url, url_visit_count FROM url_visit_count;", 1),
    ("url_device_visit_count", "SELECT url, device_id, visits FROM url_device_visit_count;", 2),
    ("user_url_device_visit_count", "SELECT userid, url, device_id, visits FROM user_url_device_visit_count;", 3),
)
UNDECODABLE = b'{"event_time": "yesterday", "device_id": "mobile", "url": "./home", "ip": "10.0.0.9", "userid": "User_'

_URLS = ("./home", "./products", "./search", "./cart", "./checkout", "./offers", "./account", "./help", "./about")
_URL_WEIGHTS = (30, 20, 14, 10, 6, 8, 5, 4, 3)
_DEVICES = ("mobile", "desktop", "tablet")
_DEVICE_WEIGHTS = (55, 35, 10)
_USERS = 40


@dataclass(frozen=True)
class Click:
    event_time: int  # milliseconds since the epoch
    device_id: str
    url: str
    ip: str
    userid: str

    def line(self) -> bytes:
        return json.dumps(self.__dict__, separators=(",", ":")).encode() + b"\n"


class ClickGenerator:
    """The same clicks from the same seed, but for the times, which are the caller's."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def clicks(self, event_times: Sequence[int]) -> list[Click]:
        number = len(event_times)
        urls = self._random.choices(_URLS, _URL_WEIGHTS, k=number)
        devices = self._random.choices(_DEVICES, _DEVICE_WEIGHTS, k=number)
        users = [self._random.randrange(1, _USERS + 1) for _ in range(number)]
        return [
            Click(time, device, url, f"10.0.{user // 256}.{user % 256}", f"User_{user}")
            for time, device, url, user in zip(event_times, devices, urls, users, strict=True)
        ]


@dataclass
class Truth:
    """What was fed, counted one click at a time: what each view must hold."""

    visits: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # by user, url, device

    def add(self, clicks: Sequence[Click]) -> None:
        self.visits.update((click.userid, click.url, click.device_id) for click in clicks)

    @property
    def total(self) -> int:
        return self.visits.total()

    def rows(self) -> tuple[dict[Row, Row], ...]:
        """Per view of ROWS, in that order: keys to values."""
        by_url: Counter[Row] = Counter()
        by_url_device: Counter[Row] = Counter()
        by_user: Counter[Row] = Counter()
        for (user, url, device), visits in self.visits.items():
            by_url[(url,)] += visits
            by_url_device[(url, device)] += visits
            by_user[(user, url, device)] += visits
        return tuple(
            {key: (visits,) for key, visits in counter.items()} for counter in (by_url, by_url_device, by_user)
        )

    def compare(self, found: Sequence[Sequence[Row]]) -> list[Comparison]:
        """``found`` has the rows of each view of ROWS, in that order."""
        return [
            compare(name, expected, rows, keys)
            for (name, _, keys), expected, rows in zip(ROWS, self.rows(), found, strict=True)
        ]
