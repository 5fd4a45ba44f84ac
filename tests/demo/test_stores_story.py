"""The demo of stores without its services: the story and what it computes, and its statements."""

from __future__ import annotations

from mvserver.sql.parser import parse
from mvserver.sql.statements.queries import Pull
from mvserver.sql.statements.relations import CreateChangelog, CreateMaterializedView, CreateStreamAs, CreateTableAs
from tests.stores_demo import statements
from tests.stores_demo.__main__ import table
from tests.stores_demo.story import LEFT, MOVED, UPGRADED, USERS, VIEWS_A_CHAPTER, Story


def test_the_story_is_the_same_from_the_same_seed() -> None:
    one, other = Story(7), Story(7)
    assert (one.first(), one.second()) == (other.first(), other.second())
    assert Story(8).first() != Story(7).first()


def test_each_view_has_the_region_of_its_time() -> None:
    story = Story(7)
    first, second = story.first(), story.second()
    assert (len(first.users), len(second.users), len(second.upserted), len(second.deleted)) == (
        USERS, MOVED, UPGRADED, LEFT,
    )  # fmt: skip
    before = {user["userid"]: user["regionid"] for user in first.users}
    after = before | {user["userid"]: user["regionid"] for user in second.users}
    enriched = story.enriched()
    assert len(enriched) == 2 * VIEWS_A_CHAPTER
    for chapter, homes in ((first, before), (second, after)):
        for view in chapter.views:
            assert enriched[view["viewtime"], view["userid"], view["pageid"]] == (homes[view["userid"]],)
    assert story.users() == {(name,): (region,) for name, region in after.items()}
    assert sum(number for (number,) in story.by_region().values()) == 2 * VIEWS_A_CHAPTER


def test_customers_have_accounts_and_views() -> None:
    story = Story(7)
    first, second = story.first(), story.second()
    plans = (dict(first.upserted) | dict(second.upserted)).items()
    expected = {user: plan for user, plan in plans if user not in second.deleted}
    views = [view["userid"] for chapter in (first, second) for view in chapter.views]
    found = story.customers()
    assert {user for (user,) in found} == {user for user in expected if user in views}
    for (user,), (_, plan, count) in found.items():
        assert (plan, count) == (expected[user], views.count(user))


def test_its_statements_are_the_servers() -> None:
    places = {
        "kinesis": "'type' = KINESIS",
        "kafka": "h:1",
        "postgresql": "p",
        "databricks": "'uris' = 'u'",
        "s3": "'a' = 'b'",
    }
    steps = [*statements.stores(places), *statements.RELATIONS, *statements.QUERIES]
    kinds = [type(parse(text)[0]) for _, texts in steps for text in texts]
    for kind, number in ((CreateChangelog, 2), (CreateStreamAs, 1), (CreateMaterializedView, 3), (CreateTableAs, 2)):
        assert kinds.count(kind) == number
    assert all(isinstance(parse(text)[0], Pull) for text in statements.ROWS.values())


def test_results_are_shown_as_a_table() -> None:
    assert table(["a", "long"], [("x" * 100, None), (1, 2)]) == [
        "a" + " " * 79 + "  long",
        "-" * 80 + "  ----",
        "x" * 79 + "…",
        "1" + " " * 79 + "  2",
    ]
