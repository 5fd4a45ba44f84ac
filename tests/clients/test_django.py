"""Django: inspectdb, and its ORM with parameters that the server binds, beside a real PostgreSQL."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import django
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections, models
from django.db.models import (
    Avg,
    Case,
    CharField,
    Count,
    Exists,
    F,
    Max,
    OuterRef,
    Q,
    Subquery,
    Sum,
    Value,
    When,
    Window,
)
from django.db.models.functions import (
    Cast,
    Coalesce,
    Concat,
    ExtractYear,
    Greatest,
    Length,
    Lower,
    NullIf,
    Round,
    RowNumber,
    StrIndex,
    Substr,
    TruncDay,
    TruncMonth,
)

from tests.clients.client_world import Address

pytestmark = pytest.mark.postgres


def _configured(address: Address) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql", "NAME": address.database, "USER": address.user,
        "HOST": address.host, "PORT": address.port, "OPTIONS": {"server_side_binding": True},
    }  # fmt: skip


@pytest.fixture(scope="module")
def orm(ours: Address, theirs: Address) -> Iterator[type[models.Model]]:
    if not settings.configured:
        settings.configure(USE_TZ=True, TIME_ZONE="UTC", INSTALLED_APPS=[])
        django.setup()
    connections.settings = {"default": _configured(ours), "theirs": _configured(theirs)}
    connections.settings = connections.configure_settings(connections.settings)

    class Visit(models.Model):
        url = models.TextField(primary_key=True)
        visits = models.BigIntegerField()

        class Meta:
            managed, db_table, app_label = False, "visits", "clients"

    class Typed(models.Model):
        id = models.IntegerField(primary_key=True)
        amount = models.DecimalField(max_digits=12, decimal_places=2, null=True)
        name = models.TextField(null=True)
        day = models.DateField(null=True)
        moment = models.DateTimeField(null=True)
        instant = models.DateTimeField(null=True)
        real8 = models.FloatField(null=True)

        class Meta:
            managed, db_table, app_label = False, "typed", "clients"

    Visit.typed = Typed  # type: ignore[attr-defined]
    yield Visit
    connections.close_all()


TEXT = models.TextField()
QUERIES: dict[str, Callable[[Any, Any], Any]] = {
    "all": lambda v, t: v.order_by("url").values_list("url", "visits"),
    "conditions": lambda v, t: v.filter(Q(visits__gt=15) & ~Q(url="./home") | Q(url__in=["./cart"])).order_by("url"),
    "patterns": lambda v, t: v.filter(url__icontains="HO", url__startswith=".", url__endswith="e").values_list("url"),
    "regular expressions": lambda v, t: v.filter(url__regex=r"^\./h", url__iregex="HOME").values_list("url"),
    "aggregates": lambda v, t: v.aggregate(Sum("visits"), Avg("visits"), n=Count("*"), last=Max(Lower("url"))),
    "arithmetic": lambda v, t: v.annotate(d=F("visits") * 2 + 1, r=F("visits") % 7).order_by("d").values_list("d", "r"),
    "groups": lambda v, t: v.annotate(k=Case(When(visits__gt=15, then=Value("big")), default=Value("small")))
    .values("k").annotate(n=Count("*")).filter(n__gte=1).order_by("k").values_list("k", "n"),
    "pieces": lambda v, t: v.order_by("visits")[1:2].values_list("url"),
    "distinct": lambda v, t: v.annotate(l=Length("url")).values_list("l").distinct(),
    "sub-queries": lambda v, t: v.filter(visits=Subquery(v.order_by("-visits").values("visits")[:1]))
    .values_list("url"),
    "exists": lambda v, t: v.filter(~Exists(t.filter(id=OuterRef("visits")))).order_by("url").values_list("url"),
    "windows": lambda v, t: v.annotate(r=Window(RowNumber(), order_by=F("visits").desc())).order_by("r")
    .values_list("r", "url"),
    "texts": lambda v, t: v.annotate(
        c=Concat(Lower("url"), Value("-"), Cast("visits", TEXT), output_field=TEXT), i=StrIndex("url", Value("h")),
        s=Substr("url", 3, 2)).order_by("c").values_list("c", "i", "s"),
    "times": lambda v, t: t.annotate(d=TruncDay("instant"), m=TruncMonth("moment"), y=ExtractYear("day"))
    .order_by("id").values_list("d", "m", "y"),
    "time conditions": lambda v, t: t.filter(
        day__year=2024, day__month=2, instant__date=dt.date(2024, 1, 2), moment__hour=3, day__gt=dt.date(2024, 1, 1)
    ).values_list("id"),
    "numbers": lambda v, t: t.annotate(r=Round("real8", precision=1), g=Greatest("id", Value(9)))
    .filter(amount=Decimal("12.3")).values_list("r", "g", "amount"),
    "nulls": lambda v, t: t.annotate(
        n=Coalesce("name", Value("none"), output_field=CharField()), z=NullIf("id", Value(1)))
    .order_by("id").values_list("n", "z"),
    "unions": lambda v, t: v.filter(visits=10).values_list("url").union(v.filter(visits=20).values_list("url"))
    .order_by("url"),
    "values that are not there": lambda v, t: t.filter(name__isnull=True, amount=None).values_list("id"),
}  # fmt: skip


@pytest.mark.parametrize("name", QUERIES)
def test_answers_of_the_orm_are_postgresqls(name: str, orm: Any) -> None:
    def answer(alias: str) -> Any:
        found = QUERIES[name](orm.objects.using(alias), orm.typed.objects.using(alias))
        return found if isinstance(found, dict) else [str(row) for row in found]

    assert answer("default") == answer("theirs")


def test_rows_are_read_by_a_cursor_of_the_server(orm: Any) -> None:
    assert sum(each.visits for each in orm.objects.iterator(chunk_size=2)) == 60
    assert orm.objects.get(pk="./home").visits == 30
    assert not orm.objects.filter(pk="nothing").exists()


def test_inspectdb_finds_views_and_their_columns(orm: Any) -> None:
    def inspected(alias: str, **options: bool) -> list[str]:
        out = io.StringIO()
        call_command("inspectdb", database=alias, stdout=out, **options)
        return [line for line in out.getvalue().splitlines() if "managed" not in line]

    found = inspected("default", include_views=True)
    assert "class Visits(models.Model):" in found
    assert "    url = models.TextField(unique=True, blank=True, null=True)" in found
    fields = [line for line in found if " = models." in line and "unique" not in line]
    expected = [line for line in inspected("theirs") if " = models." in line and " url " not in line]
    assert fields == expected[-len(fields) :]
