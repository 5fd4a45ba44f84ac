"""Random programs of the dialect lenses, each INSERT with the SELECT of PostgreSQL that gives its rows."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

SETTINGS = "SET defaults.topic.autocreate = true; SET defaults.topic.partitions = 1; SET nullability = ignore;"
# What PostgreSQL has not: the values of an array that are the most, or least, frequent; and initials.
HELPERS = (
    """CREATE FUNCTION pg_temp.often(given anyarray, count integer, rarely boolean) RETURNS anyarray LANGUAGE sql AS $$
    SELECT array_agg(x ORDER BY c, x) FROM (SELECT x, CASE WHEN rarely THEN count(*) ELSE -count(*) END AS c
      FROM unnest(given) AS x WHERE x IS NOT NULL GROUP BY x ORDER BY 2, x LIMIT count) AS counted $$""",
    """CREATE FUNCTION pg_temp.initials(given text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN given IS NOT NULL THEN coalesce(string_agg(left(word, 1), '' ORDER BY at), '') END
    FROM regexp_split_to_table(given, '\\s+') WITH ORDINALITY AS words(word, at) $$""",
)
_SMALL = "abcdefghijklmnopqrstuvwxyz"
_DUMPED = "CASE WHEN {{0}} IS NULL THEN 'io.lenses.sql.model.NullValue$@NullValue' ELSE {0} END"
_BYTES = "encode(convert_to({0}, 'UTF8'), 'base64')"
_CLOCK = ("'0' || CAST(ABS({0}) % 10 AS STRING) || \":30:15\"", "('0' || (abs({0}) % 10) || ':30:15')")
# (ours, theirs) of a text {0} or a number {0}
_TEXTS = (
    ("UPPER({0})", "upper({0})"), ("LOWERCASE({0})", "lower({0})"), ("TRIM({0})", "btrim({0})"),
    ("CONCAT({0}, '-', 'x')", "concat({0}, '-', 'x')"), ("{0} || '!'", "{0} || '!'"),
    ("SUBSTR({0}, 1, 4)", "substring({0} FROM 2 FOR 3)"), ("SUBSTRING({0}, 2)", "substring({0} FROM 3)"),
    ("TAKELEFT({0}, 2)", "left({0}, 2)"), ("DROPRIGHT({0}, 2)", "left({0}, greatest(length({0}) - 2, 0))"),
    ("CHOP({0})", "left({0}, -1)"), ("REVERSE({0})", "reverse({0})"),
    ("REPLACE({0}, 'a', 'oo')", "replace({0}, 'a', 'oo')"),
    ("DIGITS({0})", "regexp_replace({0}, '[^0-9]', '', 'g')"),
    ("DELETEWHITESPACE({0})", r"regexp_replace({0}, '\s', '', 'g')"),
    ("ANONYMIZE({0})", "repeat('*', length({0}))"), ("FIRST2({0})", "left({0}, 2) || '*****'"),
    ("LAST3({0})", "'*****' || right({0}, 3)"), ("INITIALS({0})", "pg_temp.initials({0})"),
    ("EMAIL({0})", "CASE WHEN strpos({0}, '@') > 0 THEN left(split_part({0}, '@', 1), 1) || '*****@' "
     "|| split_part({0}, '@', -1) ELSE left({0}, 1) || '*****' END"),
    ("ABBREVIATE({0}, 5)", "CASE WHEN length({0}) <= 5 THEN {0} ELSE left({0}, 2) || '...' END"),
    ("CENTER({0}, 8, '*')", "CASE WHEN length({0}) >= 8 THEN {0} ELSE "
     "rpad(lpad({0}, length({0}) + (8 - length({0})) / 2, '*'), 8, '*') END"),
    ("SWAPCASE({0})", f"translate({{0}}, '{_SMALL}{_SMALL.upper()}', '{_SMALL.upper()}{_SMALL}')"),
    ("BASE64({0})", "encode(convert_to({0}, 'UTF8'), 'base64')"), ("COALESCE({0}, 'none')", "coalesce({0}, 'none')"),
    ("CASE WHEN {0} IS NULL THEN 'nil' WHEN LENGTH({0}) > 4 THEN 'long' END",
     "CASE WHEN {0} IS NULL THEN 'nil' WHEN length({0}) > 4 THEN 'long' END"),
    ("REGEXP({0}, '([a-z])([0-9])')", "regexp_match({0}, '([a-z])([0-9])')"),
    ("LENGTH({0})", "length({0})"), ("INDEXOF({0}, 'b')", "strpos({0}, 'b') - 1"), ("{0} LIKE '%a%'", "{0} LIKE '%a%'"),
    ("{0} IN ('', 'red', 'zz9')", "{0} IN ('', 'red', 'zz9')"), ("ISNULL({0})", "{0} IS NULL"),
    ("REPEAT({0}, 2)", "array_fill({0}, ARRAY[2])"),
    ("SIZEOF(FLATTEN(REGEX_MATCHES({0}, '([a-z])([0-9])')))",
     "CASE WHEN {0} IS NOT NULL THEN (SELECT 2 * count(*) FROM regexp_matches({0}, '([a-z])([0-9])', 'g')) END"),
    ("SIZEOF(ZIP_ALL(REGEXP({0}, '([a-z])([0-9])'), 'x', REPEAT({0}, 3), 'y'))",
     "CASE WHEN regexp_match({0}, '([a-z])([0-9])') IS NOT NULL THEN 3 END"),
    ('{0} || "it\'s"', "{0} || 'it''s'"), ('REPLACE({0}, "a", """")', "replace({0}, 'a', '\"')"),
    ('{0} IN ("red", \'blue\', "zz9")', "{0} IN ('red', 'blue', 'zz9')"),
    ("DUMP({0})", _DUMPED.format("'io.lenses.sql.model.StringValue@StringValue(' || {0} || ')'")),
    ("TYPEOF({0})", "'STRING'"), ("TYPEOF(REPEAT({0}, 2))", "'STRING[]'"),
    ("TYPEOF(CAST({0} AS BYTES))", "'BYTES'"), ("CAST({0} AS BYTES)", _BYTES),
    ("CAST(CAST({0} AS BYTES) AS STRING)", "{0}"),
)  # fmt: skip
_NUMBERS = (
    ("{0} + 1", "{0} + 1"), ("{0} * 3 - 2", "{0} * 3 - 2"), ("{0} % 4", "{0} % 4"), ("{0} / 3", "{0} / 3"),
    ("-{0}", "-{0}"),
    ("ABS({0})", "abs({0})"), ("MAX({0}, 5)", "greatest({0}, 5)"), ("MIN({0}, 5, 2)", "least({0}, 5, 2)"),
    ("CAST({0} AS STRING)", "{0}::text"), ("COALESCE({0}, 0)", "coalesce({0}, 0)"), ("{0} > 7", "{0} > 7"),
    ("CASE WHEN {0} >= 10 THEN 'many' ELSE 'few' END", "CASE WHEN {0} >= 10 THEN 'many' ELSE 'few' END"),
    ("ISNOTNULL({0})", "{0} IS NOT NULL"), ("SIGN({0})", "sign({0})"), ("MOD({0}, 5)", "{0} % 5"),
    ("FORMAT_TIMESTAMP(TIMESTAMP_MILLIS(CAST({0} AS LONG) * 86400000) + 1M - 3h, 'yyyy-MM-dd HH')",
     "to_char(timestamp 'epoch' + {0} * interval '1 day' + interval '1 month -3 hours', 'YYYY-MM-DD HH24')"),
    ("DUMP({0})", _DUMPED.format("'io.lenses.sql.model.IntValue@IntValue(' || {0} || ')'")),
    ("TYPEOF({0})", "'INT'"), ("TYPEOF(CAST({0} AS LONG))", "'LONG'"),
    (f"CAST({_CLOCK[0]} AS TIME)", f"{_CLOCK[1]}::time::text"),
    (f"MKSTRING(CAST({_CLOCK[0]} AS TIME))", f"{_CLOCK[1]}::time::text"),
    (f"FORMAT_TIME(CAST({_CLOCK[0]} AS TIME), 'mm.HH')", f"to_char({_CLOCK[1]}::time, 'MI.HH24')"),
    (f"TYPEOF(CAST({_CLOCK[0]} AS TIME))", "'TIME'"),
)  # fmt: skip
_JSON = (
    ("JSON_EXTRACT_FIRST({0}, '$.a')", "({0}::jsonb -> 'a')::text"),
    ("JSON_EXTRACT_FIRST({0}, '$.b')", "({0}::jsonb -> 'b')::text"),
    ("SIZEOF(JSON_EXTRACT_ALL({0}, '$[?(@ == ''x'' || @ > 4)]'))",
     "CASE WHEN {0} IS NOT NULL THEN (SELECT count(*) FROM jsonb_each({0}::jsonb) WHERE value = '\"x\"' OR "
     "(jsonb_typeof(value) = 'number' AND value > '4')) END"),
)  # fmt: skip
_CONDITIONS = (
    ("v > 3", "v > 3"), ("v % 2 = 0 OR g = 'red'", "v % 2 = 0 OR g = 'red'"), ("t IS NOT NULL", "t IS NOT NULL"),
    ('NOT (g = "blue")', "NOT (g = 'blue')"), ("b", "b"),
    ("g IN ('red', 'green') AND v < 25", "g IN ('red', 'green') AND v < 25"),
)  # fmt: skip
_ORDER = "array_agg({0} ORDER BY {1}) FILTER (WHERE {0} IS NOT NULL{2})"
# (ours, theirs, by time) of a number {0}
_AGGREGATES = (
    ("COUNT(*)", "count(*)", False), ("COUNT({0})", "count({0})", False), ("SUM({0})", "sum({0})", False),
    ("AVG({0})", "round(avg({0}), 6)::float8", False), ("MIN({0})", "min({0})", False), ("MAX({0})", "max({0})", False),
    ("MAXK({0}, 3)", "(" + _ORDER.format("{0}", "{0} DESC", "") + ")[1:3]", False),
    ("MINK({0}, 2)", "(" + _ORDER.format("{0}", "{0}", "") + ")[1:2]", False),
    ("MAXK_UNIQUE({0}, 2)", "(array_agg(DISTINCT {0} ORDER BY {0} DESC) FILTER (WHERE {0} IS NOT NULL))[1:2]", False),
    ("MINK_UNIQUE({0}, 3)", "(array_agg(DISTINCT {0} ORDER BY {0}) FILTER (WHERE {0} IS NOT NULL))[1:3]", False),
    ("TOPK({0}, 2)", "pg_temp.often(array_agg({0}), 2, false)", False),
    ("BOTTOMK({0}, 2)", "pg_temp.often(array_agg({0}), 2, true)", False),
    ("COLLECT_UNIQUE({0})", "array_agg(DISTINCT {0} ORDER BY {0})", False),
    ("COLLECT_UNIQUE({0}, 2)", "(array_agg(DISTINCT {0} ORDER BY {0}))[1:2]", False),
    ("COLLECT({0})", "array_agg({0} ORDER BY ts, {0})", True),
    ("COLLECT({0}, 3)", "(array_agg({0} ORDER BY ts, {0}))[1:3]", True),
    ("FIRST({0})", "(" + _ORDER.format("{0}", "ts, {0}", "") + ")[1]", True),
    ("LAST({0})", "(" + _ORDER.format("{0}", "ts DESC, {0} DESC", "") + ")[1]", True),
)  # fmt: skip
_PLAIN = 6  # so many of them need no values to be kept


