"""Random continuous queries, each written twice: in our SQL, and as one Spark batch query over typed rows."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from tests.differential.oracles import CASTS, ORACLES, TYPES, Use

_LEAVES: dict[str, tuple[str, ...]] = {
    "b": ("b",),
    "i": ("small",),
    "i1": ("i1",),
    "i2": ("i2",),
    "i4": ("i4", "Mixed"),
    "i8": ("i8", "id"),
    "x": ("x",),
    "u": ("u",),
    "p": ("pos",),
    "f8": ("f8", "x"),
    "f4": ("f4",),
    "n": ("n",),
    "w": ("w",),
    "s": ("s", "s5", "k"),
    "k": ("k",),
    "js": ("js",),
    "y": ("bin",),
    "d": ("d",),
    "tm": ("tm",),
    "ts": ("ts",),
    "tz": ("tz",),
    "arr": ("arr",),
    "words": ("words",),
    "m": ("m",),
}
_WIDER = {"s": ("s", "k"), "i4": ("i4", "i"), "f8": ("f8", "x", "u", "p"), "x": ("x", "u", "p")}
_NARROW_DOMAINS = frozenset({"i", "i8", "s", "k", "n", "ts"})
_NARROW_LEAVES = {"i8": ("id",), "s": ("k",)}
_KEYS = ("i", "b", "k", "s", "d", "ts", "tz", "tm", "n", "i4", "i8", "y")
_VALUES = tuple(domain for domain in _LEAVES if domain not in ("arr", "words", "m"))


@dataclass(frozen=True)
class Text:
    """An expression: ours, the oracle's, and its domain."""

    ours: str
    oracle: str
    domain: str


@dataclass(frozen=True)
class OutputColumn:
    name: str
    type: str | None  # None where only the value is compared
    approximate: bool
    unordered: bool = False


@dataclass(frozen=True)
class Query:
    """``oracle`` reads the table ``rows``; ``wanted`` are the capabilities that it was written to use."""

    relation: str
    sql: str
    oracle: str
    columns: tuple[OutputColumn, ...]
    aggregates: bool
    wanted: tuple[str, ...] = field(default=())


class QueryWriter:
    """Draws queries over one relation; the functions that were used least are drawn first."""

    def __init__(self, rng: random.Random, relation: str, used: Counter[str], *, narrow: bool = False) -> None:
        self._rng = rng
        self._relation = relation
        self._used = used
        self._narrow = narrow
        self._wanted: list[str] = []

    # --- expressions
    def _leaf(self, domain: str) -> Text:
        names = _NARROW_LEAVES.get(domain, _LEAVES[domain]) if self._narrow else _LEAVES[domain]
        name = self._rng.choice(names)
        return Text('"Mixed"' if name == "Mixed" else name, name, domain)

    def _fits(self, use: Use) -> bool:
        if not self._narrow:
            return True
        return "st." not in use.oracle and all(
            slot in _NARROW_DOMAINS for slot in use.arguments if isinstance(slot, str)
        )

    def _write(self, use: Use, depth: int) -> Text:
        ours, oracle = [], []
        for slot in use.arguments:
            part = self.expression(slot, depth - 1) if isinstance(slot, str) else None
            constant = "" if isinstance(slot, str) else self._rng.choice(slot)
            ours.append(part.ours if part else constant)
            oracle.append(part.oracle if part else constant)
        return Text(use.ours.format(*ours), use.oracle.format(*oracle), use.result)

    def expression(self, domain: str, depth: int) -> Text:
        """A value of the domain: a column, or a function of such."""
        candidates = [
            (name, use)
            for name, uses in (*ORACLES.items(), ("cast", CASTS))
            for use in uses
            if use.result in _WIDER.get(domain, (domain,)) and self._fits(use)
        ]
        if not candidates or depth <= 0 or self._rng.random() < 0.35:
            return self._leaf(domain)
        return self._least_used(candidates, depth)

    def _least_used(self, candidates: list[tuple[str, Use]], depth: int) -> Text:
        least = min(self._used[name] for name, _ in candidates)
        name, use = self._rng.choice([pair for pair in candidates if self._used[pair[0]] <= least + 1])
        self._used[name] += 1
        self._wanted.append(name)
        return self._write(use, depth)

    def fresh(self) -> Text:
        """Any function at all, the least used first."""
        everything = [
            (name, use) for name, uses in (*ORACLES.items(), ("cast", CASTS)) for use in uses if self._fits(use)
        ]
        least = min(self._used[name] for name, _ in everything)
        return self._least_used(
            [pair for pair in everything if self._used[pair[0]] == least], self._rng.choice((1, 2, 2, 3))
        )

    # --- queries
    def projection(self, outputs: int) -> Query:
        self._wanted = []
        items = [Text("id", "id", "i8"), *(self.fresh() for _ in range(outputs))]
        where = self.expression("b", 3) if self._rng.random() < 0.6 and not self._narrow else None
        columns = [_column(f"c{i}", item.domain) for i, item in enumerate(items)]
        return Query(
            self._relation,
            f"SELECT {', '.join(f'{item.ours} AS c{i}' for i, item in enumerate(items))} FROM {self._relation}"
            + (f" WHERE {where.ours}" if where else ""),
            f"SELECT {', '.join(f'{item.oracle} AS c{i}' for i, item in enumerate(items))} FROM rows"
            + (f" WHERE {where.oracle}" if where else ""),
            tuple(columns),
            False,
            tuple(self._wanted),
        )

    def aggregation(self, outputs: int) -> Query:
        self._wanted = []
        return _AggregationWriter(self, self._rng).write(outputs)


