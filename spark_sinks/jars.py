"""Jars that Spark needs for a kind of stores, brought into a running session at the first use of such a store.

Exact coordinates, each without its dependencies: those are in PySpark's own folder of jars, and asking for them would
bring other versions beside them. Spark's own Ivy does the fetching, so that its settings (mirrors, caches) apply and
executors get the jars too. A machine without network is given the files in a folder.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Jar:
    """One file of a connector, by its coordinates. ADD JAR cannot fetch one with a classifier."""

    group: str
    artifact: str
    version: str
    classifier: str | None = None

    @property
    def file_name(self) -> str:
        classifier = "" if self.classifier is None else f"-{self.classifier}"
        return f"{self.artifact}-{self.version}{classifier}.jar"

    @property
    def coordinates(self) -> str:
        classifier = "" if self.classifier is None else f":{self.classifier}"
        return f"{self.group}:{self.artifact}:{self.version}{classifier}"

    @property
    def ivy_uri(self) -> str:
        return f"ivy://{self.coordinates}?transitive=false"

    def in_directory(self, directory: Path) -> Path | None:
        """Under its own name, or under the name that Ivy gives its copies."""
        for name in (self.file_name, f"{self.group}_{self.file_name}"):
            if (directory / name).is_file():
                return directory / name
        return None

    def in_ivy_cache(self, ivy_home: Path) -> bool:
        return self.ivy_path(ivy_home).is_file()

    def ivy_path(self, ivy_home: Path) -> Path:
        return ivy_home / "cache" / self.group / self.artifact / "jars" / self.file_name


_lock = threading.Lock()
_loaders: weakref.WeakKeyDictionary[SparkSession, tuple[frozenset[Connector], Any]] = weakref.WeakKeyDictionary()


def default_ivy_home() -> Path:
    return Path.home() / ".ivy2.5.2"


@dataclass(frozen=True)
class Connector:
    """All jars of a data source. ``name`` is what a message calls it."""

    name: str
    jars: tuple[Jar, ...]
    marks: tuple[str, ...] = ()  # a file of each jar that has to be on the class path for some ways of logging in

    @property
    def fetched(self) -> bool:
        """Whether Spark can fetch it, or somebody has to put it into the folder."""
        return all(jar.classifier is None for jar in self.jars)

    def missing(self, jar_directory: Path | None, *, ivy_home: Path | None = None) -> tuple[str, ...]:
        """The files that are neither in the folder nor in Spark's Ivy cache and would have to be fetched."""
        home = ivy_home or default_ivy_home()
        return tuple(
            jar.file_name
            for jar in self.jars
            if not (jar_directory is not None and jar.in_directory(jar_directory)) and not jar.in_ivy_cache(home)
        )

    def files(self, jar_directory: Path | None, *, ivy_home: Path | None = None) -> tuple[Path, ...]:
        """Of all jars, where all are on this machine already; else none."""
        if self.missing(jar_directory, ivy_home=ivy_home):
            return ()
        home = ivy_home or default_ivy_home()
        folders = [None if jar_directory is None else jar.in_directory(jar_directory) for jar in self.jars]
        return tuple(path or jar.ivy_path(home) for path, jar in zip(folders, self.jars, strict=True))

    def require_on_class_path(self, spark: SparkSession) -> None:
        """58000 where Spark's driver and its tasks, in one JVM, would each have classes of their own: Java's security
        providers are the JVM's, and those of one class loader do not know the objects of another."""
        context = spark.sparkContext
        if not str(context.master).startswith("local"):
            return
        loader = context._jvm.java.lang.ClassLoader.getSystemClassLoader()  # type: ignore[union-attr]
        if any(loader.getResource(name) is None for name in self.marks):
            raise SqlError(
                sqlstates.SYSTEM_ERROR,
                f"{self.name} was added while Spark was running",
                detail="This way of logging in needs its jars from Spark's start on.",
                hint="Restart the server. The jars are there now.",
            )

    def add_to(self, spark: SparkSession, jar_directory: Path | None) -> None:
        """Once per session; from this machine when all files are there, else by Ivy. 58000 when they cannot be had.

        Spark looks a data source up by the class loader of the calling thread, and ADD JAR changes that of its own
        thread alone: so every thread that is about to read by the connector comes here.
        """
        thread = spark.sparkContext._jvm.java.lang.Thread.currentThread()  # type: ignore[union-attr]
        with _lock:
            added, loader = _loaders.get(spark, (frozenset(), None))
            if loader is not None:
                thread.setContextClassLoader(loader)
            if self in added:
                return
            files = self.files(jar_directory)
            if not files and not self.fetched:
                raise self.unavailable(jar_directory)
            # Ivy would look each up again that it has fetched before: half a second at each start.
            sources = [f"'{_escaped(path)}'" for path in files] or [jar.ivy_uri for jar in self.jars]
            for source in sources:
                try:
                    spark.sql(f"ADD JAR {source}")
                except Exception as error:
                    raise self.unavailable(jar_directory, cause=_first_line(error)) from error
            _loaders[spark] = (added | {self}, thread.getContextClassLoader())

    def unavailable(self, jar_directory: Path | None, *, cause: str | None = None) -> SqlError:
        """Which files are missing and where to put them."""
        missing = self.missing(jar_directory) or tuple(jar.file_name for jar in self.jars)
        setting = "a folder that the setting jar_directory names"
        where = f"folder {jar_directory}" if jar_directory is not None else setting
        return SqlError(
            sqlstates.SYSTEM_ERROR,
            f"{self.name} is not available",
            detail=f"Missing: {', '.join(missing)}." + (f" The attempt to fetch them said: {cause}" if cause else ""),
            hint=f"They are fetched at the first use, which needs network once. Without network, put all "
            f"{len(self.jars)} files ({', '.join(jar.coordinates for jar in self.jars)}) into {where}."
            if self.fetched
            else f"Put {', '.join(jar.coordinates for jar in self.jars)} into {where}.",
        )


LENSES_FUNCTIONS = Connector(
    "the jar of Lenses's interfaces of functions", (Jar("io.lenses", "lenses-sql-udf", "4.0.0"),)
)
"""What functions of users are called by whose jars were written for Lenses. It is no kind of stores'."""


def _escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace("'", "\\'")


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in words_of(error).splitlines() if line.strip()), type(error).__name__)