# whether each side is a TABLE, and the join that there is of them
_JOINS = (
    *((False, False, side) for side in ("INNER", "LEFT", "RIGHT", "OUTER")),
    *((False, True, side) for side in ("INNER", "LEFT")),
    *((True, False, side) for side in ("INNER", "RIGHT")),
    *((True, True, side) for side in ("INNER", "LEFT", "RIGHT", "OUTER")),
)
# What ON compares: pairs of a field of the left side and one of the right side, and a further condition. Those by which
# the last records meet: what waits for a partner is given when a later record comes.
_ONS = (
    ((("g", "g"),), ""), ((("r", "r"),), ""), ((("r", "_key"),), ""), ((("_key", "r"),), ""), ((("_key", "_key"),), ""),
    ((("g", "g"), ("r", "r")), ""), ((("b", "b"), ("r", "_key")), ""), ((("v", "v"), ("g", "g")), ""),
    ((("r", "r"),), "a.v <= c.v"), ((("_key", "_key"),), "a.v >= c.v"), ((("g", "g"),), "a.b AND c.b"),
    ((("r", "_key"),), "a.v + c.v > 3"),
)  # fmt: skip


@dataclass(frozen=True)
class Insert:
    """``theirs`` gives the key's columns, ``keys`` of them, and then the values by ``names``."""

    target: str
    ours: str
    theirs: str
    keys: tuple[str, ...]  # the names of its fields, () for one value
    names: tuple[str, ...]
    keyed: bool
    clauses: tuple[str, ...]


