"""Guessing passwords is made slow: after some failures an address is not heard for the rest of a window.

Failures count for a role and an address together, so that a program with an old password shuts out nobody but itself,
and for the address alone, so that one password is not tried on every role. The addresses of an IPv6 network count as
one, since whoever has one has all of them.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from mvserver import limits, sqlstates
from mvserver.errors import SqlError, fatal

_Key = tuple[str, str | None]  # address, and role or None for all of them

_IPV6_PREFIX = 64


class Throttle:
    """Safe from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._attempts: OrderedDict[_Key, list[float]] = OrderedDict()

    def check(self, address: str, role: str) -> None:
        """28000 FATAL for who has failed too often."""
        now = self._clock()
        with self._lock:
            self._refuse(_keys(address, role), now)

    def charge(self, address: str, role: str) -> None:
        """An attempt begins, and counts as failed until ``forgive``: so many at the same time are no way around."""
        now = self._clock()
        keys = _keys(address, role)
        with self._lock:
            self._refuse(keys, now)
            for key in keys:
                self._attempts.setdefault(key, []).append(now)
                self._attempts.move_to_end(key)
            while len(self._attempts) > limits.AUTHENTICATION_FAILURES_REMEMBERED_MAX:
                self._attempts.popitem(last=False)

    def forgive(self, address: str, role: str) -> None:
        """The attempt was a success: the role begins anew, the address has one failure less."""
        of_role, of_address = _keys(address, role)
        with self._lock:
            self._attempts.pop(of_role, None)
            others = self._attempts.get(of_address)
            if others:
                others.pop()

    def _refuse(self, keys: tuple[_Key, _Key], now: float) -> None:
        for key, most in zip(
            keys,
            (limits.AUTHENTICATION_FAILURES_MAX, limits.AUTHENTICATION_FAILURES_OF_ADDRESS_MAX),
            strict=True,
        ):
            recent = [at for at in self._attempts.get(key, ()) if now - at < limits.AUTHENTICATION_FAILURE_WINDOW_S]
            if recent:
                self._attempts[key] = recent
            else:
                self._attempts.pop(key, None)
            if len(recent) >= most:
                raise _too_many(limits.AUTHENTICATION_FAILURE_WINDOW_S - (now - recent[0]))


def _too_many(seconds: float) -> SqlError:
    return fatal(
        sqlstates.INVALID_AUTHORIZATION_SPECIFICATION,
        "too many failed authentication attempts",
        hint=f"Try again in {max(1, round(seconds))} s.",
    )


def _keys(address: str, role: str) -> tuple[_Key, _Key]:
    place = _network(address)
    return (place, role), (place, None)


def _network(address: str) -> str:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _IPV6_PREFIX), strict=False))
