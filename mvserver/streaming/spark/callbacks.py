"""The port at which Spark's JVM calls the functions of batches.

py4j's own server ends at the first connection that it cannot take, as where the process has as many files and sockets
open as it may, and with it the batches of all queries. It also fails where its descriptor's number is above 1,023. This
one waits, and goes on. It reaches into py4j's classes, whose version is pinned exactly.
"""

from __future__ import annotations

import logging
import selectors
import threading
import time
from typing import Any

from py4j.clientserver import ClientServer, PythonServer
from pyspark.java_gateway import ensure_callback_server_started

_log = logging.getLogger(__name__)

_BACKLOG = 128
_LOOK_S = 1.0  # how soon a shutdown is seen where closing the socket does not end the wait
_AGAIN_S = 0.2  # after a connection that could not be taken
_starting = threading.Lock()


def serve_callbacks(gateway: Any) -> None:
    """From now on the JVM of the gateway can call; nothing where it could before."""
    with _starting:
        if isinstance(gateway, ClientServer) and gateway._callback_server is None:
            gateway._create_callback_server = lambda _: CallbackServer(
                gateway._gateway_client, gateway.java_parameters, gateway.python_parameters, gateway.gateway_property
            )
        try:
            ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        except BaseException:  # py4j keeps a server that was not begun, and would not begin another one
            half_made, gateway._callback_server = getattr(gateway, "_callback_server", None), None
            if (listener := getattr(half_made, "server_socket", None)) is not None:
                listener.close()
            raise


class CallbackServer(PythonServer):  # type: ignore[misc]  # py4j has no types
    """``run`` is the thread that takes connections; each has a thread of its own."""

    def start(self) -> None:
        """Returns when the JVM can connect."""
        self._listening = threading.Event()
        super().start()
        self._listening.wait()

    def run(self) -> None:
        listener = self.server_socket
        try:
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        finally:
            self._listening.set()
        refused = False
        with selectors.PollSelector() as selector:  # it takes no descriptor of its own, and any number
            selector.register(listener, selectors.EVENT_READ)
            while not self.is_shutdown:
                try:
                    if selector.select(_LOOK_S):
                        self._take(listener)
                        refused = False
                except BlockingIOError:  # whoever wanted to connect has gone again
                    continue
                except (OSError, RuntimeError) as error:  # no descriptor, or no thread, is left
                    if self.is_shutdown:
                        return
                    if not refused:
                        _log.warning("Spark cannot call for its batches at the moment: %s", error)
                    refused = True
                    time.sleep(_AGAIN_S)

    def _take(self, listener: Any) -> None:
        taken, _ = listener.accept()
        try:
            taken.setblocking(True)
            connection = self._create_connection(taken, taken.makefile("rb"))
            with self.lock:
                if self.is_shutdown:
                    taken.close()
                    return
                self.connections.add(connection)
                connection.start()
        except BaseException:
            taken.close()
            raise
