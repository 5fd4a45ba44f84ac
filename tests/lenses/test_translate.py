"""SELECTs of the dialect lenses in the words of the first one."""

from __future__ import annotations

import re

import pytest

from mvserver.lenses.functions import SCALARS
from mvserver.lenses.parser import parse_program
from mvserver.lenses.problems import ProblemError, Problems
from mvserver.lenses.program import RowKind, SourceName
from mvserver.lenses.rows import Facet, Rows
from mvserver.lenses.sources import TopicSource
from mvserver.lenses.translate import Translated, translate
from tests.lenses.test_kafka import FUNCTIONS

STREAM, TABLE = RowKind.STREAM, RowKind.TABLE
NAMED = {
    "people": Rows(STREAM, Facet(), Facet(("id", "name", "address", "tags"))),
    "keyed": Rows(STREAM, Facet(("a", "b")), Facet(("x",))),
    "numbers": Rows(TABLE, Facet(), Facet()),
    "cities": Rows(TABLE, Facet(), Facet(("city", "land"))),
}
_TEXT = """coalesce('"' || replace(replace(CAST({} AS VARCHAR), '\\', '\\\\'), '"', '\\"') || '"', 'null')"""
BOTH_KEYS = f"""('[' || {_TEXT.format('"c"."_key"')} || ',' || {_TEXT.format('"n"."_key"')} || ']')"""


def topic(source: SourceName, kind: RowKind) -> TopicSource:
    return TopicSource(
        Rows(kind, Facet(), Facet(("f", "g")), records=True), f"p.{source.name}", (("starting.position", "earliest"),)
    )


