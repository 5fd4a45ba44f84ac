"""inet, which the catalog shows of clients: an address, or a net with the bits of its mask."""

from __future__ import annotations

import ipaddress
from typing import Any

from mvserver.types import strings
from mvserver.types.column import BINARY_FORMAT, Encoder, per_cell

_FAMILIES = {4: 2, 6: 3}  # PostgreSQL's numbers of IPv4 and IPv6


def encoder(form: int) -> Encoder:
    """For columns of texts."""
    return per_cell(_binary) if form == BINARY_FORMAT else strings.PLAIN


def _binary(value: Any) -> bytes:
    """Family, bits of the mask, whether it is a cidr, size of the address, the address: ``inet_send``."""
    found = ipaddress.ip_interface(str(value))
    address = found.ip.packed
    return bytes((_FAMILIES[found.version], found.network.prefixlen, 0, len(address))) + address
