"""No module imports itself through others, be it for a type or inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

_ROOT = Path(__file__).parents[1]


def _modules() -> Mapping[str, Path]:
    found = {}
    for room in ("mvserver", "spark_sinks", "catalog"):
        for path in (_ROOT / room).rglob("*.py"):
            parts = path.relative_to(_ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _imported(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                if inner in modules or node.module in modules:
                    yield inner if inner in modules else node.module


def test_no_circle_of_imports() -> None:
    modules = _modules()
    graph = {name: set(_imported(path, modules)) - {name} for name, path in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"a circle: {' -> '.join(reversed(error.args[1]))}") from None
