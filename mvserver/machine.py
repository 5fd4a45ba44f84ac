"""The things that the server needs of this machine: Java, Python packages, jars, a folder that it may write."""

from __future__ import annotations

import importlib.metadata
import os
import re
from dataclasses import dataclass
from pathlib import Path

from mvserver.config import ServerSettings
from mvserver.java import NoJavaError, find_java
from spark_sinks.jars import LENSES_FUNCTIONS, Jar, default_ivy_home
from spark_sinks.kinds import KINDS

_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Finding:
    """``optional``: the server runs without it, though not everything in it."""

    good: bool
    what: str
    advice: str = ""
    optional: bool = False


def examine(settings: ServerSettings) -> list[Finding]:
    return [java(), *packages(), data_folder(settings.data_dir), *jars(settings.jar_dir)]


def java() -> Finding:
    try:
        return Finding(True, str(find_java()))
    except NoJavaError as error:
        return Finding(False, "Java", str(error))


def packages() -> list[Finding]:
    """What the package says it requires, extras apart; exact versions are pip's to check."""
    try:
        required = importlib.metadata.requires("mvserver") or []
    except importlib.metadata.PackageNotFoundError:
        return [Finding(False, "Python package mvserver", "Install it: pip install -e . in the project's folder.")]
    findings = []
    for requirement in required:
        match = _REQUIREMENT.match(requirement)
        if match is None or "extra ==" in requirement or ("sys_platform" in requirement and os.name == "nt"):
            continue
        try:
            found = importlib.metadata.version(match.group())
            findings.append(Finding(True, f"Python package {match.group()} {found}"))
        except importlib.metadata.PackageNotFoundError:
            advice = f"Install it: pip install '{requirement.partition(';')[0].strip()}'"
            findings.append(Finding(False, f"Python package {match.group()}", advice))
    return findings


def data_folder(folder: Path) -> Finding:
    """It, or the nearest folder above it that is there, must be writable."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return Finding(True, f"data folder {folder}" + ("" if there == folder else " (will be made)"))
    return Finding(False, f"data folder {folder}", f"The server may not write to {there}; name another by --data-dir.")


def jars(folder: Path, ivy_home: Path | None = None) -> list[Finding]:
    """Each needed for one kind of stores, or for jars of Lenses. Spark fetches them at the first use, where there is a
    network."""
    home = ivy_home if ivy_home is not None else default_ivy_home()
    findings = []
    needed: dict[Jar, list[str]] = {}
    for kind in KINDS:
        for jar in kind.connector.jars if kind.connector is not None else ():
            needed.setdefault(jar, []).append(kind.name)
    uses = {jar: f"stores of type {' and '.join(kinds)}" for jar, kinds in needed.items()}
    uses |= dict.fromkeys(LENSES_FUNCTIONS.jars, "functions in jars that were written for Lenses")
    for jar, use in uses.items():
        if jar.in_directory(folder) is not None or jar.in_ivy_cache(home):
            findings.append(Finding(True, f"jar {jar.file_name}", optional=True))
        else:
            advice = (
                f"Needed for {use}. It is fetched at the first use; without network\n"
                f"put {jar.coordinates} from Maven Central into {folder}"
            )
            findings.append(Finding(False, f"jar {jar.file_name}", advice, optional=True))
    return findings
