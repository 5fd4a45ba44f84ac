"""The archive of Spark's classes that the servers of tests start with, made once beside the user's other caches."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from mvserver.demo.jars import JarsError, default_ivy_home, resolve
from mvserver.spark_java import jvm_command
from mvserver.streaming.spark.class_archive import ClassArchives
from mvserver.streaming.spark.options import SparkOptions, class_settings
from spark_sinks.kafka.jars import CONNECTOR
from spark_sinks.kinds import KINDS, class_path
from tests.services.installed import cache

VARIABLE = "MVSERVER_SPARK_CLASS_ARCHIVES"
_MODULE = (
    '<ivy-module version="2.0"><info organisation="mvserver" module="connector"/>'
    '<configurations><conf name="default"/></configurations><dependencies>{}</dependencies></ivy-module>'
)
_DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" transitive="false" conf="default->master"/>'


def prepared() -> str:
    """The folder; it has the archive for the connectors that this machine has fetched by now."""
    folder = cache() / "spark-classes"
    folder.mkdir(parents=True, exist_ok=True)
    archives = ClassArchives(folder)
    if archives.lacks(_settings()):
        with (folder / "preparing").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            _fetch_connector()
            archives.make(_settings(), jvm_command, lambda: False)
    return str(folder)


def _fetch_connector() -> None:
    """Servers fetch it at its first use. Then the archive of before would be made for nothing, since theirs have it."""
    if not CONNECTOR.missing(None):
        return
    listed = "".join(_DEPENDENCY.format(jar.group, jar.artifact, jar.version) for jar in CONNECTOR.jars)
    with contextlib.suppress(JarsError):  # those who need it say what they miss
        resolve(_MODULE.format(listed), tuple(jar.coordinates for jar in CONNECTOR.jars), default_ivy_home())


def settings() -> dict[str, str]:
    """For a Spark that a test starts without a server."""
    return dict(ClassArchives(Path(prepared())).used(_settings()))


def _settings() -> dict[str, str]:
    return class_settings(SparkOptions(driver_memory="1g", class_path=jars))


def jars() -> Sequence[Path]:
    return class_path(None, KINDS)


def use() -> None:
    """By all servers that this process starts from now on."""
    os.environ[VARIABLE] = prepared()
