"""The jar of the server's own Java classes: compiled by the JVM of Spark, and kept for the starts that follow.

Janino compiles them in a JVM that has just begun, which takes it 1.5 s of the processor. The jar tells of what it was
made: another source, Spark or Java makes it anew, and so does damage.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mvserver.spark_jvm import pyspark_home
from mvserver.streaming.spark.class_archive import described


def provide(jvm: Any, jar: Path, sources: Sequence[str]) -> None:
    """``sources``: each may use the classes of those before it."""
    identity = _identity(jvm, sources)
    if _is_whole(jar, identity):
        return
    written = jar.with_suffix(".new")
    with zipfile.ZipFile(written, "w") as content:
        content.comment = identity
        for name, code in _compiled(jvm, sources).items():
            content.writestr(f"{name.replace('.', '/')}.class", code)
    written.replace(jar)


def _identity(jvm: Any, sources: Sequence[str]) -> bytes:
    jars = described([*(pyspark_home() / "jars").glob("*.jar")])
    java = str(jvm.java.lang.System.getProperty("java.runtime.version"))
    return hashlib.sha256(json.dumps([*sources, *jars, java]).encode()).hexdigest().encode()


def _is_whole(jar: Path, identity: bytes) -> bool:
    try:
        with zipfile.ZipFile(jar) as content:
            return content.comment == identity and content.testzip() is None
    except Exception:  # noqa: BLE001 - damage shows itself in many ways, and each has the jar made anew
        return False


def _compiled(jvm: Any, sources: Sequence[str]) -> dict[str, bytes]:
    """The classes by name: those of functions stand inside the class that has the methods."""
    found: dict[str, bytes] = {}
    compiler = None
    for source in sources:
        before, compiler = compiler, jvm.org.codehaus.janino.SimpleCompiler()
        if before is not None:
            compiler.setParentClassLoader(before.getClassLoader())
        compiler.cook(source)
        codes = compiler.getBytecodes()
        found.update({str(name): bytes(codes[name]) for name in codes})
    return found