def translated(text: str) -> Translated:
    problems = Problems()
    program = parse_program(f"INSERT INTO t {text}", problems)
    assert not problems, [str(each) for each in problems]
    return translate(program.inserts[0].select, NAMED, topic)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT STREAM * FROM in-put",
         """SELECT "in-put"."_key" AS "_key", "in-put"."f" AS "f", "in-put"."g" AS "g" """
         """FROM "p.in-put" WITH ('starting.position' = 'earliest') AS "in-put\""""),
        ("SELECT STREAM f AS _value, _meta.offset AS _key FROM t EVENTTIME BY g",
         """SELECT (rowmetadata()->offset) AS "_key", "t"."f" AS "_value" """
         """FROM "p.t" WITH ('starting.position' = 'earliest', 'timestamp' = 'g') AS "t\""""),
        ("SELECT STREAM address.country, name AS _key.n, _key AS old FROM people AS p WHERE LENGTH(p.name) > 5",
         """SELECT "p"."name" AS "_key.n", "p"."address"."country" AS "country", "p"."_key" AS "old" """
         """FROM "people" AS "p" WHERE (length("p"."name") > 5)"""),
        ("SELECT STREAM _key.*, x FROM keyed",
         """SELECT "keyed"."a" AS "_key.a", "keyed"."b" AS "_key.b", "keyed"."_key.a" AS "a", """
         """"keyed"."_key.b" AS "b", "keyed"."x" AS "x" FROM "keyed" AS "keyed\"""".replace(
             '"keyed"."a" AS', '"keyed"."_key.a" AS').replace('"keyed"."b" AS', '"keyed"."_key.b" AS')),
        ("SELECT TABLE SUM(_value) AS s, COUNT(*) AS n FROM numbers GROUP BY _key",
         """SELECT "numbers"."_key" AS "_key", sum("numbers"."_value") AS "s", count(*) AS "n" """
         """FROM "numbers" AS "numbers" GROUP BY "numbers"."_key\""""),
        ("SELECT TABLE COUNT(*) FROM people GROUP BY name, id",
         """SELECT "people"."name" AS "_key.name", "people"."id" AS "_key.id", count(*) AS "COUNT(*)" """
         """FROM "people" AS "people" GROUP BY "people"."name", "people"."id\""""),
        ("SELECT TABLE name, MAX(id) AS m FROM people WHERE id IN (1, 2) WINDOW BY TUMBLE 5m GROUP BY name",
         """SELECT "windowed"."g0" AS "_key.name", window_start AS "_key.window_start", window_end AS """
         """"_key.window_end", "windowed"."c2" AS "name", max("windowed"."c1") AS "m" FROM TUMBLE((SELECT """
         """"people"."_key" AS "c0", "people"."id" AS "c1", "people"."name" AS "c2", "people"."address" AS "c3", """
         """"people"."tags" AS "c4", "people"."name" AS "g0" FROM "people" AS "people" WHERE ("people"."id" IN """
         """(1, 2))), SIZE 5 MINUTES) AS "windowed" GROUP BY "windowed"."g0", window_start, window_end"""),
        ("SELECT STREAM p.name, land FROM people AS p JOIN cities AS c ON p.address.city = c._key",
         """SELECT "p"."address"."city" AS "_key", "p"."name" AS "name", "c"."land" AS "land" FROM "people" AS "p" """
         """JOIN "cities" AS "c" ON ("p"."address"."city" = "c"."_key")"""),
        ("SELECT STREAM name, f FROM cities RIGHT JOIN people AS p JOIN x",
         None),
        ("SELECT STREAM name, f FROM people LEFT JOIN t WITHIN 1h",
         """SELECT "people"."_key" AS "_key", "people"."name" AS "name", "t"."f" AS "f" FROM "people" AS "people" """
         """LEFT JOIN "p.t" WITH ('starting.position' = 'earliest') AS "t" WITHIN 1 HOURS """
         """ON "people"."_key" = "t"."_key\""""),
        ("SELECT STREAM name, land FROM cities RIGHT JOIN people",
         """SELECT "people"."_key" AS "_key", "people"."name" AS "name", "cities"."land" AS "land" """
         """FROM "people" AS "people" LEFT JOIN "cities" AS "cities" ON "cities"."_key" = "people"."_key\""""),
        ("SELECT TABLE c.land FROM cities AS c OUTER JOIN numbers AS n ON n._key = c._key WHERE n._value > 1",
         """SELECT coalesce("c"."_key", "n"."_key") AS "_key", mode() WITHIN GROUP (ORDER BY "c"."land") AS "land" """
         """FROM "cities" AS "c" FULL JOIN "numbers" AS "n" ON ("n"."_key" = "c"."_key") """
         """WHERE ("n"."_value" > 1) GROUP BY coalesce("c"."_key", "n"."_key")"""),
        ("SELECT TABLE COUNT(*) AS n FROM cities AS c OUTER JOIN numbers AS n GROUP BY land",
         """SELECT "c"."land" AS "_key", count(*) AS "n" FROM "cities" AS "c" FULL JOIN "numbers" AS "n" """
         """ON "c"."_key" = "n"."_key" GROUP BY "c"."land\""""),
        ("SELECT TABLE land, n._value AS v FROM cities AS c LEFT JOIN numbers AS n ON c.city = n._value",
         f"""SELECT {BOTH_KEYS} AS "_key", mode() WITHIN GROUP (ORDER BY "c"."land") AS "land", mode() WITHIN GROUP """
         """(ORDER BY "n"."_value") AS "v" FROM "cities" AS "c" LEFT JOIN "numbers" AS "n" ON """
         f"""("c"."city" = "n"."_value") GROUP BY {BOTH_KEYS}"""),
        ("SELECT STREAM id, tag FROM people LATERAL tags AS tag",
         """SELECT "people"."_key" AS "_key", "people"."id" AS "id", "tag"."tag" AS "tag" FROM "people" AS "people" """
         """CROSS JOIN UNNEST("people"."tags") AS "tag\""""),
        ("SELECT STREAM id AS a.b, name AS a.c.d, _value AS v FROM people",
         """SELECT "people"."_key" AS "_key", named_struct('b', "people"."id", 'c', named_struct('d', """
         """"people"."name")) AS "a", named_struct('id', "people"."id", 'name', "people"."name", 'address', """
         """"people"."address", 'tags', "people"."tags") AS "v" FROM "people" AS "people\""""),
        ("SELECT STREAM c._value AS c FROM people AS p LEFT JOIN cities AS c ON p.address.city = c._key",
         """SELECT "p"."address"."city" AS "_key", CASE WHEN "c"."_key" IS NOT NULL THEN named_struct('city', """
         """"c"."city", 'land', "c"."land") END AS "c" FROM "people" AS "p" LEFT JOIN "cities" AS "c" ON """
         """("p"."address"."city" = "c"."_key")"""),
        ("SELECT STREAM a._meta.offset AS o FROM t AS a JOIN people AS p ON p._key = a._key WITHIN 1h",
         """SELECT "a"."_key" AS "_key", "a"."_meta.offset" AS "o" FROM (SELECT *, (rowmetadata()->offset) AS """
         """"_meta.offset" FROM "p.t" WITH ('starting.position' = 'earliest') AS "a") AS "a" JOIN "people" AS "p" """
         """WITHIN 1 HOURS ON ("p"."_key" = "a"."_key")"""),
        ("SELECT STREAM CASE WHEN name = 'It''s' THEN 1 END AS c FROM people",
         """SELECT "people"."_key" AS "_key", CASE WHEN ("people"."name" = CAST('It''s' AS VARCHAR)) THEN 1 END """
         """AS "c" FROM "people" AS "people\""""),
    ],
)  # fmt: skip
def test_in_the_first_dialect(text: str, wanted: str | None) -> None:
    if wanted is None:
        with pytest.raises(ProblemError):
            translated(text)
        return
    assert translated(text).text.text == wanted


