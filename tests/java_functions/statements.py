"""Statements that make function sources and functions of the jars of the tests."""

from __future__ import annotations

SOURCE = "CREATE FUNCTION_SOURCE shop WITH ('file' = '@/shop.jar', 'description' = 'of the shop')"
FARM_SOURCE = "CREATE FUNCTION_SOURCE farm WITH ('file' = 'farm.jar')"


def create(
    class_: str, parameters: str = "word VARCHAR", result: str = "VARCHAR", rest: str = "", name: str = "f",
    *, source: str = "shop", what: str = "FUNCTION",
) -> str:  # fmt: skip
    return (
        f"CREATE {what} {name}({parameters}) RETURNS {result} LANGUAGE JAVA {rest} "
        f"WITH ('source.name' = '{source}', 'class.name' = '{source}.All${class_}')"
    )


def farm(
    class_: str, parameters: str = "word VARCHAR", result: str = "VARCHAR", name: str = "f", rest: str = "STRICT",
    what: str = "FUNCTION",
) -> str:  # fmt: skip
    """Of a class that implements an interface of Lenses."""
    return create(class_, parameters, result, rest, name, source="farm", what=what)
