"""The views that are measured, as statements; the first view of every set is the one that is polled."""

from __future__ import annotations

import itertools
from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    name: str
    keys: tuple[str, ...]
    measures: tuple[str, ...]  # beside count(*) AS n
    where: str | None = None

    def create(self, stream: str) -> str:
        columns = ", ".join([*self.keys, "count(*) AS n", *self.measures])
        where = f" WHERE {self.where}" if self.where else ""
        return (
            f"CREATE MATERIALIZED VIEW {self.name} AS SELECT {columns} FROM {stream}{where} "
            f"GROUP BY {', '.join(self.keys)};"
        )


def clicks_views(number: int) -> list[View]:
    """The peers' three views, and with ten of them two with millions of rows."""
    views = [
        View("by_url", ("url",), ()),
        View("by_url_device", ("url", "device_id"), ()),
        View("by_user_url_device", ("user_id", "url", "device_id"), ()),
        View("by_user", ("user_id",), ("min(event_ts) AS first_at", "max(event_ts) AS last_at")),
        View("by_device", ("device_id",), ("sum(user_id) AS users_sum", "avg(user_id) AS users_avg")),
        View("by_ip", ("ip",), ("max(event_ts) AS last_at",)),
        View("by_user_device", ("user_id", "device_id"), ("max(event_ts) AS last_at",)),
        View("by_user_url", ("user_id", "url"), ("min(event_ts) AS first_at",)),
        View("by_ip_device", ("ip", "device_id"), ("avg(user_id) AS users_avg",)),
        View("by_url_device_users", ("url", "device_id"), ("min(user_id) AS user_min", "max(user_id) AS user_max")),
    ]
    return views[:number]


_KEY_COLUMNS = ("url", "device_id", "country", "campaign", "browser", "plan", "referrer", "user_id")
_MEASURES = (
    ("sum(amount) AS amount_sum",),
    ("avg(amount) AS amount_avg", "max(duration) AS duration_max"),
    ("min(amount) AS amount_min", "max(amount) AS amount_max"),
    ("sum(duration) AS duration_sum", "count(referrer) AS referred"),
    ("avg(duration) AS duration_avg",),
    ("sum(amount) AS amount_sum", "min(event_ts) AS first_at", "max(event_ts) AS last_at"),
    ("stddev(amount) AS amount_stddev",),
)
_FILTERS = (
    "amount > {n}",
    "duration < {n}",
    "country <> 'c{n}'",
    "device_id = 'd{d}' OR plan = 'p{d}'",
    "amount BETWEEN {n} AND 9000",
)


def wide_views(number: int) -> list[View]:
    """Up to 100 views over at least 30 key sets, no two equal; beyond the tenth, three of ten have a WHERE.

    The first ten have fewer than 100,000 keys in all; all hundred have more.
    """
    first = [
        View("w_url", ("url",), ()),
        View("w_url_device", ("url", "device_id"), ("sum(amount) AS amount_sum",)),
        View("w_user", ("user_id",), ("max(event_ts) AS last_at",)),
        View("w_country", ("country",), ("avg(amount) AS amount_avg",)),
        View("w_campaign_browser", ("campaign", "browser"), ("sum(duration) AS duration_sum",)),
        View("w_country_device", ("country", "device_id"), ("min(amount) AS amount_min", "max(amount) AS amount_max")),
        View("w_plan", ("plan",), ("sum(amount) AS amount_sum", "avg(duration) AS duration_avg")),
        View("w_referrer_campaign", ("referrer", "campaign"), ("count(url) AS urls",)),
        View("w_user_plan", ("user_id", "plan"), ("sum(amount) AS amount_sum",)),
        View("w_country_campaign", ("country", "campaign"), ("sum(amount) AS amount_sum",)),
    ]
    if number <= len(first):
        return first[:number]
    # pairs of user_id with a large column would have millions of keys; with device_id there are 100,000
    small = list(itertools.combinations(_KEY_COLUMNS[:-1], 2))
    key_sets: list[tuple[str, ...]] = [(column,) for column in _KEY_COLUMNS]
    key_sets += [*small, ("user_id", "device_id"), ("user_id", "plan")]
    made = list(first)
    for turn in itertools.count():
        keys = key_sets[turn % len(key_sets)]
        measures = _MEASURES[(turn + turn // len(key_sets)) % len(_MEASURES)]
        where = None
        if turn % 3 == 0:
            where = _FILTERS[turn // 3 % len(_FILTERS)].format(n=turn % 40 + 1, d=turn % 4)
        made.append(View(f"w_{turn:03d}", keys, measures, where))
        if len(made) == number:
            return made
    raise AssertionError("count() does not end")