@dataclass(frozen=True)
class Letters:
    """Where the dead letters of a program are, and which topics it reads, and whether as TABLEs."""

    target: str
    sources: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class _Source:
    """A WITH, and the CTE that it is there; both have the columns _key, g, v, t, b and j, theirs also ts."""

    name: str
    table: bool
    timed: bool = True
    windowed: bool = True  # whether a window may be over it
    clauses: tuple[str, ...] = ()
    reads: str = ""  # FROM, where it is no WITH
    named: Mapping[str, str] = field(default_factory=dict)  # how columns are named there
    functions: bool = True  # whether functions may be over its rows
    topics: tuple[tuple[str, bool], ...] = ()  # that it reads, and whether as TABLEs
    keys: tuple[str, ...] = ()  # the fields of its key, which then stand in k0, k1 ... and not in _key

    @property
    def from_(self) -> str:
        return self.reads or self.name

    def column(self, text: str) -> str:
        return self.named.get(text, text)


class LensesWriter:
    """``whole`` are topics with the same records, all of which are there when a program begins: a stream waits for its
    TABLE for some seconds only, and what comes to the TABLE later is not seen by the rows that have passed."""

    def __init__(self, rng: random.Random, topics: tuple[str, str], whole: tuple[str, str]) -> None:
        self._rng = rng
        self._topics, self._whole = topics, whole
        self._programs = 0
        self._windows = 0
        self._joins = rng.sample(_JOINS, len(_JOINS))
        mixed = next(number for number, (left, right, _) in enumerate(self._joins) if left != right)
        self._joins[1], self._joins[mixed] = self._joins[mixed], self._joins[1]  # the first program has one

    def next(self, inserts: int = 3) -> tuple[str, tuple[Insert, ...], Letters | None]:
        """A program, what each of its INSERTs writes, and where it writes its dead letters."""
        self._programs += 1
        ours, theirs = [], []
        sources: list[_Source] = []
        *tables, side = self._joins[self._programs % len(self._joins)]
        for index, (name, records) in enumerate((("a", "one"), ("c", "two"))):
            topics = self._topics if tables[0] == tables[1] else self._whole
            source, mine, its = self._with(name, topics[index], records, table=bool(tables[index]))
            sources.append(source)
            ours.append(mine)
            theirs.append(its)
        joined, mine, its, reads = self._join(sources[0], sources[1], str(side))
        sources.append(joined)
        ours.append(mine)
        theirs.append(its)
        ctes = ", ".join(theirs)
        chosen = self._chosen([*sources, _directly(joined, reads)], inserts)
        found = [self._insert(index, source) for index, source in enumerate(chosen)]
        read = dict.fromkeys(topic for source in chosen for topic in source.topics)
        if tables[0] != tables[1]:
            stream, table = sources[:2] if tables[1] else (sources[1], sources[0])
            grouped, mine, insert = self._met_groups(stream, self._rng.choice((stream, table)))
            ours.append(mine)
            found.append(insert)
            read |= dict.fromkeys((*stream.topics, *grouped.topics))
        letters, settings = None, [SETTINGS]
        if self._programs % 2:
            letters = Letters(f"lo-{self._topics[0]}-{self._programs}-dead", tuple(read))
            settings.append(f"SET error.policy = dlq; SET dead.letter.queue = '{letters.target}';")
        text = "\n".join([*settings, *ours, *(f"INSERT INTO {each.target} {each.ours};" for each in found)])
        return text, tuple(replace(each, theirs=f"WITH {ctes} {each.theirs}") for each in found), letters

    def _chosen(self, every: Sequence[_Source], count: int) -> Sequence[_Source]:
        chosen = [self._rng.choice(every[2:]), self._rng.choice(every[:2])]
        return [*chosen, *(self._rng.choice(every) for _ in range(count - 2))]

    # --- what is read -----------------------------------------------------------------------------------------------
    def _with(self, name: str, topic: str, records: str, *, table: bool) -> tuple[_Source, str, str]:
        rng = self._rng
        mine, its = "j != ''", "j <> ''"  # without the records that end the topics
        clauses: tuple[str, ...] = ("TABLE" if table else "STREAM",)
        if rng.random() < 0.5:
            more = rng.choice(_CONDITIONS)
            mine, its, clauses = f"{mine} AND ({more[0]})", f"{its} AND ({more[1]})", (*clauses, "WHERE")
        key, their_key = "", "_key"
        if not table and rng.random() < 0.2:
            key, their_key, clauses = "COALESCE(t, 'none') AS _key, ", "coalesce(t, 'none')", (*clauses, "AS _key")
        text_, their_text = rng.choice(_TEXTS[:12])
        ours = (
            f"WITH {name} AS (SELECT {'TABLE' if table else 'STREAM'} {key}g, v, {text_.format('t')} AS t, b, r, j "
            f"FROM {topic} WHERE {mine});"
        )
        select = f"SELECT {their_key} AS _key, g, v, {their_text.format('t')} AS t, b, r, j, ts"
        theirs = (
            f"{name} AS ({select} FROM {records}_{'table' if table else 'stream'} WHERE {its}), {name}_versions AS "
            f"({select}, n, coalesce({its}, false) AS there FROM {records}_all WHERE _key IS NOT NULL)"
        )
        return _Source(name, table, clauses=clauses, topics=((topic, table),)), ours, theirs

    def _join(self, left: _Source, right: _Source, side: str) -> tuple[_Source, str, str, str]:
        """With what its FROM is."""
        kind = ", ".join("TABLE" if source.table else "STREAM" for source in (left, right))
        table, streams = left.table and right.table, not left.table and not right.table
        on = _On(*self._rng.choice(_ONS)) if self._rng.random() < 0.6 else None
        reads = f"a {side} JOIN c{'' if on is None else on.ours(self._rng)}{' WITHIN 30s' if streams else ''}"
        ours = (
            f"WITH d AS (SELECT {'TABLE' if table else 'STREAM'} a.g, c.v, a.t, c.b, COALESCE(a.j, c.j) AS j "
            f"FROM {reads});"
        )
        on = on or _On((("_key", "_key"),), "")
        condition = on.condition + (" AND abs(extract(epoch FROM a.ts - c.ts)) <= 30" if streams else "")
        key, names = on.table_key(side) if table else on.stream_key(side)
        ts = "greatest(a.ts, c.ts)" if table or streams else ("c.ts" if left.table else "a.ts")
        joins = {"INNER": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "OUTER": "FULL JOIN"}
        if side == "OUTER":  # PostgreSQL's full join takes equalities alone
            select = "SELECT {0}, {1} AS g, {2} AS v, {3} AS t, {4} AS b, {5} AS j, {6} AS ts FROM {7}"
            nothing = "(SELECT NULL AS _key, NULL AS g, NULL::int AS v, NULL::boolean AS b, NULL AS r) AS "
            both = select.format(key, "a.g", "c.v", "a.t", "c.b", "coalesce(a.j, c.j)", ts, f"a JOIN c ON {condition}")
            only = [
                select.format(key, "a.g", "NULL::int", "a.t", "NULL::boolean", "a.j", "a.ts", f"a, {nothing} c")
                + f" WHERE NOT EXISTS (SELECT FROM c WHERE {condition})",
                select.format(key, "NULL", "c.v", "NULL", "c.b", "c.j", "c.ts", f"c, {nothing} a")
                + f" WHERE NOT EXISTS (SELECT FROM a WHERE {condition})",
            ]
            theirs = f"d AS ({both} UNION ALL {only[0]} UNION ALL {only[1]})"
        else:
            tables = f"a {joins[side]} c ON {condition}"
            if not table and not streams:
                tables = _valid("a", "c", side, condition) if right.table else _valid("c", "a", side, condition)
            theirs = f"d AS (SELECT {key}, a.g, c.v, a.t, c.b, coalesce(a.j, c.j) AS j, {ts} AS ts FROM {tables})"
        of_groups = table and (side == "OUTER" or on.is_made(side))
        clauses = (f"{side} JOIN of {kind}", *([] if on.by_keys else [f"{kind} by fields"]), *left.clauses)
        made = _Source("d", table, not of_groups, windowed=False, clauses=(*clauses, *right.clauses), reads="")
        made = replace(made, functions=not of_groups, keys=names)
        return replace(made, topics=(*left.topics, *right.topics)), ours, theirs, reads

    def _met_groups(self, stream: _Source, of: _Source) -> tuple[_Source, str, Insert]:
        """A stream that meets the groups of a TABLE, or its own, as they are at the time of each row."""
        aggregates = ["COUNT(*)", "SUM(v)", *([] if of.table else ["MAX(v)", "MIN(v)"])]
        names = tuple(f"f{i}" for i in range(len(aggregates)))
        made = ", ".join(f"{each} AS {name}" for each, name in zip(aggregates, names, strict=True))
        given = ", ".join(f"e.{name} AS {name}" for name in names)
        left, side = self._rng.random() < 0.5, self._rng.choice(("INNER", "outer"))
        mine, outer = (f"{stream.name}", "LEFT") if left else ("e", "RIGHT")
        reads = f"{mine} {outer if side == 'outer' else side} JOIN {'e' if left else stream.name} "
        rows = f"SELECT * FROM {of.name} AS x WHERE x.ts <= s.ts"
        if of.table:
            at_its_time = f"SELECT * FROM {of.name}_versions AS x WHERE x.ts <= s.ts"
            last = f"SELECT DISTINCT ON (_key) * FROM ({at_its_time}) AS versions ORDER BY _key, n DESC"
            rows = f"SELECT * FROM ({last}) AS valid WHERE there"
        groups = f"SELECT {made} FROM ({rows}) AS r WHERE r.g = s.g HAVING count(*) > 0"
        join = "LEFT JOIN" if side == "outer" else "JOIN"
        insert = Insert(
            f"lo-{self._topics[0]}-{self._programs}-e",
            f"SELECT STREAM {stream.name}.t AS t, {given} FROM {reads}ON {stream.name}.g = e._key",
            f"SELECT s.g, s.t, {given} FROM {stream.name} AS s {join} LATERAL ({groups}) AS e ON true",
            (),
            ("t", *names),
            False,
            (f"{side} join of STREAM, GROUP BY of {'TABLE' if of.table else 'STREAM'}",),
        )
        return of, f"WITH e AS (SELECT TABLE {made} FROM {of.name} GROUP BY g);", insert

    # --- what is written --------------------------------------------------------------------------------------------
    def _insert(self, index: int, source: _Source) -> Insert:
        chance = self._rng.random()
        target = f"lo-{self._topics[0]}-{self._programs}-{index}"
        if chance < 0.3:
            return self._projection(target, source)
        if chance < 0.6 and not source.table and source.windowed:
            return self._window(target, source)
        return self._groups(target, source)

    def _projection(self, target: str, source: _Source) -> Insert:
        items = [(source.column("g"), "g"), *self._values(source)]
        names = tuple(f"f{i}" for i in range(len(items)))
        mine = ", ".join(f"{ours} AS {name}" for name, (ours, _) in zip(names, items, strict=True))
        theirs = ", ".join(f"{its} AS {name}" for name, (_, its) in zip(names, items, strict=True))
        return Insert(
            target,
            f"SELECT {'TABLE' if source.table else 'STREAM'} {mine} FROM {source.from_}",
            f"SELECT {', '.join(f'k{i}' for i in range(len(source.keys))) or '_key'}, {theirs} FROM {source.name}",
            source.keys,
            names,
            source.table,
            ("projection", *source.clauses),
        )

    def _values(self, source: _Source) -> list[tuple[str, str]]:
        rng = self._rng
        found = [(source.column(each), each) for each in "tvj"]
        if not source.functions:
            return found
        for column, forms in (
            ("t", _TEXTS),
            ("t", _TEXTS),
            ("g", _TEXTS),
            ("v", _NUMBERS),
            ("v", _NUMBERS),
            ("j", _JSON),
        ):
            ours, theirs = rng.choice(forms)
            if source.reads and ours.startswith(("REGEXP", "REPEAT")) and source.table:
                continue  # an array cannot pass the join
            found.append((ours.format(source.column(column)), theirs.format(column)))
        return rng.sample(found, 6)

    def _aggregates(self, source: _Source, *, plain: bool = False) -> list[tuple[str, str]]:
        forms = [form for form in (_AGGREGATES[:_PLAIN] if plain else _AGGREGATES) if source.timed or not form[2]]
        return [(ours.format(source.column("v")), theirs.format("v")) for ours, theirs, _ in self._rng.sample(forms, 3)]

    def _groups(self, target: str, source: _Source) -> Insert:
        rng = self._rng
        keys = rng.choice((("g",), ("g", "b")) if source.reads or source.keys else (("g",), ("_key",), ("g", "b")))
        values = [*self._aggregates(source), ("COUNT(*)", "count(*)")]
        names = tuple(f"f{i}" for i in range(len(values)))
        mine = ", ".join(f"{ours} AS {name}" for name, (ours, _) in zip(names, values, strict=True))
        theirs = ", ".join(its for _, its in values)
        by, ours_by = ", ".join(keys), ", ".join(map(source.column, keys))
        known = " AND ".join(f"{key} IS NOT NULL" for key in keys)
        word = "TABLE" if source.table else rng.choice(("TABLE", "STREAM"))
        return Insert(
            target,
            f"SELECT {word} {mine} FROM {source.from_} GROUP BY {ours_by}",
            f"SELECT {by}, {theirs} FROM {source.name} WHERE {known} GROUP BY {by}",
            keys if len(keys) > 1 else (),
            names,
            True,
            ("GROUP BY", *(ours.split("(")[0] for ours, _ in values), *source.clauses),
        )

    def _window(self, target: str, source: _Source) -> Insert:
        self._windows += 1
        kind = ("TUMBLE", "HOP", "SESSION")[self._windows % 3]
        values = self._aggregates(source, plain=kind == "SESSION")
        names = tuple(f"f{i}" for i in range(len(values)))
        mine = ", ".join(f"{ours} AS {name}" for name, (ours, _) in zip(names, values, strict=True))
        theirs = ", ".join(its for _, its in values)
        if kind == "SESSION":
            window, rows = "SESSION 30s", _sessions(source.name, 30)
        elif kind == "TUMBLE":
            window, rows = "TUMBLE 1m", _hops(source.name, 60, 60)
        else:
            window, rows = "HOP 1m BY 20s", _hops(source.name, 60, 20)
        bounds = ", ".join(f"to_char({each}, 'YYYY-MM-DD HH24:MI:SS.US')" for each in ("window_start", "window_end"))
        return Insert(
            target,
            f"SELECT STREAM {mine} FROM {source.name} WINDOW BY {window} GROUP BY g",
            f"SELECT g, {bounds}, {theirs} FROM ({rows}) AS w WHERE g IS NOT NULL GROUP BY g, window_start, window_end",
            ("g", "window_start", "window_end"),
            names,
            True,
            (kind, *source.clauses),
        )


