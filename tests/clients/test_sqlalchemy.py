"""SQLAlchemy 2.1 over psycopg: parameterised queries, and its inspector."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest
import sqlalchemy as sa
from sqlalchemy import types

from tests.clients.live_server import LiveServer


@pytest.fixture(scope="module")
def engine(server: LiveServer) -> Iterator[sa.Engine]:
    made = sa.create_engine(f"postgresql+psycopg://postgres@127.0.0.1:{server.port}/postgres")
    yield made
    made.dispose()


def test_a_parameterised_query(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        rows = connection.execute(
            sa.text("SELECT url, visits FROM visits WHERE visits > :least ORDER BY url"), {"least": 15}
        ).all()
    assert [tuple(row) for row in rows] == [("./home", 30), ("./shop", 20)]


def test_core_expressions_over_a_reflected_view(engine: sa.Engine) -> None:
    visits = sa.Table("visits", sa.MetaData(), autoload_with=engine)
    assert [column.name for column in visits.columns] == ["url", "visits"]
    query = (
        sa.select(sa.func.count().label("pages"), sa.func.sum(visits.c.visits).label("total"))
        .where(visits.c.url.in_(["./home", "./cart"]))
        .where(visits.c.url.like("./%"))
    )
    with engine.connect() as connection:
        row = connection.execute(query).one()
    assert (row.pages, row.total) == (2, 40)


def test_paging_and_case(engine: sa.Engine) -> None:
    visits = sa.Table("visits", sa.MetaData(), autoload_with=engine)
    size = sa.case((visits.c.visits >= 20, "large"), else_="small").label("size")
    query = sa.select(visits.c.url, size).order_by(visits.c.visits.desc()).limit(1).offset(1)
    with engine.connect() as connection:
        assert [tuple(row) for row in connection.execute(query)] == [("./shop", "large")]


def test_types_of_a_reflected_view(engine: sa.Engine) -> None:
    typed = sa.Table("typed", sa.MetaData(), autoload_with=engine)
    kinds = {column.name: type(column.type) for column in typed.columns}
    assert issubclass(kinds["id"], types.Integer)
    assert issubclass(kinds["flag"], types.Boolean)
    assert issubclass(kinds["big"], types.BigInteger)
    assert issubclass(kinds["amount"], types.Numeric)
    assert issubclass(kinds["name"], types.String)
    assert issubclass(kinds["day"], types.Date)
    assert typed.c.instant.type.timezone is True
    with engine.connect() as connection:
        assert connection.execute(sa.select(typed.c.amount).where(typed.c.id == 1)).scalar_one() == Decimal("12.30")


def test_the_inspector(engine: sa.Engine) -> None:
    inspector = sa.inspect(engine)
    assert inspector.default_schema_name == "public"
    assert "public" in inspector.get_schema_names()
    assert inspector.get_table_names() == []
    assert sorted(inspector.get_materialized_view_names()) == ["numbers", "typed", "visits"]
    assert [column["name"] for column in inspector.get_columns("visits")] == ["url", "visits"]
    assert inspector.has_table("visits")
    assert not inspector.has_table("nothing")
    assert [index["column_names"] for index in inspector.get_indexes("visits")] == [["url"]]
    assert inspector.get_pk_constraint("visits")["constrained_columns"] in ([], ["url"])
    assert inspector.get_foreign_keys("visits") == []
    assert "visits_source" in inspector.get_view_definition("visits")


def test_isolation_level(engine: sa.Engine) -> None:
    assert engine.dialect.default_isolation_level == "READ COMMITTED"
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        assert connection.execute(sa.text("SHOW transaction_isolation")).scalar_one() == "repeatable read"


def test_errors_roll_back(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        with pytest.raises(sa.exc.ProgrammingError, match='relation "nothing" does not exist'):
            connection.execute(sa.text("SELECT * FROM nothing"))
        connection.rollback()
        assert connection.execute(sa.text("SELECT 1")).scalar_one() == 1
