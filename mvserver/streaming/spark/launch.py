"""The launch of Spark's JVM: its folder, its command, its process. It comes up while others do something else."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mvserver.errors import SqlError
from mvserver.spark_jvm import JvmStartError, LaunchedJvm
from mvserver.streaming.spark.jvm_folder import make_jvm_folder, remove_jvm_folder
from mvserver.streaming.spark.options import SparkOptions, jvm_settings

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Launched:
    """A JVM on its way, and the folder of its temporary files."""

    jvm: LaunchedJvm
    folder: Path


def launch(options: SparkOptions) -> Launched:
    """Raises JvmStartError, or SqlError where there is no Java for it."""
    folder = make_jvm_folder(options.work_directory)
    try:
        return Launched(LaunchedJvm(options.command(jvm_settings(options, folder / "tmp"))), folder)
    except BaseException:
        remove_jvm_folder(folder)
        raise


class LaunchedAhead:
    """Launches the first JVM before anybody asks for it; those that follow when they are asked for."""

    def __init__(self, options: SparkOptions) -> None:
        self._first: Launched | None = None
        try:
            self._first = launch(options)
        except (JvmStartError, SqlError, OSError) as error:  # whoever asks learns it from the launch that follows
            _log.debug("Spark's JVM is not launched ahead: %s", error)

    def __call__(self, options: SparkOptions) -> Launched:
        first, self._first = self._first, None
        if first is not None:
            if first.jvm.process.poll() is None:
                return first
            _end(first)
        return launch(options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Where nobody has asked for it, it goes."""
        first, self._first = self._first, None
        if first is not None:
            _end(first)


def _end(launched: Launched) -> None:
    launched.jvm.kill()
    remove_jvm_folder(launched.folder)