def _directly(joined: _Source, reads: str) -> _Source:
    """The join itself in the FROM of an INSERT."""
    named = {"g": "a.g", "v": "c.v", "t": "a.t", "b": "c.b", "j": "COALESCE(a.j, c.j)"}
    return replace(joined, timed=True, reads=reads, named=named, functions=True)


@dataclass(frozen=True)
class _On:
    pairs: tuple[tuple[str, str], ...]
    further: str

    @property
    def by_keys(self) -> bool:
        return self.pairs == (("_key", "_key"),) and not self.further

    @property
    def condition(self) -> str:
        return " AND ".join([*(f"a.{one} = c.{other}" for one, other in self.pairs), *filter(None, [self.further])])

    def ours(self, rng: random.Random) -> str:
        compared = [rng.choice((f"a.{one} = c.{other}", f"c.{other} = a.{one}")) for one, other in self.pairs]
        return f" ON {' AND '.join([*compared, *filter(None, [self.further])])}"

    def stream_key(self, side: str) -> tuple[str, tuple[str, ...]]:
        """The fields that are compared, of the side that is there; and their names where they are several."""
        chosen = {"RIGHT": "c.{1}", "OUTER": "coalesce(a.{0}, c.{1})"}.get(side, "a.{0}")
        texts = [chosen.format(*pair) for pair in self.pairs]
        if len(texts) == 1:
            return f"{texts[0]} AS _key", ()
        listed = ", ".join(f"{text} AS k{number}" for number, text in enumerate(texts))
        return listed, tuple(one for one, _ in self.pairs)

    def is_made(self, side: str) -> bool:
        """Whether rows of joined TABLEs are told apart by the keys of both alone."""
        return self._told_by(side) is None and not self.by_keys

    def table_key(self, side: str) -> tuple[str, tuple[str, ...]]:
        told = self._told_by(side)
        if told is not None:
            return f"{told}._key AS _key", ()
        if self.by_keys:
            return "coalesce(a._key, c._key) AS _key", ()
        parts = " || ',' || ".join(f"""coalesce('"' || {name}._key || '"', 'null')""" for name in "ac")
        return f"'[' || {parts} || ']' AS _key", ()

    def _told_by(self, side: str) -> str | None:
        """The one whose key no two joined rows have in common: each of its rows meets one row at most, and is there."""
        if side != "RIGHT" and side != "OUTER" and any(other == "_key" for _, other in self.pairs):
            return "a"
        return "c" if side not in ("LEFT", "OUTER") and any(one == "_key" for one, _ in self.pairs) else None