def _column(name: str, domain: str) -> OutputColumn:
    return OutputColumn(name, TYPES.get(domain), domain == "t", domain == "bag")


class _AggregationWriter:
    """One GROUP BY query. The oracle computes keys, arguments and filters in a sub-query of their own."""

    def __init__(self, writer: QueryWriter, rng: random.Random) -> None:
        self._writer = writer
        self._rng = rng
        self._inner: list[str] = []
        self._by_time = False

    def _column_of(self, oracle: str) -> str:
        self._inner.append(oracle)
        return f"v{len(self._inner) - 1}"

    def write(self, outputs: int) -> Query:
        rng, writer = self._rng, self._writer
        keys = [self._key() for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3)))]
        names = [self._column_of(key.oracle) for key in keys]
        ours: list[str] = []
        oracle: list[str] = []
        columns: list[OutputColumn] = []
        grouped: list[str] = []
        for number, (key, name) in enumerate(zip(keys, names, strict=True)):
            way = (
                rng.choice(("expression", "name", "ordinal", "hidden"))
                if number
                else rng.choice(("expression", "name", "ordinal"))
            )
            if way != "hidden":
                ours.append(f"{key.ours} AS k{number}")
                oracle.append(f"{name} AS k{number}")
                columns.append(_column(f"k{number}", key.domain))
            grouped.append({"name": f"k{number}", "ordinal": str(len(ours))}.get(way, key.ours))
        for number in range(outputs):
            our, their, type_, approximate = self._finished()
            ours.append(f"{our} AS a{number}")
            oracle.append(f"{their} AS a{number}")
            columns.append(OutputColumn(f"a{number}", type_, approximate))
        where = writer.expression("b", 2) if rng.random() < 0.5 and not writer._narrow else None
        having = self._having() if rng.random() < 0.4 else None
        sql = f"SELECT {', '.join(ours)} FROM {writer._relation}"
        sql += " WITH ('timestamp' = 'ts')" if self._by_time else ""
        sql += f" WHERE {where.ours}" if where else ""
        sql += f" GROUP BY {', '.join(grouped)}" if grouped else ""
        sql += f" HAVING {having[0]}" if having else ""
        inner = ", ".join(["1 AS one", *(f"{text} AS v{i}" for i, text in enumerate(self._inner))])
        batch = f"SELECT {', '.join(oracle)} FROM (SELECT {inner} FROM rows" + (
            f" WHERE {where.oracle})" if where else ")"
        )
        batch += f" GROUP BY {', '.join(names)}" if names else ""
        batch += f" HAVING {having[1]}" if having else ""
        return Query(writer._relation, sql, batch, tuple(columns), True, tuple(writer._wanted))

    def _key(self) -> Text:
        if not self._writer._narrow and self._rng.random() < 0.2:
            self._writer._used["normalized key"] += 1
            return self._writer._leaf(self._rng.choice(("f8", "f4")))
        domains = [d for d in _KEYS if not self._writer._narrow or d in _NARROW_DOMAINS]
        if self._rng.random() < 0.4:
            return self._writer._leaf(self._rng.choice(("k", "i")))
        return self._writer.expression(self._rng.choice(domains), 2)

    # --- aggregates
    def _argument(self, domain: str, depth: int = 2) -> tuple[str, str, str]:
        """Our argument, our FILTER clause, and the oracle's column, NULL where the filter leaves a row out."""
        value = self._writer.expression(domain, depth)
        if self._rng.random() < 0.3 and not self._writer._narrow:
            condition = self._writer.expression("b", 2)
            column = self._column_of(f"CASE WHEN {condition.oracle} THEN {value.oracle} END")
            return value.ours, f" FILTER (WHERE {condition.ours})", column
        return value.ours, "", self._column_of(value.oracle)

    def _domain(self, *domains: str) -> str:
        return self._rng.choice([d for d in domains if not self._writer._narrow or d in _NARROW_DOMAINS])

    def _aggregate(self) -> tuple[str, str, str | None, bool]:
        plain = ("rows", "count", "sum", "sum", "avg", "avg", "min", "max", "moments")
        kind = self._rng.choice((*plain, "distinct", "distinct", "logical", "timed", "ordered"))
        if kind == "rows":
            if self._rng.random() < 0.5 or self._writer._narrow:
                return "count(*)", "count(1)", "BIGINT", False
            condition = self._writer.expression("b", 2)
            column = self._column_of(f"CASE WHEN {condition.oracle} THEN 1 END")
            return f"count(*) FILTER (WHERE {condition.ours})", f"count({column})", "BIGINT", False
        if kind == "count":
            value, where, column = self._argument(self._domain("s", "i", "js", "m", "tz"))
            return f"count({value}){where}", f"count({column})", "BIGINT", False
        if kind in ("min", "max"):
            domain = self._domain(*(d for d in _VALUES if d not in ("b", "y")))
            value, where, column = self._argument(domain)
            type_ = TYPES[domain]
            return f"{kind}({value}){where}", f"{kind}({column})", type_, False
        other = {
            "distinct": self._distinct,
            "logical": self._logical,
            "timed": self._timed,
            "ordered": self._ordered,
        }.get(kind)
        if other is not None:
            return other()
        domain = self._domain("i", "i1", "i2", "i4", "i8", "n", "w", "x")
        value, where, column = self._argument(domain)
        if kind == "moments":
            name, spark = self._rng.choice(_MOMENTS)
            # In Spark a sample of one has no variance, but NaN under some settings: say it.
            least = 1 if spark.endswith("_pop") else 2
            oracle = f"CASE WHEN count({column}) >= {least} THEN {spark}(cast({column} as double)) END"
            return f"{name}({value}){where}", oracle, "DOUBLE", True
        return (f"{kind}({value}){where}", *(_sum if kind == "sum" else _average)(domain, column))

    def _distinct(self) -> tuple[str, str, str | None, bool]:
        kind = self._rng.choice(("count", "count", "sum", "avg", "moments"))
        if kind == "count":
            # Narrow domains, so that values come again; wide ones, so that they do not.
            domain = self._domain("i", "k", "b", "n", "s", "i8", "d", "tm", "ts", "tz", "y", "f8", "f4", "w")
            value, where, column = self._argument(domain)
            return f"count(DISTINCT {value}){where}", f"count(DISTINCT {column})", "BIGINT", False
        value, where, column = self._argument(domain := self._domain("i", "n", "i" if kind == "moments" else "i8"))
        if kind == "moments":
            name, spark = self._rng.choice(_MOMENTS)
            least = 1 if spark.endswith("_pop") else 2
            moments = f"{spark}(DISTINCT cast({column} as double))"
            oracle = f"CASE WHEN count(DISTINCT {column}) >= {least} THEN {moments} END"
            return f"{name}(DISTINCT {value}){where}", oracle, "DOUBLE", True
        made = (_sum if kind == "sum" else _average)(domain, column, "DISTINCT ")
        return (f"{kind}(DISTINCT {value}){where}", *made)

    def _logical(self) -> tuple[str, str, str | None, bool]:
        if self._writer._narrow:  # it has no column of booleans
            value, where, column = self._argument("i")
            value, column = f"({value} > 0)", f"({column} > 0)"
        else:
            value, where, column = self._argument("b")
        name, spark = self._rng.choice((("bool_and", "bool_and"), ("bool_or", "bool_or"), ("every", "bool_and")))
        return f"{name}({value}){where}", f"{spark}({column})", "BOOLEAN", False

    def _timed(self) -> tuple[str, str, str | None, bool]:
        """Of equal times the least value is the first, and the greatest the last."""
        self._by_time = True
        domain = self._domain("i", "k", "n", "x", "ts", "tm", "b", "y", "i8", "s")
        value, where, column = self._argument(domain)
        time = self._column_of("ts")
        name, place = self._rng.choice((("first_value", 1), ("last_value", -1)))
        known = f"{column} IS NOT NULL AND {time} IS NOT NULL"
        pairs = f"collect_list(CASE WHEN {known} THEN named_struct('t', {time}, 'v', {column}) END)"
        oracle = f"try_element_at(sort_array({pairs}), {place}).v"
        return f"{name}({value}){where}", oracle, TYPES[domain], False

    def _ordered(self) -> tuple[str, str, str | None, bool]:
        kind = self._rng.choice(("cont", "disc", "mode", "joined"))
        if kind == "joined":
            return self._joined()
        descending = self._rng.random() < 0.4
        order = " DESC" if descending else ""
        if kind == "mode":
            value, where, column = self._argument(domain := self._domain("i", "k", "b", "n", "d"))
            group = f"mode() WITHIN GROUP (ORDER BY {{}}{order})"
            return group.format(value) + where, group.format(column), TYPES[domain], False
        fraction = self._rng.choice(("0", "0.1", "0.5", "0.75", "0.99", "1"))
        domain = self._domain("i", "n", "x") if kind == "cont" else self._domain("i", "n", "k", "ts", "i8", "f8")
        value, where, column = self._argument(domain)
        if kind == "cont":
            column = f"cast({column} as double)"
        ranked = f"sort_array(collect_list({column}), {'false' if descending else 'true'})"
        size = f"size({ranked})"
        our = f"percentile_{kind}({fraction}) WITHIN GROUP (ORDER BY {value}{order}){where}"
        if kind == "disc":
            place = f"cast(greatest(ceil({fraction}d * {size}), 1) as int)"
            return our, f"try_element_at({ranked}, {place})", TYPES[domain], False
        place = f"({fraction}d * ({size} - 1))"
        low, high = (f"try_element_at({ranked}, cast({f}({place}) + 1 as int))" for f in ("floor", "ceil"))
        between = f"{low} + ({place} - floor({place})) * ({high} - {low})"
        oracle = f"CASE WHEN {size} = 0 THEN NULL WHEN floor({place}) = ceil({place}) THEN {low} ELSE {between} END"
        return our, oracle, "DOUBLE", True

    def _joined(self) -> tuple[str, str, str | None, bool]:
        value, where, column = self._argument(self._domain("k", "s"))
        name = self._rng.choice(("string_agg", "listagg"))
        if self._rng.random() < 0.5:
            texts = f"sort_array(collect_set({column}))"
            our = f"{name}(DISTINCT {value}, '; '){where}"
        else:
            self._by_time = True
            time = self._column_of("ts")
            known = f"{column} IS NOT NULL AND {time} IS NOT NULL"
            texts = f"sort_array(collect_list(CASE WHEN {known} THEN named_struct('t', {time}, 'v', {column}) END)).v"
            our = f"{name}({value}, '; '){where}"
        return our, f"CASE WHEN size({texts}) > 0 THEN array_join({texts}, '; ') END", "VARCHAR", False

    def _finished(self) -> tuple[str, str, str | None, bool]:
        """An aggregate, or an expression of aggregates."""
        if self._rng.random() < 0.65:
            return self._aggregate()
        a, _, x = self._argument("i")
        total, count = f"sum(cast({x} as bigint))", f"count({x})"
        plain = "(" + a + ")"
        where = _
        way = self._rng.randrange(10)
        made: tuple[tuple[str, str, str | None, bool], ...] = (
            (
                f"sum({plain}){where} / NULLIF(count({plain}){where}, 0)",
                f"o_quotient({total}, {count})",
                "BIGINT",
                False,
            ),
            (
                f"round(sum({plain}){where} * 1.0 / NULLIF(count({plain}){where}, 0), 2)",
                f"o_average(o_average(cast({total} as decimal(38,0)), {count}, 16), 1, 2)",
                None,
                False,
            ),
            (f"coalesce(sum({plain}){where}, 0) + count(*)", f"(coalesce({total}, 0) + count(1))", "BIGINT", False),
            (
                f"max({plain}){where} - min({plain}){where}",
                f"cast(max(cast({x} as bigint)) - min({x}) as int)",
                "INTEGER",
                False,
            ),
            (
                f"CASE WHEN count({plain}){where} > 3 THEN 'many' ELSE 'few' END",
                f"IF({count} > 3, 'many', 'few')",
                "VARCHAR",
                False,
            ),
            (f"abs(min({plain}){where})", f"abs(min({x}))", "INTEGER", False),
            (f"greatest(max({plain}){where}, 0)", f"CASE WHEN max({x}) > 0 THEN max({x}) ELSE 0 END", "INTEGER", False),
            (f"sum({plain}){where} > 10 OR count(*) IS NULL", f"({total} > 10 OR false)", "BOOLEAN", False),
            (f"sum({plain}){where} % 7", f"o_remainder({total}, 7)", "BIGINT", False),
            (f"upper(max(CAST({plain} AS varchar)))", f"upper(max(cast({x} as string)))", "VARCHAR", False),
        )
        return made[way]

    def _having(self) -> tuple[str, str]:
        value = self._writer.expression("i", 1)
        column = self._column_of(value.oracle)
        text = self._column_of("k")
        return self._rng.choice(
            (
                ("count(*) > 1", "count(1) > 1"),
                (f"sum({value.ours}) >= 0", f"sum(cast({column} as bigint)) >= 0"),
                ("max(k) <> 'a' OR count(k) < 3", f"max({text}) <> 'a' OR count({text}) < 3"),
                (
                    f"avg({value.ours}) > 0.5",
                    f"o_average(cast(sum({column}) as decimal(38,0)), count({column}), 6) > 0.5bd",
                ),
                (f"min({value.ours}) BETWEEN -10 AND 10", f"min({column}) >= -10 AND min({column}) <= 10"),
            )
        )


