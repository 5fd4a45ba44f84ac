"""Queries put together of forms: sub-queries, joins, sets, WITH, groups, windows, orders."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from tests.composed import world
from tests.composed.choices import Choices
from tests.composed.forms import CONSTANTS, OUTPUT, SORTED, TYPES, forms_of

_BETWEEN_TEXTS = re.compile(r"\|(?![^()]*\))")
_PLACE = re.compile(r"\{([a-z0-9]*)(!?)(?:=([^{}]*))?\}")
_PLAIN = re.compile(r"\w+(\.\w+)?(::\w+)?")
_PARAMETER = re.compile(r"\$(\d+)")
_BARE = re.compile(r"'[^']*'")


_SERIES = (
    ("generate_series(1, 4)", "i4"), ("generate_series(5, 1, -2)", "i4"), ("generate_series(3, 1)", "i4"),
    ("generate_series(timestamp '2024-01-30', '2024-03-03', '1 month')", "ts"),
    ("generate_series(timestamptz '2024-03-30', '2024-04-01', '12 hours')", "tz"),
    ("generate_series(timestamp '0044-03-15 BC', '0041-01-01 BC', '1 year 2 months 3 days')", "ts"),
    ("generate_series(timestamptz '2024-01-31 00:00+00', '2024-06-01', '1 mon 12:00')", "tz"),
    ("jsonb_array_elements('[1, \"x\", null]'::jsonb)", "jsonb"),
    ("jsonb_object_keys('{\"b\": 1, \"a\": 2}'::jsonb)", "text"),
    ("regexp_split_to_table('a,b,,c', ',')", "text"), ("string_to_table('Tea tea', ' ')", "text"),
    ("jsonb_array_elements_text('[\"a\", 2, null]'::jsonb)", "text"),
    ("generate_subscripts(ARRAY['p', 'q'], 1)", "i4"),
    ("unnest(ARRAY['x', NULL, 'Tea'])", "text"), ("unnest('{3,NULL,1}'::int[])", "i4"),
)  # fmt: skip
"""Functions that yield rows, with the kind of their column."""
_WINDOWED = (
    ("count(*)", "i8"), ("sum({i4})", "i8"), ("min({i4})", "i4"), ("max({text})", "text"), ("count({text})", "i8"),
    ("bool_or({bool})", "bool"), ("sum({num!})", "num"), ("max({date})", "date"),
)  # fmt: skip
"""Aggregates over windows."""


@dataclass(frozen=True)
class Column:
    text: str
    kind: str


@dataclass(frozen=True)
class Query:
    sql: str
    columns: tuple[str, ...]
    """The kinds of its columns, which are named c0, c1 …"""
    ordered: bool = False


@dataclass(frozen=True)
class Scope:
    """What expressions may name: its own columns, and those of the queries around it."""

    own: tuple[Column, ...] = ()
    outer: tuple[Column, ...] = ()
    level: int = 0

    def of(self, kind: str) -> list[Column]:
        return [*(c for c in self.own if c.kind == kind), *(c for c in self.outer if c.kind == kind)]

    def around(self) -> Scope:
        """For a sub-query: aggregates and window functions would be of another query there."""
        return Scope((), (*(c for c in self.own if _PLAIN.fullmatch(c.text)), *self.outer), self.level + 1)


@dataclass
class Parameters:
    """Constants that the statement has as parameters."""

    values: list[str] = field(default_factory=list)


@dataclass
class Generator:
    choices: Choices
    parameters: Parameters | None = None
    _names: int = 0
    _with: list[tuple[str, Query]] = field(default_factory=list)

    # --- expressions ------------------------------------------------------------------------------------------------
    def expression(self, kind: str, scope: Scope, depth: int) -> str:
        if depth <= 0 or not self.choices.percent(60):
            return self._atom(kind, scope)
        if depth > 1 and self.choices.percent(8):
            return self._scalar(kind, scope, depth)
        if kind == "bool" and depth > 1 and self.choices.percent(10):
            return self._subquery_test(scope, depth)
        return self._filled(self.choices.one(forms_of(kind)), scope, depth - 1)

    def _filled(self, form: str, scope: Scope, depth: int) -> str:
        def made(place: re.Match[str]) -> str:
            kind, atom, texts = place[1], place[2], place[3]
            if texts is not None:
                text = self.choices.one(_BETWEEN_TEXTS.split(texts))
                return text if not kind else _constant(text, kind)
            return self._atom(kind, scope) if atom else self.expression(kind, scope, depth)

        return _PLACE.sub(made, form)

    def _atom(self, kind: str, scope: Scope) -> str:
        columns = scope.of(kind)
        if columns and not self.choices.percent(20):
            return self.choices.one(columns).text
        if self.choices.percent(6):
            return f"NULL::{TYPES[kind]}"
        constant = self.choices.one(CONSTANTS[kind])
        if self.parameters is not None and self.choices.percent(50):
            plain = _BARE.search(constant)
            value = plain[0][1:-1] if plain else constant.split("::")[0]
            if "=>" not in constant and "ARRAY" not in constant:
                self.parameters.values.append(value.replace("''", "'"))
                cast = f"::{TYPES[kind]}" if self.choices.percent(60) else ""
                return f"${len(self.parameters.values)}{cast}"
        return constant if not constant.startswith("-") else f"({constant})"

    def _scalar(self, kind: str, scope: Scope, depth: int) -> str:
        """A sub-query of one row: of an aggregate, or of the first row in an order."""
        inner, text = self._from(scope.around(), depth - 2)
        where = self._where(inner, depth - 2)
        way = self.choices.below(3)
        if way == 0 and kind == "i8":
            return f"(SELECT count(*) FROM {text}{where})"
        if way <= 1 and kind in SORTED and kind not in ("bool", "uuid", "bytea", "ai", "ta"):
            name = self.choices.one(("min", "max"))
            return f"(SELECT {name}({self.expression(kind, inner, depth - 2)}) FROM {text}{where})"
        item = self.expression(kind, inner, depth - 2)
        keys = self._all_keys(inner)
        return f"(SELECT {item} FROM {text}{where} ORDER BY {keys} LIMIT 1)"

    def _subquery_test(self, scope: Scope, depth: int) -> str:
        kind = self.choices.one(SORTED)
        way = self.choices.below(6)
        inner, text = self._from(scope.around(), depth - 2)
        where = self._where(inner, depth - 2)
        if way == 0:
            return f"({self.choices.one(('', 'NOT '))}EXISTS (SELECT 1 FROM {text}{where}))"
        left = self.expression(kind, scope, depth - 2)
        item = self.expression(kind, inner, depth - 2)
        if way == 1:
            return f"({left} IN (SELECT {item} FROM {text}{where}))"
        if way == 2:
            return f"({left} NOT IN (SELECT {item} FROM {text}{where}))"
        if way == 3:
            operator, some = self.choices.one(("=", "<", ">=", "<>")), self.choices.one(("ANY", "ALL", "SOME"))
            return f"({left} {operator} {some} (SELECT {item} FROM {text}{where}))"
        other = self.choices.one(SORTED)
        pair = f"({left}, {self.expression(other, scope, depth - 2)})"
        items = f"{item}, {self.expression(other, inner, depth - 2)}"
        return f"({pair} {self.choices.one(('', 'NOT '))}IN (SELECT {items} FROM {text}{where}))"

    # --- FROM -------------------------------------------------------------------------------------------------------
    def _name(self) -> str:
        self._names += 1
        return f"t{self._names}"

    def _source(self, scope: Scope, depth: int) -> tuple[str, list[Column]]:
        way = self.choices.below(10) if depth > 0 else self.choices.below(5)
        name = self._name()
        if way <= 4 or (way == 9 and not self._with):
            each = world.TABLES[way if way < 3 else 0]
            return f"{each.name} AS {name}", [
                Column(text.format(f"{name}.{column}"), kind) for column, text, kind in world.columns(each)
            ]
        if way == 5:
            return self._values(name)
        if way == 6:
            return self._series(name)
        if way in (7, 8):
            query = self.query(depth - 1, Scope((), scope.outer if way == 7 else (), scope.level))
            return f"({query.sql}) AS {name}", [Column(f"{name}.c{n}", kind) for n, kind in enumerate(query.columns)]
        with_name, query = self.choices.one(self._with)
        return f"{with_name} AS {name}", [Column(f"{name}.c{n}", kind) for n, kind in enumerate(query.columns)]

    def _values(self, name: str) -> tuple[str, list[Column]]:
        kinds = [self.choices.one(OUTPUT) for _ in range(1 + self.choices.below(3))]
        kinds = [kind for kind in kinds if kind not in ("num", "mood")] or ["i4"]
        rows = []
        for number in range(1 + self.choices.below(4)):
            cells = [
                f"NULL::{TYPES[kind]}" if self.choices.percent(15) else self.choices.one(CONSTANTS[kind])
                for kind in kinds
            ]  # fmt: skip
            rows.append(f"({number}, {', '.join(cells)})")
        names = [f"c{n}" for n in range(len(kinds) + 1)]
        return (
            f"(VALUES {', '.join(rows)}) AS {name}({', '.join(names)})",
            [Column(f"{name}.{c}", kind) for c, kind in zip(names, ["i4", *kinds], strict=True)],
        )

    def _series(self, name: str) -> tuple[str, list[Column]]:
        text, kind = self.choices.one(_SERIES)
        return f"{text} AS {name}(c0)", [Column(f"{name}.c0", kind)]

    def _from(self, scope: Scope, depth: int) -> tuple[Scope, str]:
        text, columns = self._source(scope, depth)
        joins = self.choices.below(3) if depth > 0 else 0
        for _ in range(joins):
            text, columns = self._join(text, columns, scope, depth - 1)
        return Scope(tuple(columns), scope.outer, scope.level), text

    def _join(self, left: str, columns: list[Column], scope: Scope, depth: int) -> tuple[str, list[Column]]:
        way = self.choices.below(9)
        if way == 8 and depth > 0:  # LATERAL
            seen = Scope((), (*columns, *scope.outer), scope.level + 1)
            name, query = self._name(), self.query(depth - 1, seen)
            found = [Column(f"{name}.c{n}", kind) for n, kind in enumerate(query.columns)]
            kind = self.choices.one(("CROSS JOIN LATERAL ({}) AS {}", "LEFT JOIN LATERAL ({}) AS {} ON true"))
            return f"{left} {kind.format(query.sql, name)}", [*columns, *found]
        if way == 7 and any(column.kind in ("ai", "ta") for column in columns):
            arrays = [column for column in columns if column.kind in ("ai", "ta")]
            array, name = self.choices.one(arrays), self._name()
            element = "i4" if array.kind == "ai" else "text"
            if self.choices.percent(30):
                named = f"{left} CROSS JOIN unnest({array.text}) WITH ORDINALITY AS {name}(c0, c1)"
                return named, [*columns, Column(f"{name}.c0", element), Column(f"{name}.c1", "i8")]
            return f"{left} CROSS JOIN unnest({array.text}) AS {name}(c0)", [*columns, Column(f"{name}.c0", element)]
        right, found = self._source(Scope((), scope.outer, scope.level), depth)
        both = [*columns, *found]
        if way == 6:
            return f"{left} CROSS JOIN {right}", both
        pairs = [(a, b) for a in columns for b in found if a.kind == b.kind and a.kind in SORTED]
        if not pairs:
            return f"{left} CROSS JOIN {right}", both
        one, other = self.choices.one(pairs)
        kind = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "INNER JOIN", "LEFT JOIN", "JOIN", "JOIN", "JOIN")[way]
        condition = f"{one.text} = {other.text}"
        if kind != "FULL JOIN" and self.choices.percent(30):
            condition += f" AND {self.expression('bool', Scope(tuple(both), scope.outer, scope.level), 1)}"
        return f"{left} {kind} {right} ON {condition}", both

    def _shared(self) -> tuple[Scope, str]:
        """Two tables joined by columns of one name, which are one column then."""
        left, right = self.choices.one(((0, 1), (0, 2), (1, 2), (1, 0)))
        names = self._name(), self._name()
        one, other = ({n: (text, k) for n, text, k in world.columns(world.TABLES[t])} for t in (left, right))
        common = [name for name in one if name in other]
        kind = self.choices.one(("JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN"))
        used = (
            common if self.choices.percent(20) else sorted({self.choices.one(common), self.choices.one(("id", "i4"))})
        )
        columns = [Column(one[name][0].format(name), one[name][1]) for name in used]
        for alias, found in zip(names, (one, other), strict=True):
            columns += [Column(text.format(f"{alias}.{n}"), k) for n, (text, k) in found.items()]
        tables = f"{world.TABLES[left].name} AS {names[0]}", f"{world.TABLES[right].name} AS {names[1]}"
        if used == common:
            return Scope(tuple(columns)), f"{tables[0]} NATURAL {kind} {tables[1]}"
        return Scope(tuple(columns)), f"{tables[0]} {kind} {tables[1]} USING ({', '.join(used)})"

    def _where(self, scope: Scope, depth: int) -> str:
        return f" WHERE {self.expression('bool', scope, max(1, depth))}" if self.choices.percent(50) else ""

    def _all_keys(self, scope: Scope) -> str:
        """Every column of the scope that can be sorted by: an order without ties that differ in what is shown."""
        kinds = [column.text for column in scope.own if column.kind != "jsonb"]
        return ", ".join(self._ordered(text) for text in kinds) or "1"

    def _ordered(self, text: str) -> str:
        return text + self.choices.one(("", " DESC", " NULLS FIRST", " DESC NULLS LAST"))

    # --- queries ----------------------------------------------------------------------------------------------------
    def query(self, depth: int, scope: Scope, kinds: tuple[str, ...] | None = None, *, named: bool = True) -> Query:
        """Columns that are not ``named`` are named by the servers."""
        if depth > 0 and self.choices.percent(15):
            return self._set(depth, scope, kinds)
        return self._select(depth, scope, kinds, named=named)

    def _set(self, depth: int, scope: Scope, kinds: tuple[str, ...] | None) -> Query:
        kinds = kinds or tuple(self.choices.one(OUTPUT) for _ in range(1 + self.choices.below(3)))
        kinds = tuple("i4" if kind == "jsonb" else kind for kind in kinds)
        operator = self.choices.one(("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"))
        left, right = (self._side(depth - 1, scope, kinds) for _ in range(2))
        sql = f"{left} {operator} {right}"
        if self.choices.percent(15):
            sql = f"({sql}) {self.choices.one(('UNION ALL', 'UNION', 'EXCEPT'))} {self._side(depth - 1, scope, kinds)}"
        return self._limited(sql, kinds)

    def _side(self, depth: int, scope: Scope, kinds: tuple[str, ...]) -> str:
        """Of a set operation: a SELECT, or the first rows of one in an order of all that it shows."""
        side = self._select(depth, scope, kinds, bare=True).sql
        if not self.choices.percent(20):
            return side
        order = ", ".join(self._ordered(str(n + 1)) for n in range(len(kinds)))
        return f"({side} ORDER BY {order} LIMIT {1 + self.choices.below(5)})"

    def _limited(self, sql: str, kinds: tuple[str, ...]) -> Query:
        """With an order by all columns, and perhaps the first or some later rows of it."""
        if "jsonb" in kinds or not self.choices.percent(30):
            return Query(sql, kinds)
        sql += " ORDER BY " + ", ".join(self._ordered(str(n + 1)) for n in range(len(kinds)))
        if self.choices.percent(30):
            sql += f" LIMIT {1 + self.choices.below(5)}"
        if self.choices.percent(20):
            sql += f" OFFSET {self.choices.below(4)}"
        return Query(sql, kinds, ordered=True)

    def _select(
        self, depth: int, scope: Scope, kinds: tuple[str, ...] | None, *, bare: bool = False, named: bool = True
    ) -> Query:
        if scope.level == 0 and not scope.outer and self.choices.percent(12):
            inner, text = self._shared()
        else:
            inner, text = self._from(scope, depth)
        where, group, having = self._where(inner, depth), "", ""
        if not named and self.choices.percent(15):
            return Query(f"SELECT * FROM {text}{where}", ())
        if self.choices.percent(30):
            inner, group, having = self._grouped(inner, depth)
        if self.choices.percent(25):
            inner = self._windowed(inner, depth)
        if kinds is None:
            kinds = tuple(self.choices.one(OUTPUT) for _ in range(1 + self.choices.below(4)))
        items = [self.expression(kind, inner, depth + 1) for kind in kinds]
        selected = ", ".join(f"{item} AS c{n}" if named else item for n, item in enumerate(items))
        distinct, ending = "", ""
        if "jsonb" not in kinds and self.choices.percent(15):
            distinct = "DISTINCT "
            if not bare and self.choices.percent(40):  # the first of each, in an order of all that is shown
                distinct = f"DISTINCT ON ({items[0]}) "
                ending = " ORDER BY " + ", ".join(
                    self._ordered(text) for text in [items[0], *(str(n + 1) for n in range(1, len(items)))]
                )
        sql = f"SELECT {distinct}{selected} FROM {text}{where}{group}{having}{ending}"
        return Query(sql, kinds) if bare or ending else self._limited(sql, kinds)

    def _report(self, depth: int) -> Query:
        """As tools write them: groups by places or names of columns, sorted by them."""
        inner, text = self._from(Scope(), depth)
        where = self._where(inner, depth)
        kinds = [
            self.choices.one(("date", "text", "ts", "i4", "tz", "bool", "mood"))
            for _ in range(1 + self.choices.below(2))
        ]
        keys = [self.expression(kind, inner, 1) for kind in kinds]
        plain = next((column.text for column in inner.own if column.kind in SORTED), "1 + 1")
        keys = [key if _has_column(key, inner) and "$" not in key and "SELECT" not in key else plain for key in keys]
        values = [self._aggregate(inner, depth) for _ in range(1 + self.choices.below(3))]
        items = [*keys, *(value.text for value in values)]
        selected = ", ".join(f"{item} AS c{n}" for n, item in enumerate(items))
        places = [self.choices.one((str(n + 1), f"c{n}", keys[n])) for n in range(len(keys))]
        having = f" HAVING {self.choices.one(('count(*) > 0', 'count(*) > 1'))}" if self.choices.percent(20) else ""
        order = ", ".join(self._ordered(self.choices.one((str(n + 1), f"c{n}"))) for n in range(len(keys)))
        sql = f"SELECT {selected} FROM {text}{where} GROUP BY {', '.join(places)}{having} ORDER BY {order}"
        return Query(sql, (*kinds, *(value.kind for value in values)), ordered=True)

    def _grouped(self, scope: Scope, depth: int) -> tuple[Scope, str, str]:
        kinds = [self.choices.one(SORTED) for _ in range(self.choices.below(3))]
        plain = [Column(self.expression(kind, scope, 1), kind) for kind in kinds]
        plain = [c for c in plain if _has_column(c.text, scope) and "$" not in c.text and "SELECT" not in c.text]
        keys = [c.text for c in plain]
        aggregates = [self._aggregate(scope, depth) for _ in range(1 + self.choices.below(3))]
        text = ""
        if keys:
            sets = self.choices.below(8)
            listed = ", ".join(keys)
            text = f" GROUP BY {listed}"
            if sets == 5:
                text = f" GROUP BY ROLLUP ({listed})"
            elif sets == 6:
                text = f" GROUP BY CUBE ({listed})"
            elif sets == 7:
                text = f" GROUP BY GROUPING SETS (({listed}), ({keys[-1]}), ())"
            if sets >= 5:
                aggregates.append(Column(f"grouping({keys[0]})", "i4"))
        found = Scope((*plain, *aggregates), scope.outer, scope.level)
        having = f" HAVING {self.expression('bool', found, 1)}" if self.choices.percent(20) else ""
        return found, text, having

    def _aggregate(self, scope: Scope, depth: int) -> Column:
        def any_of(kind: str) -> str:
            return self.expression(kind, scope, min(depth, 1))

        def all_keys() -> str:
            return self._all_keys(scope)

        way, text = self.choices.below(24), ""
        kind = self.choices.one(SORTED)
        if way <= 2:
            text, kind = ("count(*)", f"count({any_of(kind)})", f"count(DISTINCT {any_of(kind)})")[way], "i8"
        elif way <= 5:
            kind = self.choices.one(("i4", "num", "date", "ts", "text", "f8", "i8", "iv", "tz", "time", "i2", "mood"))
            text = f"{self.choices.one(('min', 'max'))}({any_of(kind)})"
        elif way <= 7:
            of, kind = self.choices.one((("i4", "i8"), ("i2", "i8"), ("i8", "num"), ("num", "num"), ("iv", "iv")))
            text = (
                f"sum({self.choices.one(('', 'DISTINCT '))}{any_of(of) if of != 'num' else self._atom('num', scope)})"
            )
        elif way == 8:
            text, kind = f"avg({self.choices.one(('', 'DISTINCT '))}{any_of('i4')})::numeric(20,4)", "num"
        elif way == 9:
            text, kind = f"{self.choices.one(('bool_and', 'bool_or', 'every'))}({any_of('bool')})", "bool"
        elif way == 10:
            item = any_of("text")
            text, kind = f"string_agg({item}, ',' ORDER BY {self._ordered(item)})", "text"
        elif way == 11:
            item = any_of("i4")
            text, kind = f"array_agg({item} ORDER BY {self._ordered(item)})", "ai"
        elif way == 12:
            item = any_of("text")
            text, kind = f"array_agg(DISTINCT {item} ORDER BY {item})", "ta"
        elif way == 13:
            of = self.choices.one(("i4", "text", "date", "num", "f8", "ts"))
            share, order = self.choices.one(("0.5", "0", "1", "0.25")), self._ordered(any_of(of))
            text, kind = f"percentile_disc({share}) WITHIN GROUP (ORDER BY {order})", of
            text = text.replace(" NULLS FIRST", "").replace(" NULLS LAST", "")
        elif way == 14:
            share = self.choices.one(("0.5", "0.9"))
            text, kind = f"round(percentile_cont({share}) WITHIN GROUP (ORDER BY {any_of('i4')})::numeric, 4)", "num"
        elif way == 15:
            text, kind = f"max({any_of('i4')}) FILTER (WHERE {any_of('bool')})", "i4"
        elif way == 16:
            text, kind = f"{self.choices.one(('bit_and', 'bit_or', 'bit_xor'))}({any_of('i4')})", "i4"
        elif way == 17:
            item = any_of(self.choices.one(("i4", "text", "bool", "date")))
            text, kind = f"jsonb_agg({item} ORDER BY {all_keys()})", "jsonb"
        elif way == 18:
            text, kind = f"count(*) FILTER (WHERE {any_of('bool')})", "i8"
        elif way == 20:
            of = self.choices.one(("date", "ts", "tz", "f8", "iv", "bool", "bytea"))
            text, kind = f"array_agg({any_of(of)} ORDER BY {all_keys()})::text", "text"
        elif way == 21:
            key = f"coalesce({any_of('i4')}, 0)::text"
            text, kind = f"jsonb_object_agg({key}, {any_of('text')} ORDER BY {all_keys()})", "jsonb"
        elif way == 22:
            of = self.choices.one(("date", "time"))
            text, kind = f"min({any_of(of)} - {self._atom(of, scope)})", "i4" if of == "date" else "iv"
        elif way == 23:
            text, kind = f"round(stddev_samp({any_of('i4')})::numeric, 3)", "num"
        else:
            text, kind = f"array_agg({any_of('i4')} ORDER BY {all_keys()})", "ai"
        if way in (3, 6, 9, 10, 11) and self.choices.percent(25):
            text += f" FILTER (WHERE {any_of('bool')})"
        return Column(text, kind)

    def _windowed(self, scope: Scope, depth: int) -> Scope:
        found = [self._window(scope) for _ in range(1 + self.choices.below(2))]
        return replace(scope, own=(*found, *scope.own))

    def _window(self, scope: Scope) -> Column:
        def any_of(kind: str) -> str:
            return self.expression(kind, scope, 1)

        parts = f"PARTITION BY {any_of(self.choices.one(SORTED))} " if self.choices.percent(40) else ""
        kinds = [c for c in scope.own if c.kind in SORTED]
        total = ", ".join(self._ordered(c.text) for c in kinds[:6])
        whole = ", ".join([total, *(c.text for c in kinds[6:])]) if kinds else "1"
        key_kind = self.choices.one(("i4", "text", "f8", "date", "num", "i8", "ts"))
        key = any_of(key_kind)
        way = self.choices.below(9)
        if way == 0:
            return Column(f"row_number() OVER ({parts}ORDER BY {whole})", "i8")
        if way == 1:
            return Column(
                f"{self.choices.one(('rank', 'dense_rank'))}() OVER ({parts}ORDER BY {self._ordered(key)})", "i8"
            )
        if way == 2:
            kind = self.choices.one(SORTED)
            name = self.choices.one(("lag", "lead"))
            more = self.choices.one(("", ", 1", ", 2", f", 1, {self._atom(kind, scope)}"))
            return Column(f"{name}({any_of(kind)}{more}) OVER ({parts}ORDER BY {whole})", kind)
        if way == 3:
            kind = self.choices.one(SORTED)
            name = self.choices.one(("first_value({})", "last_value({})", "nth_value({}, 2)"))
            mode = self.choices.one(("ROWS", "ROWS", "GROUPS", "RANGE UNBOUNDED"))
            return Column(f"{name.format(any_of(kind))} OVER ({parts}ORDER BY {whole}{self._frame(mode)})", kind)
        if way == 4:
            return Column(
                f"{self.choices.one(('percent_rank', 'cume_dist'))}() OVER ({parts}ORDER BY {self._ordered(key)})", "f8"
            )
        if way == 5:
            return Column(f"ntile({1 + self.choices.below(4)}) OVER ({parts}ORDER BY {whole})", "i4")
        aggregate, kind = self.choices.one(_WINDOWED)
        aggregate = self._filled(aggregate, scope, 1)
        if self.choices.percent(20):
            aggregate += f" FILTER (WHERE {any_of('bool')})"
        if way == 6:
            return Column(f"{aggregate} OVER ({parts}ORDER BY {whole}{self._frame('ROWS')})", kind)
        if way == 7:
            frame = self._frame(self.choices.one(("GROUPS", "RANGE UNBOUNDED")))
            return Column(f"{aggregate} OVER ({parts}ORDER BY {self._ordered(key)}{frame})", kind)
        number = self.choices.one(("i4", "i8", "num", "date", "ts", "f8"))
        key = self._atom(number, scope)
        offset = {"date": "'1 month'", "ts": "'30 days'", "num": "1.5", "f8": "2.5::float8"}.get(number, "5")
        bounds = self.choices.one((
            f"BETWEEN {offset} PRECEDING AND CURRENT ROW", f"BETWEEN {offset} PRECEDING AND {offset} FOLLOWING",
            f"BETWEEN CURRENT ROW AND {offset} FOLLOWING",
        ))  # fmt: skip
        return Column(f"{aggregate} OVER ({parts}ORDER BY {self._ordered(key)} RANGE {bounds}{self._exclude()})", kind)

    def _frame(self, mode: str) -> str:
        if not self.choices.percent(60):
            return ""
        if mode == "RANGE UNBOUNDED":
            bounds = self.choices.one(("UNBOUNDED PRECEDING", "BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                "BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "CURRENT ROW"))  # fmt: skip
            return f" RANGE {bounds}{self._exclude()}"
        bounds = self.choices.one(("UNBOUNDED PRECEDING", "1 PRECEDING", "BETWEEN 1 PRECEDING AND 1 FOLLOWING",
            "BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "BETWEEN 2 FOLLOWING AND 3 FOLLOWING",
            "BETWEEN CURRENT ROW AND 1 FOLLOWING", "BETWEEN 2 PRECEDING AND 1 PRECEDING"))  # fmt: skip
        return f" {mode} {bounds}{self._exclude()}"

    def _exclude(self) -> str:
        return self.choices.one(
            ("", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE TIES", " EXCLUDE GROUP", " EXCLUDE NO OTHERS")
        )

    # --- statements -------------------------------------------------------------------------------------------------
    def statement(self) -> Query:
        depth = self.choices.below(4)
        heads: list[str] = []
        for _ in range(self.choices.below(3) if self.choices.percent(25) else 0):
            name = f"w{len(self._with) + 1}"
            query = self._recursive(name) if self.choices.percent(30) else self.query(1, Scope())
            columns = ", ".join(f"c{n}" for n in range(len(query.columns)))
            hint = self.choices.one(("", "", " MATERIALIZED", " NOT MATERIALIZED"))
            heads.append(f"{name}({columns}) AS{hint} ({query.sql})")
            self._with.append((name, query))
        way = self.choices.below(6)
        query = self._report(depth) if way == 5 else self.query(depth, Scope(), named=way < 3)
        if not query.ordered:
            query = self._ending(query)
        heads = _named(heads, query.sql)
        if not heads:
            return query
        return replace(query, sql=f"WITH RECURSIVE {', '.join(heads)} {query.sql}")

    def _recursive(self, name: str) -> Query:
        kind = self.choices.one(("i4", "text", "i8", "ai", "date", "ts"))
        scope = Scope((Column(f"{name}.c0", "i4"), Column(f"{name}.c1", kind)))
        operator = self.choices.one(("UNION ALL", "UNION"))
        first = self._atom(kind, Scope())
        cast = f"({first})::{TYPES[kind]}"
        then = self.expression(kind, scope, 2)
        limit = 2 + self.choices.below(3)
        items = f"{name}.c0 + 1, ({then})::{TYPES[kind]}"
        sql = f"SELECT 1, {cast} {operator} SELECT {items} FROM {name} WHERE {name}.c0 < {limit}"
        return Query(sql, ("i4", kind))

    def _ending(self, query: Query) -> Query:
        if " ORDER BY " in query.sql.rsplit(")", 1)[-1]:
            return replace(query, ordered=True)
        return query


def _named(heads: list[str], sql: str) -> list[str]:
    """Those that something names: PostgreSQL checks the others as well, but nobody waits for their rows."""
    kept: list[str] = []
    for head in reversed(heads):
        name = head.partition("(")[0]
        if any(re.search(rf"\b{name}\b(?!\.)", text) for text in (sql, *kept)):
            kept.insert(0, head)
    return kept


def _constant(text: str, kind: str) -> str:
    if kind in ("i4", "i2", "num", "f4", "f8") and re.fullmatch(r"-?\d+(\.\d+)?", text):
        return f"({text})" if text.startswith("-") else text
    return "'" + text.replace("'", "''") + "'"


def _has_column(text: str, scope: Scope) -> bool:
    return any(column.text in text for column in scope.own)


def make(choices: Choices, *, parameters: bool) -> tuple[Query, list[str]]:
    generator = Generator(choices, Parameters() if parameters else None)
    query = generator.statement()
    if generator.parameters is None:
        return query, []
    used = sorted({int(number) for number in _PARAMETER.findall(query.sql)})
    places = {number: place for place, number in enumerate(used, start=1)}
    sql = _PARAMETER.sub(lambda found: f"${places[int(found[1])]}", query.sql)
    return replace(query, sql=sql), [generator.parameters.values[number - 1] for number in used]
