"""What a class in a jar offers, read from its file: nothing of a jar runs before a query calls its function."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

CLASS_BYTES_MAX = 16 << 20
_MAGIC = 0xCAFEBABE
_UTF8, _LONG, _DOUBLE, _CLASS = 1, 5, 6, 7
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_PUBLIC, _STATIC, _INTERFACE, _ABSTRACT, _SYNTHETIC = 0x1, 0x8, 0x200, 0x400, 0x1000
_LEVELS_MAX = 100


class JarError(Exception):
    """What is wrong with a jar or a class in it."""


@dataclass(frozen=True)
class Method:
    """``descriptor`` is the JVM's: ``(Ljava/lang/String;J)Z``."""

    name: str
    descriptor: str
    access: int

    @property
    def is_callable(self) -> bool:
        return bool(self.access & _PUBLIC) and not self.access & (_ABSTRACT | _SYNTHETIC)

    @property
    def is_static(self) -> bool:
        return bool(self.access & _STATIC)


@dataclass(frozen=True)
class ClassFile:
    superclass: str | None
    interfaces: tuple[str, ...]
    access: int
    methods: tuple[Method, ...]

    @property
    def is_public(self) -> bool:
        return bool(self.access & _PUBLIC)

    @property
    def can_be_made(self) -> bool:
        """Whether ``new C()`` may be said of it from anywhere."""
        made = any(each.name == "<init>" and each.descriptor == "()V" and each.is_callable for each in self.methods)
        return made and not self.access & (_INTERFACE | _ABSTRACT)

    def check_can_be_made(self, class_name: str) -> None:
        if not self.can_be_made:
            raise JarError(f"class {class_name} has no public constructor without arguments")


class Jar:
    """The classes of a jar, by their full names."""

    def __init__(self, content: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
            self._names = frozenset(self._zip.namelist())
        except (zipfile.BadZipFile, ValueError, OSError) as error:
            raise JarError("it is no jar") from error

    @property
    def has_classes(self) -> bool:
        return any(name.endswith(".class") for name in self._names)

    def find(self, class_name: str) -> ClassFile | None:
        entry = f"{class_name.replace('.', '/')}.class"
        if entry not in self._names:
            return None
        if self._zip.getinfo(entry).file_size > CLASS_BYTES_MAX:
            raise JarError(f"class {class_name} has more than {CLASS_BYTES_MAX} bytes")
        try:
            return _class_file(self._zip.read(entry))
        except (struct.error, IndexError, KeyError, UnicodeDecodeError, zipfile.BadZipFile, ValueError) as error:
            raise JarError(f"class {class_name} cannot be read") from error

    def public(self, class_name: str) -> ClassFile:
        """The class; JarError where there is none that others may use."""
        found = self.find(class_name)
        if found is None:
            raise JarError(f"there is no class {class_name}")
        if not found.is_public:
            raise JarError(f"class {class_name} is not public")
        return found

    def interfaces(self, class_name: str) -> frozenset[str]:
        """Those that the class has by itself, by classes of the jar above it, and by interfaces of the jar."""
        seen: set[str] = set()
        waiting = [class_name]
        while waiting:
            found = self.find(waiting.pop())
            above = () if found is None else (*found.interfaces, *((found.superclass,) if found.superclass else ()))
            waiting += [name for name in above if name not in seen]
            seen.update(above)
        return frozenset(seen)

    def methods(self, class_name: str) -> Iterator[Method]:
        """Those of the class, and those that it has from classes of the jar above it, the nearest first."""
        name: str | None = class_name
        seen: set[tuple[str, str]] = set()
        for _ in range(_LEVELS_MAX):
            found = None if name is None else self.find(name)
            if found is None:
                return
            for each in found.methods:
                if (each.name, each.descriptor) not in seen:
                    seen.add((each.name, each.descriptor))
                    yield each
            name = found.superclass


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def take(self, size: int) -> bytes:
        part = self._content[self._at : self._at + size]
        if len(part) < size:
            raise IndexError(self._at)
        self._at += size
        return part


def _class_file(content: bytes) -> ClassFile:
    """The Java Virtual Machine Specification, chapter 4."""
    reader = _Reader(content)
    if reader.number(4) != _MAGIC:
        raise ValueError("no class file")
    reader.take(4)  # its version
    texts, classes = _constants(reader)
    access = reader.number(2)
    reader.take(2)  # its own name
    above = reader.number(2)
    interfaces = tuple(texts[classes[reader.number(2)]].replace("/", ".") for _ in range(reader.number(2)))
    for _ in range(reader.number(2)):
        _member(reader, texts)  # fields
    methods = tuple(_member(reader, texts) for _ in range(reader.number(2)))
    return ClassFile(texts[classes[above]].replace("/", ".") if above else None, interfaces, access, methods)


def _constants(reader: _Reader) -> tuple[dict[int, str], dict[int, int]]:
    """Texts by their place, and for each class the place of its name."""
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    place, count = 1, reader.number(2)
    while place < count:
        tag = reader.number(1)
        if tag == _UTF8:
            texts[place] = reader.take(reader.number(2)).decode("utf-8", "replace")
        elif tag == _CLASS:
            classes[place] = reader.number(2)
        else:
            reader.take(_SIZES[tag])
        place += 2 if tag in (_LONG, _DOUBLE) else 1
    return texts, classes


def _member(reader: _Reader, texts: dict[int, str]) -> Method:
    access, name, descriptor = reader.number(2), reader.number(2), reader.number(2)
    for _ in range(reader.number(2)):
        reader.take(2)
        reader.take(reader.number(4))
    return Method(texts[name], texts[descriptor], access)
