"""Java's objects go as soon as nobody here needs them.

py4j keeps each method that was called in the object, and the object in the method. Such a pair waits for Python's
collector, which does not look at what has lived for some seconds until much more has come (``mvserver.collector``), and
with it waits all that the object leads to in the JVM: of each query of Spark's that has ended, its plans and its
session, more than a megabyte. Here a method is made for each call, which costs a microsecond beside one of some
hundred. It reaches into py4j's classes, whose version is pinned exactly.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaMember, JavaObject, is_magic_member


def keep_no_methods() -> None:
    """From now on a Java object is no part of a cycle because a method of it was called."""
    JavaObject.__getattr__ = _method


def _method(self: JavaObject, name: str) -> Any:
    if is_magic_member(name):  # Python's own questions are none for Java
        raise AttributeError(name)
    return JavaMember(name, self, self._target_id, self._gateway_client)
