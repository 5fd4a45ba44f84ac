"""A line to a service on loopback that can fall silent: what is sent over it comes to nobody, and nothing ends it."""

from __future__ import annotations

import contextlib
import socket
import threading


class Line:
    """Used as a context. ``port`` is its own."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._silent = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self.port = int(self._listening.getsockname()[1])

    def __enter__(self) -> Line:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        for each in (self._listening, *self._ends):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def silence(self) -> None:
        """From here on, and for good."""
        self._silent.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it was closed
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._ends += (near, far)
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(65536):
                if not self._silent.is_set():
                    target.sendall(content)
            if not self._silent.is_set():
                target.shutdown(socket.SHUT_WR)