_MOMENTS = (
    ("stddev", "stddev_samp"),
    ("stddev_pop", "stddev_pop"),
    ("variance", "var_samp"),
    ("var_pop", "var_pop"),
    ("var_samp", "var_samp"),
    ("stddev_samp", "stddev_samp"),
)


def _sum(domain: str, column: str, distinct: str = "") -> tuple[str, str | None, bool]:
    if domain == "x":
        return f"sum({distinct}{column})", "DOUBLE", True
    type_ = {"n": "decimal(38,2)", "w": "decimal(38,10)", "i8": "decimal(38,0)"}.get(domain, "bigint")
    shown = {"n": "DECIMAL(38, 2)", "w": "DECIMAL(38, 10)", "i8": "DECIMAL(38, 0)"}.get(domain, "BIGINT")
    return f"cast(sum({distinct}cast({column} as {type_})) as {type_})", shown, False


def _average(domain: str, column: str, distinct: str = "") -> tuple[str, str | None, bool]:
    if domain == "x":
        return f"avg({distinct}{column})", "DOUBLE", True
    scale = {"n": 2, "w": 10}.get(domain, 0)
    result = max(6, scale + 4)
    total = f"cast(sum({distinct}cast({column} as decimal(38,{scale}))) as decimal(38,{scale}))"
    return f"o_average({total}, count({distinct}{column}), {result})", f"DECIMAL(38, {result})", False
