"""Function sources and functions in Java: what is refused and why, and what hangs on what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.java_functions import lenses_jar
from tests.java_functions.compiled import jar
from tests.java_functions.statements import FARM_SOURCE, SOURCE, create, farm
from tests.routing.fakes import SETUP, Bench

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    folder = made.services.store_config_dir
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shop.jar").write_bytes(jar())
    (folder / "text.jar").write_bytes(b"text")
    (folder / "farm.jar").write_bytes(lenses_jar.jar())
    made.run(*SETUP, SOURCE, FARM_SOURCE)
    yield made
    made.close()


def refused(class_: str, detail: str, source: str = "shop") -> tuple[str, str, str]:
    said = f'class "{source}.All${class_}" of function source "{source}" cannot be this function'
    return "42P13", said, detail


def farmed(class_: str, detail: str) -> tuple[str, str, str]:
    return refused(class_, detail, "farm")


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        (SOURCE, ("42710", 'function source "shop" already exists')),
        ("CREATE FUNCTION_SOURCE t WITH ('file' = 'text.jar')",
         ("F0000", 'file "text.jar" cannot be read', "it is no jar.")),
        ("CREATE FUNCTION_SOURCE t WITH ('file' = 'none.jar')",
         ("F0000", 'file "none.jar" cannot be read', "No such file or directory.")),
        ("CREATE FUNCTION_SOURCE t WITH ('file' = '../t.jar')",
         ("42501", 'file "../t.jar" is not in the configured folder')),
        ("CREATE FUNCTION_SOURCE t WITH ('description' = 'x')",
         ("22023", 'a function source needs the property "file"')),
        ("DROP FUNCTION_SOURCE nosuch", ("42704", 'function source "nosuch" does not exist')),
        ("COPY FUNCTION_SOURCE shop TO 'x'", ("0A000", "COPY FUNCTION_SOURCE is not supported")),
        (create("Shout").replace("'shop',", "'nosuch',"), ("42704", 'function source "nosuch" does not exist')),
        (create("Nosuch"), refused("Nosuch", "There is no class shop.All$Nosuch.")),
        (create("Hidden"), refused("Hidden", "Class shop.All$Hidden is not public.")),
        (create("Private"),
         refused("Private", "Class shop.All$Private has no public constructor without arguments.")),
        (create("Two"),
         refused("Two", "Class shop.All$Two has several methods that fit: "
                 "(Ljava/lang/String;)Ljava/lang/String;, (Ljava/lang/String;)Ljava/lang/String;.")),
        (create("Shout", "n BIGINT"),
         refused("Shout", "Class shop.All$Shout has no public method java.lang.String evaluate(java.lang.Long): "
                 "it has evaluate(Ljava/lang/String;)Ljava/lang/String;.")),
        (create("Shout", result="BIGINT"),
         refused("Shout", "Class shop.All$Shout has no public method java.lang.Long evaluate(java.lang.String): "
                 "it has evaluate(Ljava/lang/String;)Ljava/lang/String;.")),
        (create("Twice", "n BIGINT", "BIGINT"),
         refused("Twice", "Method evaluate(J)J takes a primitive type, which has no NULL: say STRICT.")),
        (create("Shout").split(" WITH")[0], ("42P13", "a function in JAVA needs a source and a class")),
        (create("Shout") + " AS 'x'", ("42P13", "a function in JAVA has no body")),
        (create("Shout").replace("FUNCTION", "AGGREGATE"),
         refused("Shout", "Class shop.All$Shout does not implement io.lenses.sql.udf.UserDefinedAggregateFunction.")),
        (farm("Nosuch"), farmed("Nosuch", "There is no class farm.All$Nosuch.")),
        (farm("Hidden", "c DOUBLE", "DOUBLE"), farmed("Hidden", "Class farm.All$Hidden is not public.")),
        (farm("Above"), farmed("Above", "Class farm.All$Above has no public constructor without arguments.")),
        (farm("Mean", "n BIGINT", "DOUBLE"),
         farmed("Mean", "Class farm.All$Mean is an aggregate: say CREATE AGGREGATE.")),
        (farm("Below").replace("FUNCTION", "AGGREGATE"),
         farmed("Below", "Class farm.All$Below does not implement io.lenses.sql.udf.UserDefinedAggregateFunction.")),
        (farm("Below", "a VARCHAR, b VARCHAR"),
         farmed("Below",
                "Class farm.All$Below implements UserDefinedFunction1, which has another number of arguments.")),
        (farm("Echo", "d DATE", "DATE"), farmed("Echo", "The interfaces of Lenses have no values of type DATE.")),
        (create("Shout").replace("'class", "'memory.mb' = 5, 'class"),
         ("22023", 'property "memory.mb" is not known for a function in JAVA')),
    ],
)  # fmt: skip
def test_what_is_refused_changes_nothing(shop: Bench, statement: str, wanted: tuple[str, ...]) -> None:
    before = shop.dump()
    error = shop.error(statement)
    assert (error.sqlstate, error.message, error.detail)[: len(wanted)] == wanted
    assert shop.dump() == before


def test_a_source_is_kept_as_it_was_and_dropped_when_nothing_is_of_it(shop: Bench) -> None:
    (shop.services.store_config_dir / "shop.jar").write_bytes(jar("2"))
    shop.run("DROP FUNCTION_SOURCE farm")
    (source,) = shop.catalog.function_sources.all()
    kept = shop.services.jars.path(source.digest)
    assert kept.read_bytes() == jar()
    shop.run(create("Shout"), create("Twice", "n BIGINT", "BIGINT", "STRICT", "twice"))
    (row,) = shop.run("LIST FUNCTION_SOURCES")
    assert (row["name"], row["file"], row["description"], row["functions"]) == ("shop", "shop.jar", "of the shop", 2)
    assert shop.error("DROP FUNCTION_SOURCE shop").sqlstate == "2BP01"
    (shown,) = shop.run("DESCRIBE FUNCTION twice")
    assert (shown["language"], shown["body"], shown["strict"]) == ("java", "shop.All$Twice", True)
    shop.run("CREATE MATERIALIZED VIEW v AS SELECT twice(event_time) AS t FROM clicks")
    error = shop.error("DROP FUNCTION twice")
    assert error.message == "cannot drop function twice(BIGINT) because other objects depend on it"
    shop.run("CREATE FUNCTION_SOURCE IF NOT EXISTS shop WITH ('file' = 'shop.jar')")
    shop.run("CREATE FUNCTION_SOURCE second WITH ('file' = 'shop.jar')")
    again = create("Twice", "n BIGINT", "BIGINT", "STRICT", "twice").replace("CREATE", "CREATE OR REPLACE")
    shop.run(again)  # says nothing new
    error = shop.error(again.replace("'shop',", "'second',"))
    assert error.message == "cannot replace function twice(BIGINT) because queries call it"
    shop.run("DROP FUNCTION twice CASCADE", "DROP FUNCTION f", "DROP FUNCTION_SOURCE shop")
    assert not kept.exists()
    shop.run("DROP FUNCTION_SOURCE IF EXISTS shop", "DROP FUNCTION_SOURCE second")
    assert list(kept.parent.iterdir()) == []


def test_superusers_alone_make_code_of_the_jvm(shop: Bench) -> None:
    shop.run("CREATE ROLE anna CREATEFUNCTION", "GRANT CREATE ON SCHEMA public TO anna")
    shop.run("GRANT SELECT ON clicks TO anna", create("Shout"))
    shop.context.role = "anna"
    for statement in (SOURCE.replace("shop W", "s W"), "DROP FUNCTION_SOURCE shop", create("Shout", name="g")):
        assert shop.error(statement).sqlstate == "42501"
    shop.run("CREATE MATERIALIZED VIEW v AS SELECT f(url) AS u FROM clicks")  # EXECUTE is everybody's