def _valid(stream: str, table: str, side: str, condition: str) -> str:
    """A stream's rows with those of the table that were valid at their time."""
    at_its_time = f"SELECT * FROM {table}_versions AS x WHERE x.ts <= {stream}.ts"
    last = f"SELECT DISTINCT ON (_key) * FROM ({at_its_time}) AS versions ORDER BY _key, n DESC"
    join = "JOIN" if side == "INNER" else "LEFT JOIN"
    return f"{stream} {join} LATERAL (SELECT * FROM ({last}) AS {table} WHERE there AND {condition}) AS {table} ON true"


def _hops(name: str, size: int, advance: int) -> str:
    starts = f"generate_series(date_bin('{advance} seconds', ts, 'epoch') - interval '{size - advance} seconds', ts, "
    return (
        f"SELECT {name}.*, window_start, window_start + interval '{size} seconds' AS window_end FROM {name}, "
        f"{starts}interval '{advance} seconds') AS window_start"
    )


def _sessions(name: str, gap: int) -> str:
    """``window_end`` is the gap after the last record."""
    new = f"CASE WHEN ts - lag(ts) OVER per <= interval '{gap} seconds' THEN 0 ELSE 1 END"
    marked = f"SELECT *, {new} AS new FROM {name} WINDOW per AS (PARTITION BY g ORDER BY ts)"
    numbered = f"SELECT *, sum(new) OVER (PARTITION BY g ORDER BY ts) AS session FROM ({marked}) AS m"
    whole = "OVER (PARTITION BY g, session)"
    return (
        f"SELECT *, min(ts) {whole} AS window_start, max(ts) {whole} + interval '{gap} seconds' AS window_end "
        f"FROM ({numbered}) AS n"
    )
