"""The addresses that a front end listens on."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from mvserver import sqlstates
from mvserver.errors import SqlError


async def addresses_of(host: str, port: int) -> list[str]:
    """Those of a name, each once; F0000 for a name that has none."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR, f'could not translate host name "{host}" to address', detail=str(error)
        ) from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_loopback(address: str) -> bool:
    """Of an address as the system gives it, or as a client writes it; False for what is none."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def port_of(listener: asyncio.Server | None, asked: int) -> int:
    """The port that is listened on; the one that was asked for as long as none is."""
    if listener is not None and listener.sockets:
        return int(listener.sockets[0].getsockname()[1])
    return asked
