"""The records of the story, seeded, and what each result must be, computed in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from mvserver.demo.check import Row

USERS, VIEWS_A_CHAPTER, MOVED, UPGRADED, LEFT = 200, 3_000, 40, 30, 20
REGIONS = tuple(f"Region_{number}" for number in range(1, 10))
PAGES = ("./home", "./products", "./search", "./cart", "./offers")
PLANS = ("free", "team", "company")
_BEGAN_MS, _HOUR_MS = 1_700_000_000_000, 3_600_000
Record = dict[str, Any]


@dataclass(frozen=True)
class Chapter:
    """What happens at once: users by Kinesis, then accounts by PostgreSQL, then page views by Kafka."""

    users: tuple[Record, ...]
    upserted: tuple[tuple[str, str], ...]  # accounts: user and plan
    deleted: tuple[str, ...]
    views: tuple[Record, ...]


@dataclass
class Story:
    """Two chapters, one hour each. A user's record is older than the views of its chapter."""

    seed: int
    homes: dict[str, list[tuple[int, str]]] = field(default_factory=dict)  # of a user: since when, and which region
    plans: dict[str, str] = field(default_factory=dict)
    views: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def first(self) -> Chapter:
        names = [f"User_{number}" for number in range(USERS)]
        plans = [(name, self._random.choice(PLANS)) for name in names if self._random.random() < 0.8]
        return self._tell(0, names, plans, [])

    def second(self) -> Chapter:
        """Some move, some have another plan, some leave; the others look at pages as before."""
        moved = self._random.sample(sorted(self.homes), MOVED)
        chosen = self._random.sample(sorted(self.plans), UPGRADED + LEFT)
        return self._tell(1, moved, [(name, "company") for name in chosen[:UPGRADED]], chosen[UPGRADED:])

    def _tell(self, hour: int, homes: list[str], plans: list[tuple[str, str]], left: list[str]) -> Chapter:
        since = _BEGAN_MS + hour * _HOUR_MS
        users = []
        for name in homes:
            region = self._random.choice(REGIONS)
            self.homes.setdefault(name, []).append((since, region))
            users.append({"registertime": since, "userid": name, "regionid": region})
        self.plans.update(plans)
        for name in left:
            del self.plans[name]
        views = [
            {
                "viewtime": since + _HOUR_MS // 2 + number,
                "userid": f"User_{self._random.randrange(USERS)}",
                "pageid": self._random.choice(PAGES),
            }
            for number in range(VIEWS_A_CHAPTER)
        ]
        self.views += views
        return Chapter(tuple(users), tuple(plans), tuple(left), tuple(views))

    def enriched(self) -> dict[Row, Row]:
        """Each view with the region that its user had at its time."""
        return {
            (view["viewtime"], view["userid"], view["pageid"]): (self._home(view["userid"], view["viewtime"]),)
            for view in self.views
        }

    def users(self) -> dict[Row, Row]:
        return {(name,): (homes[-1][1],) for name, homes in self.homes.items()}

    def customers(self) -> dict[Row, Row]:
        """Of each user with an account and views: the region now, the plan, and how many views."""
        counted = Counter(view["userid"] for view in self.views)
        return {
            (name,): (self.homes[name][-1][1], plan, counted[name])
            for name, plan in self.plans.items()
            if counted[name]
        }

    def by_region(self) -> dict[Row, Row]:
        """How often each page was seen from each region."""
        counted = Counter((region, key[2]) for key, (region,) in self.enriched().items())
        return {key: (number,) for key, number in counted.items()}

    def _home(self, user: str, at: int) -> str:
        return next(region for since, region in reversed(self.homes[user]) if since <= at)
