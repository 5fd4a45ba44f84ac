"""buenavista plug-ins named by settings, in the real program: modules on PYTHONPATH, asked by psycopg."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.program import Program, refusal, without_java

MODULE = '''
"""Written for buenavista; knows nothing of the server."""
from buenavista import bv_dialects
from buenavista.core import BVType, Extension, SimpleQueryResult
from buenavista.rewrite import Rewriter

rewriter = Rewriter(bv_dialects.BVPostgres(), bv_dialects.BVDuckDB())


@rewriter.relation("lucky_numbers")
def lucky_numbers():
    return "SELECT 7 AS n UNION ALL SELECT 13"


class Echo(Extension):
    def type(self):
        return "echo"

    def apply(self, params, session):
        return SimpleQueryResult("echo", params["text"], BVType.TEXT)


class Product(Extension):
    def type(self):
        return "product"

    def apply(self, params, session):
        return session.execute_sql("SELECT CAST($1 AS BIGINT) * $2 AS product", [params["a"], params["b"]])
'''


def test_a_rewriter_and_extensions(tmp_path: Path) -> None:
    modules = tmp_path / "modules" / "ours"
    modules.mkdir(parents=True)
    (modules / "__init__.py").write_text("")
    (modules / "plugins.py").write_text(MODULE)
    environment = {
        **without_java(),
        "PYTHONPATH": str(modules.parent),
        "MVSERVER_REWRITER": "ours.plugins:rewriter",
        "MVSERVER_EXTENSIONS": "ours.plugins:Echo,ours.plugins:Product",
    }
    with Program(tmp_path, environment=environment) as program, program.ready().connect() as connection:
        assert connection.execute("SELECT sum(n) FROM lucky_numbers").fetchone() == (20,)
        assert connection.execute("SELECT n FROM lucky_numbers WHERE n > %s", [7]).fetchall() == [(13,)]
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert connection.execute('{"method": "echo", "params": {"text": "hello"}}').fetchone() == ("hello",)
        assert connection.execute('{"method": "product", "params": {"a": 6, "b": 7}}').fetchone() == (42,)


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The folder's modules can be imported, and are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    yield monkeypatch
    for name in ("ours", "broken"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("place", "detail"),
    [
        ("ours:missing", "AttributeError: module 'ours' has no attribute 'missing'."),
        ("ours:Picky", "TypeError: Picky.__init__() missing 1 required positional argument: 'what'."),
        ("ours:Deaf", "It has no method apply."),
        ("broken:X", "ZeroDivisionError: division by zero."),
    ],
)
def test_what_cannot_be_loaded_is_named(place: str, detail: str, tmp_path: Path, modules: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "ours.py").write_text(
        "class Picky:\n    def __init__(self, what): ...\n\n\nclass Deaf:\n    def type(self):\n        return 'deaf'\n"
    )
    told = refusal(modules, tmp_path / "server", MVSERVER_EXTENSIONS=place)
    assert f'mvserver: "{place}" of setting "extensions" cannot be loaded\nDETAIL:  {detail}\n' in told


def test_two_extensions_of_one_type_are_refused(tmp_path: Path, modules: pytest.MonkeyPatch) -> None:
    (tmp_path / "ours.py").write_text(MODULE)
    told = refusal(modules, tmp_path / "server", MVSERVER_EXTENSIONS="ours:Echo,ours:Echo")
    assert 'DETAIL:  It has type "echo", as has ours:Echo.' in told
