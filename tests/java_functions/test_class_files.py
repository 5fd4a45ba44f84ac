"""Class files without a JVM: those of jars that Spark brings, and broken ones."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pyspark
import pytest

from mvserver.java_functions.class_files import Jar, JarError
from mvserver.java_functions.methods import method_of
from mvserver.sql.types import parse_type

JARS = Path(pyspark.__file__).parent / "jars"
LANG = next(JARS.glob("commons-lang3-*.jar"))
STRINGS = "org.apache.commons.lang3.StringUtils"


def test_all_classes_of_a_jar_are_read() -> None:
    content = LANG.read_bytes()
    jar, read = Jar(content), 0
    with zipfile.ZipFile(io.BytesIO(content)) as given:
        names = [name for name in given.namelist() if name.startswith("org/") and name.endswith(".class")]
    for name in names:
        found = jar.find(name.removesuffix(".class").replace("/", "."))
        assert found is not None
        read += len(found.methods)
    assert read > 3000
    strings = jar.find(STRINGS)
    assert strings is not None
    assert (strings.superclass, strings.is_public, strings.can_be_made) == ("java.lang.Object", True, True)
    (reverse,) = (each for each in strings.methods if each.name == "reverse")
    assert reverse.descriptor == "(Ljava/lang/String;)Ljava/lang/String;"
    assert (reverse.is_static, reverse.is_callable) == (True, True)


def test_what_is_no_class_is_told() -> None:
    with pytest.raises(JarError, match="it is no jar"):
        Jar(b"nothing")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as written:
        for name, code in (("a/B.class", b"\xca\xfe\xba\xbe\0\0"), ("a/C.class", b"x" * 100), ("a/D.class", b"")):
            written.writestr(name, code)
    jar = Jar(content.getvalue())
    for name in ("a.B", "a.C", "a.D"):
        with pytest.raises(JarError, match=f"class {name} cannot be read"):
            jar.find(name)
    assert jar.find("a.E") is None
    with pytest.raises(JarError, match=r"there is no class a\.E"):
        method_of(jar, "a.E", [], parse_type("INTEGER"), strict=False)
