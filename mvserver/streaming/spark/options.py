"""What Spark is started with: the server's choice, the settings that only the start of its JVM can take, its master.

Nothing of PySpark is imported here, so that the JVM can be launched before the server's own modules are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mvserver.spark_jvm import submit_command
from mvserver.streaming.spark.class_archive import OPTIONS, ClassArchives

# A stop that meets a running callback parses a deep error text with a regular expression.
JAVA_OPTIONS = "-Xss8m -XX:+UseParallelGC"
_LOCAL = re.compile(r"local(\[(?P<count>\*|[0-9]+)(,[ ]*([0-9]+|\*))?\])?")
_CLASS_PATH = "spark.driver.extraClassPath"
_HOST, _BIND_ADDRESS = "spark.driver.host", "spark.driver.bindAddress"
LOOPBACK = "127.0.0.1"
_ENCRYPTION = ("spark.network.crypto.enabled", "spark.authenticate.enableSaslEncryption", "spark.ssl.rpc.enabled")
JAR_DIRECTORY = "spark.mvserver.jarDirectory"


@dataclass(frozen=True)
class SparkOptions:
    master: str = "local[*]"
    driver_memory: str = "2g"
    polling_delay_ms: int = 100
    work_directory: Path = Path("spark")
    extra: tuple[tuple[str, str], ...] = ()
    command: Callable[[Mapping[str, str]], Sequence[str]] = submit_command  # starts the JVM with these settings
    stores: tuple[tuple[str, str], ...] = ()  # what the kinds of stores need
    class_path: Callable[[], Sequence[Path]] = tuple  # jars that are there when the JVM starts
    live_slots: int = 0  # task slots besides those of batches
    jar_directory: Path | None = None  # where jars are looked for before the network is asked
    archives: ClassArchives | None = None  # of Spark's classes; None: they are read anew at each start

    @property
    def host(self) -> str:
        """The address of this machine by which executors reach it."""
        return dict(self.extra).get(_HOST, LOOPBACK)

    @property
    def bind_address(self) -> str:
        """The address at which is listened for executors."""
        return dict(self.extra).get(_BIND_ADDRESS, self.host)

    @property
    def is_remote(self) -> bool:
        """Whether tasks run in executors of their own, as on a cluster."""
        return local_slots(self.master) is None

    @property
    def encrypts(self) -> bool:
        """Whether what Spark sends to executors and hears of them is encrypted."""
        extra = dict(self.extra)
        return any(extra.get(key, "").strip().lower() == "true" for key in _ENCRYPTION)


def class_settings(options: SparkOptions) -> dict[str, str]:
    """What only the start of the JVM can take, without what differs from start to start."""
    settings = {OPTIONS: JAVA_OPTIONS, "spark.driver.memory": options.driver_memory, **dict(options.extra)}
    given = settings.get(_CLASS_PATH)
    jars = [*([given] if given else []), *map(str, options.class_path())]
    if jars:
        settings[_CLASS_PATH] = os.pathsep.join(jars)
    return settings


def jvm_settings(options: SparkOptions, folder: Path) -> dict[str, str]:
    """The same for one start. ``folder`` is where the JVM keeps its temporary files."""
    settings = class_settings(options)
    if options.archives is not None:
        settings = dict(options.archives.used(settings))
    return {**settings, OPTIONS: f'{settings[OPTIONS]} "-Djava.io.tmpdir={folder}"'}


def local_slots(master: str) -> int | None:
    """How many task slots a local master has for batches; None for a master elsewhere."""
    found = _LOCAL.fullmatch(master.strip())
    if found is None:
        return None
    count = found["count"]
    return 1 if count is None else (os.cpu_count() or 1) if count == "*" else int(count)


def master_of(options: SparkOptions) -> str:
    """With the slots of live lanes, which are threads that wait and no processors."""
    slots = local_slots(options.master)
    return options.master if slots is None or not options.live_slots else f"local[{slots + options.live_slots}]"