def test_places_are_kept() -> None:
    problems = Problems()
    program = parse_program("INSERT INTO t SELECT STREAM\n  name,\n  id + tags AS wrong FROM people", problems)
    found = translate(program.inserts[0].select, NAMED, topic).text
    place = found.find(found.text.index(" + ") + 2, program.inserts[0].place)
    assert (place.line, place.column) == (3, 6)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("SELECT TABLE * FROM people", "1:15", "SELECT TABLE does not fit its source, which is a STREAM"),
        ("SELECT STREAM * FROM numbers", "1:15", "SELECT STREAM does not fit its source, which is a TABLE"),
        ("SELECT STREAM nam FROM people", "1:29", 'field "nam" does not exist'),
        ("SELECT STREAM _key.x FROM people", "1:29", '_key of "people" is one value and has no field "x"'),
        ("SELECT STREAM _key.x AS y FROM keyed", "1:29", 'field "x" does not exist in _key'),
        ("SELECT STREAM p._value AS v, x FROM keyed LEFT JOIN people AS p ON p.id = x WITHIN 1h", "1:29",
         'the whole _value of "p" cannot be a value here'),
        ("SELECT STREAM p AS v FROM people AS p", "1:29", 'the whole record of "p" cannot be a value'),
        ("SELECT STREAM id AS a.b, name AS a.b FROM people", "1:40", 'field "b" is given more than once'),
        ("SELECT STREAM id AS a.b, name AS a FROM people", "1:40", 'field "a" is given more than once'),
        ("SELECT STREAM _meta.offset AS o FROM people", "1:29", '"people" is no stream of records, and has no _meta'),
        ("SELECT STREAM _meta.size AS o FROM people", "1:29", 'field "size" does not exist in _meta'),
        ("SELECT STREAM name, name FROM people", "1:35", 'field "name" is given more than once'),
        ("SELECT STREAM name AS _value, id FROM people", "1:37", "AS _value makes the whole value"),
        ("SELECT STREAM name AS _key, id AS _key.x, id FROM people", "1:43", "the key is given as a whole"),
        ("SELECT STREAM name AS _key FROM people", "1:15", "the SELECT projects nothing into the value"),
        ("SELECT TABLE city AS _key, land FROM cities", "1:28", "a TABLE keeps its key"),
        ("SELECT STREAM COUNT(*) AS n FROM people", "1:29", "an aggregate needs GROUP BY"),
        ("SELECT TABLE name FROM people GROUP BY name", "1:15", "GROUP BY needs an aggregate"),
        ("SELECT TABLE COUNT(SUM(id)) FROM people GROUP BY name", "1:34", "aggregate SUM is not allowed inside"),
        ("SELECT STREAM id FROM people WHERE COUNT(*) > 1", "1:50", "aggregate COUNT is not allowed here"),
        ("SELECT TABLE COUNT(*) FROM cities WINDOW BY TUMBLE 1m GROUP BY land", "1:49", "WINDOW BY is for streams"),
        ("SELECT STREAM id FROM people WINDOW BY TUMBLE 1m", "1:44", "WINDOW BY needs GROUP BY"),
        ("SELECT STREAM id FROM people JOIN t ON people._key = t._key", "1:44", "a join of two streams needs WITHIN"),
        ("SELECT STREAM id FROM people JOIN cities WITHIN 1h", "1:63", "WITHIN is for joins of two streams"),
        ("SELECT STREAM id FROM people OUTER JOIN cities", "1:44", "an OUTER join of a STREAM with a TABLE"),
        ("SELECT TABLE cities._value AS v FROM cities OUTER JOIN numbers", "1:28",
         "the whole _value cannot be a value of a join of TABLEs that has no key of one of them"),
        ("SELECT TABLE land FROM cities OUTER JOIN numbers WITHIN 1h", "1:71", "WITHIN is for joins of two streams"),
        ("SELECT STREAM id FROM cities LEFT JOIN people", "1:44", "a LEFT join of a TABLE with a STREAM"),
        ("SELECT STREAM x FROM people JOIN keyed WITHIN 1h", "1:43", 'the keys of "people" and "keyed" have different'),
        ("SELECT STREAM id FROM people JOIN people WITHIN 1h", "1:49", '"people" is named twice in FROM'),
        ("SELECT STREAM UPPER(name, id) AS x FROM people", "1:29", "function UPPER takes 1 argument and is given 2"),
        ("SELECT STREAM NOW(id) AS x FROM people", "1:29", "function NOW takes 0 arguments and is given 1"),
        ("SELECT STREAM LAST_OFFSET() AS x FROM people", "1:29", "function LAST_OFFSET is not supported"),
        ("SELECT TABLE TOPK(id, name) FROM people GROUP BY id", "1:28", "the second argument of TOPK is a whole"),
        ("SELECT STREAM UUID() AS x FROM people", "1:29", '"people" is no stream of records, and has no'),
        ("SELECT STREAM CAST(id AS UUID) AS x FROM people", "1:29", "type UUID does not exist"),
        ("SELECT STREAM id FROM people EVENTTIME BY id", "1:37", "EVENTTIME BY stands after a topic"),
        ("SELECT TABLE land FROM cities LATERAL land AS l", "1:45", "LATERAL over a TABLE is not supported"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, place: str, message: str) -> None:
    with pytest.raises(ProblemError) as caught:
        translated(text)
    found = caught.value.problem
    assert (f"{found.place.line}:{found.place.column}", found.message[: len(message)]) == (place, message)


def test_every_function_is_evaluated_somewhere() -> None:
    evaluated = {name for text in FUNCTIONS for name in re.findall(r"(\w+)\(", text)}
    assert set(SCALARS) <= evaluated


@pytest.mark.parametrize("function", ["TYPEOF", "CAPITALIZE"])
def test_calls_within_calls_have_a_bound(function: str) -> None:
    depth = 30
    with pytest.raises(ProblemError) as raised:
        translated(f"SELECT STREAM {f'{function}(' * depth}f{')' * depth} AS x FROM t")
    assert raised.value.problem.sqlstate == "54000"
