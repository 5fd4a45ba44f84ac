"""The start of the server: its folder is locked, Spark's JVM is launched, and only then are the server's modules read.

Reading them takes a second or two of one processor, and the JVM longer: so they come up beside each other.
"""

from __future__ import annotations

import fcntl
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mvserver import config, descriptors, first_password, masking, sqlstates
from mvserver.errors import SqlError
from mvserver.observability import set_up_logging
from mvserver.pgwire.tls import Tls
from mvserver.pgwire.tls import load as load_tls
from mvserver.private_files import keep_private, refusing_unusable
from mvserver.spark_choice import spark_options
from mvserver.streaming.spark.launch import LaunchedAhead
from spark_sinks.kinds import secret_keys


def run(settings: config.ServerSettings) -> int:
    """What :func:`mvserver.server.serve` returns."""
    masking.declare(secret_keys())
    tls = _tls(settings)
    set_up_logging(settings.log_level.upper())
    descriptors.make_room(settings)
    password = first_password.take()  # out of the environment, before a process is made that would inherit it
    with refusing_unusable(settings.data_dir):
        keep_private(settings.data_dir, settings.data_dir / "files")
    with _locked(settings.data_dir), LaunchedAhead(spark_options(settings)) as launch:
        gc.disable()  # what is imported stays: looking at it again and again is an eighth of the time
        try:
            from mvserver.server import serve
        finally:
            gc.enable()
        return serve(settings, password, tls, launch)


def _tls(settings: config.ServerSettings) -> Tls | None:
    if settings.tls == "off" or settings.tls_certificate is None or settings.tls_key is None:
        return None
    return load_tls(settings.tls_certificate, settings.tls_key, required=settings.tls == "required")


@contextmanager
def _locked(data_directory: Path) -> Iterator[None]:
    """Two servers on one data directory would undo each other's work."""
    with refusing_unusable(data_directory):
        data_directory.mkdir(parents=True, exist_ok=True)
        lock = (data_directory / "server.lock").open("a+")
    with lock as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SqlError(
                sqlstates.OBJECT_IN_USE,
                f"data directory {data_directory} is in use by another server",
                hint="Stop the other server, or give this one another --data-dir.",
            ) from None
        yield
