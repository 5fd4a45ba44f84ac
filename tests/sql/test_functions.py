"""Statements on functions of one's own, as they are read."""

from __future__ import annotations

from mvserver.sql import parse_one
from mvserver.sql.statements.base import ObjectName
from mvserver.sql.statements.functions import CreateFunction, DescribeFunction, FunctionName, FunctionParameter
from mvserver.sql.statements.privileges import AlterOwner, Grant
from mvserver.sql.types import parse_type


def test_the_options_of_a_function_stand_in_any_order() -> None:
    text = (
        "CREATE OR REPLACE FUNCTION s.f(IN a int, b varchar(3)) RETURNS bigint[] STRICT AS $x$body$x$ LANGUAGE python"
    )
    found = parse_one(text)
    assert isinstance(found, CreateFunction)
    assert found.name == ObjectName(("s", "f"), 28)
    assert found.parameters == (
        FunctionParameter("a", parse_type("INTEGER")), FunctionParameter("b", parse_type("VARCHAR(3)")),
    )  # fmt: skip
    assert (found.result, found.body, found.strict, found.or_replace) == (
        parse_type("ARRAY<BIGINT>"), "body", True, True,
    )  # fmt: skip
    assert found.body_start is not None
    assert text[found.body_start :].startswith("body")


def test_functions_are_named_with_the_types_of_their_arguments() -> None:
    wanted = (parse_type("INTEGER"), parse_type("VARCHAR"))
    found = parse_one("DESCRIBE FUNCTION f(int, b text)")
    assert isinstance(found, DescribeFunction)
    assert (found.name.parts, found.name.types) == (("f",), wanted)
    granted = parse_one("GRANT EXECUTE ON FUNCTION f(int, text), g TO r")
    assert isinstance(granted, Grant)
    first, second = granted.on.names
    assert isinstance(first, FunctionName)
    assert isinstance(second, FunctionName)
    assert (first.types, second.types) == (wanted, None)
    moved = parse_one("ALTER FUNCTION f() OWNER TO r")
    assert isinstance(moved, AlterOwner)
    assert (moved.kind, str(moved.name)) == ("function", "f()")
