"""How many files and sockets the process may have open at a time.

Many systems allow a program 1,024 by themselves, and far more where it asks. Each client takes one, and without any
left no batch can be committed.
"""

from __future__ import annotations

import logging
import resource

from mvserver import config, limits

_log = logging.getLogger(__name__)


def make_room(settings: config.ServerSettings) -> None:
    """Asks for as many as the settings may need; where the system allows far fewer, the log says so."""
    clients = settings.max_connections + limits.CONNECTIONS_REFUSED_MAX
    if settings.http_port is not None:
        clients += settings.http_max_connections
    wanted = clients + limits.DESCRIPTORS_BESIDE_CLIENTS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < clients + limits.DESCRIPTORS_BESIDE_CLIENTS_MIN:
        _log.warning(
            "the system allows %d open files and sockets (ulimit -n), and %d clients may come: raise it, or lower "
            "max_connections and http_max_connections",
            allowed, clients,
        )  # fmt: skip
