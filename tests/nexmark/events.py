"""Persons, auctions and bids of an auction site: the events of the Nexmark benchmark, from a seed.

Written from the benchmark's description: of 50 events one is a person, three are auctions and 46 are bids; half of the
bids go to the hot auction of the moment, most auctions are a hot seller's and most bids a hot bidder's; what is bid on
is an auction that may still be open. Events are sent nearly in the order of their times: how far from it is a setting.
"""

from __future__ import annotations

import datetime as dt
import heapq
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

START = dt.datetime(2024, 5, 1, 12)
FIRST_ID = 1000
FIRST_CATEGORY = 10
CATEGORIES = 5

COLUMNS = {
    "person": "id BIGINT, name VARCHAR, email_address VARCHAR, credit_card VARCHAR, city VARCHAR, state VARCHAR, "
    "date_time TIMESTAMP, extra VARCHAR",
    "auction": "id BIGINT, item_name VARCHAR, description VARCHAR, initial_bid BIGINT, reserve BIGINT, "
    "date_time TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra VARCHAR",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, date_time TIMESTAMP, "
    "extra VARCHAR",
}
LONGEST_AUCTION = dt.timedelta(minutes=1)  # the joins of auctions with bids look so far

_ROUND = ("person", *["auction"] * 3, *["bid"] * 46)
_HOT_AUCTIONS = _HOT_PEOPLE = 100  # one of so many is hot
_OPEN_AUCTIONS = 100
_ACTIVE_PEOPLE = 1000
_FIRST_NAMES = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "Jana", "Kai", "Lea")
_LAST_NAMES = ("Abel", "Bauer", "Conti", "Duval", "Evans", "Fuchs", "Greco", "Holm", "Ito", "Jung")
_CITIES = {
    "Boise": "ID", "Portland": "OR", "Bend": "OR", "San Francisco": "CA", "Los Angeles": "CA",
    "Phoenix": "AZ", "Seattle": "WA", "Kent": "WA", "Cheyenne": "WY",
}  # fmt: skip
_CHANNELS = ("search", "feed", "mail", "partner")
_LETTERS = "abcdefghijklmnopqrstuvwxyz     "
_PADDING = "".join(random.Random(0).choices(_LETTERS, k=4096))


@dataclass(frozen=True)
class Event:
    """``kind`` is a key of COLUMNS, ``row`` has a value for each of its columns; ``key`` is the record's. It is sent at
    ``sent``, which never goes back."""

    kind: str
    key: int
    row: tuple[Any, ...]
    sent: dt.datetime

    def value(self) -> bytes:
        fields = zip(NAMES[self.kind], self.row, strict=True)
        return _encode(dict(fields)).encode()


NAMES = {kind: [column.split()[0] for column in columns.split(", ")] for kind, columns in COLUMNS.items()}


@dataclass(frozen=True)
class Site:
    """``between`` is the time from one event to the next; an event is sent at most ``disorder`` events too late."""

    seed: int
    between: dt.timedelta
    disorder: int = 100

    def events(self, count: int) -> Iterator[Event]:
        """The first ``count`` events, in the order in which they are sent."""
        chance = random.Random(self.seed)
        waiting: list[tuple[float, int, Event]] = []
        for number in range(count):
            heapq.heappush(waiting, (number + chance.uniform(0, self.disorder), number, self._event(chance, number)))
            while waiting and waiting[0][0] <= number:
                yield self._sent(*heapq.heappop(waiting))
        while waiting:
            yield self._sent(*heapq.heappop(waiting))

    def _sent(self, place: float, number: int, event: Event) -> Event:
        return Event(event.kind, event.key, event.row, START + place * self.between)

    def _event(self, chance: random.Random, number: int) -> Event:
        kind = _ROUND[number % len(_ROUND)]
        time = _milliseconds(START + number * self.between)
        people, auctions = _before(number)
        if kind == "person":
            key, row = FIRST_ID + people, self._person(chance, FIRST_ID + people, time)
        elif kind == "auction":
            key, row = FIRST_ID + auctions, self._auction(chance, FIRST_ID + auctions, people, time)
        else:
            row = self._bid(chance, people, auctions, time)
            key = row[0]
        return Event(kind, key, row, START)

    def _person(self, chance: random.Random, key: int, time: dt.datetime) -> tuple[Any, ...]:
        name = f"{chance.choice(_FIRST_NAMES)} {chance.choice(_LAST_NAMES)}"
        city = chance.choice(tuple(_CITIES))
        card = " ".join(f"{chance.randrange(10_000):04}" for _ in range(4))
        address = f"{name.replace(' ', '.').lower()}@example.com"
        return key, name, address, card, city, _CITIES[city], time, _extra(chance, 100)

    def _auction(self, chance: random.Random, key: int, people: int, time: dt.datetime) -> tuple[Any, ...]:
        """Open until about so many others have come as may be open at a time."""
        usual = self.between * (_OPEN_AUCTIONS * len(_ROUND) / _ROUND.count("auction"))
        expires = time + min(chance.random() * 2 * usual, LONGEST_AUCTION) + dt.timedelta(milliseconds=1)
        first = _price(chance)
        return (
            key, f"item {key}", _extra(chance, 60), first, first + _price(chance), time,
            min(_milliseconds(expires), time + LONGEST_AUCTION), _person_of(chance, people, hot_share=0.75, hot=0),
            FIRST_CATEGORY + chance.randrange(CATEGORIES), _extra(chance, 200),
        )  # fmt: skip

    def _bid(self, chance: random.Random, people: int, auctions: int, time: dt.datetime) -> tuple[Any, ...]:
        last = max(auctions - 1, 0)
        if chance.random() < 0.5:
            auction = last // _HOT_AUCTIONS * _HOT_AUCTIONS
        else:
            auction = chance.randint(max(0, last - _OPEN_AUCTIONS), last)
        channel = chance.choice(_CHANNELS)
        return (
            FIRST_ID + auction, _person_of(chance, people, hot_share=0.75, hot=1), _price(chance), channel,
            f"https://{channel}.example.com/item/{auction}", time, _extra(chance, 40),
        )  # fmt: skip


def _before(number: int) -> tuple[int, int]:
    """How many persons and auctions came before an event."""
    rounds, place = divmod(number, len(_ROUND))
    return rounds + min(place, 1), 3 * rounds + min(max(place - 1, 0), 3)


def _person_of(chance: random.Random, people: int, *, hot_share: float, hot: int) -> int:
    last = max(people - 1, 0)
    if chance.random() < hot_share:
        return FIRST_ID + min(last // _HOT_PEOPLE * _HOT_PEOPLE + hot, last)
    return FIRST_ID + chance.randint(max(0, last - _ACTIVE_PEOPLE), last)


def _price(chance: random.Random) -> int:
    """Most are low, some a million times as high."""
    return round(10 ** (chance.random() * 6) * 100)


def _extra(chance: random.Random, usual: int) -> str:
    """Text that makes a row as large as rows are."""
    length = int(usual * (0.8 + 0.4 * chance.random()))
    at = chance.randrange(len(_PADDING) - length)
    return _PADDING[at : at + length]


def _milliseconds(time: dt.datetime) -> dt.datetime:
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def _text(time: Any) -> str:
    return str(time.isoformat(" ", "milliseconds"))


_encode = json.JSONEncoder(separators=(",", ":"), default=_text).encode
