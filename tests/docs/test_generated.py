"""Pages that are made from the code's tables are as the code would make them, and examples are written by the rules."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from mvserver.sql.statements.base import Statement
from tests.docs.examples import PAGES, ROOT, blocks


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_functions_is_the_table() -> None:
    generate = _generator()
    assert generate.FUNCTIONS.read_text(encoding="utf-8") == generate.functions_page(), "run docs/generate.py"


def test_the_page_of_functions_of_pull_queries_is_the_table() -> None:
    generate = _generator()
    assert generate.PULL_FUNCTIONS.read_text(encoding="utf-8") == generate.pull_functions_page(), "run docs/generate.py"


def test_the_table_of_session_settings_is_the_servers() -> None:
    generate = _generator()
    text = generate.SESSION.read_text(encoding="utf-8")
    assert "<!-- session settings -->" in text
    assert text == generate.session_page(text), "run docs/generate.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_sql_block_is_an_example_that_is_run(page: Path) -> None:
    assert page.read_text(encoding="utf-8").count("```sql\n") == len(blocks(page))


def test_every_statement_is_on_a_page() -> None:
    texts = [page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "sql").glob("*.md")]
    pages = " ".join(" ".join(text.split()) for text in texts)
    assert [command for command in _commands() if command not in pages] == []


def _commands() -> list[str]:
    """``CreateStream`` is CREATE STREAM, and so on, for every kind of statement."""
    kinds = [kind.__name__ for kind in Statement.__subclasses__()]
    return [_SPELLED.get(kind) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).upper() for kind in kinds]


_SPELLED = {
    "CreateFunctionSource": "CREATE FUNCTION_SOURCE",
    "DropFunctionSource": "DROP FUNCTION_SOURCE",
    "ListFunctionSources": "LIST FUNCTION_SOURCES",
    "CreateApiToken": "CREATE API_TOKEN",
    "DropApiToken": "DROP API_TOKEN",
    "ListApiTokens": "LIST API_TOKENS",
    "SetRowSecurity": "ROW LEVEL SECURITY",
    "BoundedRead": "SELECT",
    "CloseCursor": "CLOSE name",
    "CopyFrom": "COPY stream",
    "CopyTo": "COPY view",
    "CreateStreamAs": "CREATE STREAM … AS",
    "CreateTableAs": "CREATE TABLE … AS",
    "CreateDescriptorSource": "CREATE DESCRIPTOR_SOURCE",
    "DropDescriptorSource": "DROP DESCRIPTOR_SOURCE",
    "ListDescriptorSources": "LIST DESCRIPTOR_SOURCES",
    "CreateSchemaRegistry": "CREATE SCHEMA_REGISTRY",
    "DescribeSchemaRegistry": "DESCRIBE SCHEMA_REGISTRY",
    "DropSchemaRegistry": "DROP SCHEMA_REGISTRY",
    "ListSchemaRegistries": "LIST SCHEMA_REGISTRIES",
    "UpdateSchemaRegistry": "UPDATE SCHEMA_REGISTRY",
    "DescribeStatement": "DESCRIBE statement",
    "DropAbsent": "DROP … IF EXISTS",
    "DropRelation": "DROP RELATION",
    "ExecutePrepared": "EXECUTE name",
    "Pull": "SELECT",
    "PushQuery": "FROM stream",
    "AlterOwner": "OWNER TO",
    "AlterTypeAddValue": "ALTER TYPE name ADD VALUE",
    "AlterTypeRename": "ALTER TYPE name RENAME VALUE",
    "AlterRoleSetting": "ALTER ROLE name SET",
    "MoveRelation": "SET SCHEMA",
    "GrantRole": "GRANT role [, …] TO",
    "RenameRole": "RENAME TO",
    "RevokeRole": "REVOKE [ADMIN OPTION FOR] role",
    "ReleaseSavepoint": "RELEASE SAVEPOINT",
    "RollbackToSavepoint": "ROLLBACK TO SAVEPOINT",
}
