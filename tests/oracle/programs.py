"""Random programs, each written twice: in our SQL, and in PostgreSQL's over all of the input.

The second text is made here beside the first, by no part of the compiler. ``clauses`` are what a program was written to
use; the test counts them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.oracle.input import EPOCH, LAST

ORDER_DELAY_S = 20  # of watermarks over orders in windows: some records are late
_CALM_S = 600  # in joins none is
_CALM = f"WITH ('watermark.delay.millis' = {_CALM_S * 1000}, 'source.idle.timeout.millis' = 3600000)"


def _version(key: str = "o.k", at: str = "o.ts", name: str = "c") -> str:
    """The customer of a key at a time."""
    return (
        f"(SELECT * FROM (SELECT * FROM customers_all AS h WHERE h.ck = {key} AND h.at <= {at} ORDER BY seq DESC "
        f"LIMIT 1) AS v WHERE NOT gone) AS {name}"
    )


_VERSION = _version()


@dataclass(frozen=True)
class Program:
    ours: str
    theirs: str
    clauses: tuple[str, ...]
    properties: str = ""  # of the view
    virtual: str = ""  # the query of the virtual stream t, where it is read in an application
    keys: int = 0  # how many of the first columns are a key that tells the rows apart


@dataclass(frozen=True)
class _From:
    """A source in both dialects; ``keys`` and ``numbers`` are expressions over it."""

    ours: str
    theirs: str
    keys: tuple[str, ...]
    numbers: tuple[str, ...]
    conditions: tuple[str, ...]
    clauses: tuple[str, ...] = ()
    must_group: tuple[str, ...] = ()
    properties: str = ""
    virtual: str = ""
    final: str = ""  # in a window, what PostgreSQL is told where only closed ones are shown


_ORDER_KEYS = ("k", "g", "ok", "coalesce(k, '?')", "g % 2", "k || '!'", "amount > 100", "date_trunc('minute', ts)")
_ORDER_NUMBERS = ("g", "amount", "q", "g + 1", "amount * 2", "CASE WHEN ok THEN g ELSE 0 END", "length(k)")
_ORDER_CONDITIONS = (
    "g > 0", "ok", "NOT ok", "k IN ('a', 'b', 'é')", "amount BETWEEN -100 AND 500", "x IS NOT NULL", "k LIKE 'a%'",
    "g IS DISTINCT FROM 1", "q > 0 OR ok", "coalesce(amount, 0) < 300",
)  # fmt: skip
ORDERS = _From("orders", "orders", _ORDER_KEYS, _ORDER_NUMBERS, _ORDER_CONDITIONS)
_ITEMS = _From(  # fields of structs, which records spell in several ways
    "orders", "orders", ("(item).itemId % 3", "(item).subItem.tagName", "(items[1]).itemId", "k"),
    ("(item).unitPrice", "(item).itemId", "(items[2]).unitPrice", "amount"),
    ("(item).itemId > 2", "(item).subItem.tagName <> 'x'", "(item).unitPrice IS NULL", "g > 0"), ("STRUCT",),
)  # fmt: skip
_UNNESTED_ITEMS = _From(
    "orders, UNNEST(items) AS u", "orders, UNNEST(items) AS u", ("u.itemId % 3", "(u.subItem).tagName", "k"),
    ("u.unitPrice", "u.itemId"), ("u.unitPrice > 10", "u.itemId IS NOT NULL"), ("STRUCT", "UNNEST"),
)  # fmt: skip
_MAPPED_ITEMS = _From(
    "(SELECT byTag['a'].itemId AS v, byTag['A'].itemId AS w, k FROM orders) AS t",
    "(SELECT (byTag -> 'a' ->> 'itemid')::bigint AS v, (byTag -> 'A' ->> 'itemid')::bigint AS w, k FROM orders) AS t",
    ("v % 3", "k"), ("v", "w"), ("v > w", "w IS NOT NULL"), ("STRUCT", "sub-query"),
)  # fmt: skip
PAYMENTS = _From("payments", "payments", ("pk", "pid % 3"), ("pid", "paid"), ("paid > 10", "pk <> 'a'", "pid % 2 = 0"))
CUSTOMERS = _From(
    "customers", "customers", ("region", "level", "coalesce(region, '?')", "level > 2"), ("level", "level * 10"),
    ("level > 1", "region = 'north'", "ck <> 'a'"), ("changelog",),
)  # fmt: skip


class ProgramWriter:
    """Programs of every kind in turn, so that each clause comes often enough."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._kinds: tuple[Callable[[], Program], ...] = (
            lambda: self._aggregation(self._window("TUMBLE")),
            lambda: self._aggregation(self._window("HOP")),
            lambda: self._aggregation(self._window("CUMULATE")),
            self._sessions,
            lambda: self._either(self._union()),
            lambda: self._grouping_sets(self._plain()),
            lambda: self._distinct(self._plain()),
            lambda: self._either(self._unnested()),
            lambda: self._projection(self._plain()),
            lambda: self._aggregation(self._plain()),
            lambda: self._either(self._rng.choice((_ITEMS, _ITEMS, _UNNESTED_ITEMS, _MAPPED_ITEMS))),
            lambda: self._aggregation(self._interval_join()),
            lambda: self._projection(self._interval_join()),
            lambda: self._aggregation(self._temporal_join()),
            lambda: self._projection(self._temporal_join()),
            lambda: self._grouping_sets(self._rng.choice((CUSTOMERS, self._window("TUMBLE"), self._window("HOP")))),
            lambda: self._either(self._rng.choice((CUSTOMERS, self._changelog_window()))),
            lambda: self._aggregation(self._changelog_join()),
            lambda: self._projection(self._changelog_join()),
            lambda: self._aggregation(self._over_window("TUMBLE")),
            lambda: self._aggregation(self._over_window(self._rng.choice(("HOP", "CUMULATE")))),
        )
        chains = (
            self._streams_and_changelog,
            self._stream_and_changelogs,
            self._three_streams,
            self._joined_sub_query,
            self._joined_joins,
            self._four_relations,
        )
        self._chains = rng.sample(chains, len(chains))
        self._written = self._chained = 0

    @property
    def chain_forms(self) -> int:
        return len(self._chains)

    def chain(self) -> Program:
        """Of joined rows joined again, of each form in turn."""
        source = self._chains[self._chained % len(self._chains)]()
        self._chained += 1
        return self._either(source)

    def next(self) -> Program:
        program = self._kinds[self._written % len(self._kinds)]()
        self._written += 1
        return program

    # --- sources ----------------------------------------------------------------------------------------------------
    def _plain(self) -> _From:
        source = self._rng.choice((ORDERS, ORDERS, PAYMENTS))
        form = self._rng.choice(("plain", "sub-query", "WITH", "sub-query with WHERE", "application"))
        if form == "plain" or source is not ORDERS:
            return source
        inner = "SELECT k, g, amount, q, x, ok, ts FROM orders"
        if form == "sub-query with WHERE":
            inner += f" WHERE {self._rng.choice(_ORDER_CONDITIONS)}"
            form = "sub-query"
        keys, numbers, conditions = _ORDER_KEYS, _ORDER_NUMBERS, _ORDER_CONDITIONS
        if form == "application":
            return _From("t", f"({inner}) AS t", keys, numbers, conditions, (form,), virtual=inner)
        text = f"({inner}) AS t" if form == "sub-query" else f"WITH t AS ({inner})"
        return _From(text, text, keys, numbers, conditions, (form,))

    def _union(self) -> _From:
        """Of three streams, two of which are the same one."""
        one, two = (self._rng.choice(("", f" WHERE {condition}")) for condition in ("g > 0", "pid % 3 <> 1"))
        text = (
            f"(SELECT k, g, amount, q, x, ok, ts FROM orders{one} UNION ALL "
            f"SELECT pk, pid % 3, paid, pid, NULL, paid > 10, ts FROM payments{two} UNION ALL "
            "SELECT 'z', 7, -amount, NULL, x, NOT ok, ts FROM orders) AS t"
        )
        return _From(text, text, _ORDER_KEYS, _ORDER_NUMBERS, _ORDER_CONDITIONS, ("UNION ALL",))

    def _unnested(self) -> _From:
        """Arrays are made from columns: of one length, empty, NULL, with NULLs in them."""
        source = self._rng.choice((ORDERS, ORDERS, CUSTOMERS))
        texts, number = ("k || '-' || g", "g") if source is ORDERS else ("region || '-' || level", "level")
        one, other = source.numbers[0], source.numbers[1]
        item, keys, numbers = self._rng.choice(
            (
                (f", UNNEST(string_to_array({texts}, '-')) WITH ORDINALITY AS u(v, o)", ("v", "o"), ("o", "length(v)")),
                (f" CROSS JOIN LATERAL UNNEST(ARRAY[{one}, NULL, {other}]) AS u(v)", ("v % 3", "v > 2"), ("v",)),
                (
                    f" LEFT JOIN UNNEST(CASE WHEN {number} > 1 THEN ARRAY[{number}, 7] END) AS u(v) ON true",
                    ("v",),
                    ("v",),
                ),
            )
        )
        text = f"{source.ours}{item}"
        return _From(
            text, text, (*keys, *source.keys[:2]), (*numbers, one), (*source.conditions, f"{keys[0]} IS NOT NULL"),
            ("UNNEST", *source.clauses),
        )  # fmt: skip

    def _window(self, kind: str) -> _From:
        rng = self._rng
        grace = rng.choice((0, 0, 25))
        delay, virtual, source = f"WITH ('watermark.delay.millis' = {ORDER_DELAY_S * 1000})", "", "orders"
        if rng.random() < 0.3:
            source, virtual = "t", f"SELECT k, g, amount, q, x, ok FROM orders {delay}"
        call, spans = self._spans(kind, source)
        return _From(
            call if virtual else f"{call} {delay}",
            _in_windows("orders", spans, _on_time(grace)),
            ("k", "g", "ok"), _ORDER_NUMBERS, _ORDER_CONDITIONS,
            (kind, f"grace {grace}", *(("application",) if virtual else ())),
            ("window_start", "window_end"), _grace(grace), virtual, _closed(grace),
        )  # fmt: skip

    def _spans(self, kind: str, source: str) -> tuple[str, str]:
        """A window of any length over a source, and the spans of a row's windows in PostgreSQL."""
        rng = self._rng
        step = rng.choice((15, 30, 60))
        size = step * rng.choice((1, 2, 3) if kind != "TUMBLE" else (1,))
        # The window's start is counted from 1970, as the engine does.
        base = "(extract(epoch FROM ts) * 1000)::bigint"
        start, whole = (f"floor({base} / {seconds * 1000}.0)::bigint * {seconds}" for seconds in (step, size))
        if kind == "TUMBLE":
            return f"TUMBLE({source}, SIZE {size} SECONDS)", f"(SELECT {start} AS s, {start} + {size} AS e) AS w"
        if kind == "HOP":
            series = f"generate_series({start} - {size - step}, {start}, {step})"
            call = f"HOP({source}, SIZE {size} SECONDS, ADVANCE BY {step} SECONDS)"
            return call, f"(SELECT s, s + {size} AS e FROM {series} AS s) AS w"
        series = f"generate_series({start} + {step}, {whole} + {size}, {step})"
        call = f"CUMULATE({source}, SIZE {size} SECONDS, STEP {step} SECONDS)"
        return call, f"(SELECT {whole} AS s, e FROM {series} AS e) AS w"

    def _changelog_window(self) -> _From:
        """Each row is in the window of the time that it has in the end."""
        call, spans = self._spans("TUMBLE", "customers")
        return replace(
            CUSTOMERS, ours=call, theirs=_in_windows("customers", spans, "true"),
            clauses=("changelog", "window over a changelog"), must_group=("window_start", "window_end"),
        )  # fmt: skip

    def _over_window(self, kind: str) -> _From:
        """A window over rows that are made of two topics."""
        rng = self._rng
        grace, delay = rng.choice((0, 0, 25)), f"WITH ('watermark.delay.millis' = {ORDER_DELAY_S * 1000})"
        on_time = _on_time(grace)
        form, behind_s = rng.choice(("UNION ALL", "temporal join", "interval join")), ORDER_DELAY_S
        if form == "UNION ALL":
            rows = (
                "SELECT k, g, amount, q, x, ok{time} FROM orders{delay} "
                "UNION ALL SELECT pk, pid % 3, paid, pid, NULL, paid > 10{time} FROM payments{delay}"
            )
            ours = rows.format(time="", delay=f" {delay}")
            theirs = rows.format(time=", ts, seen", delay="")
        elif form == "temporal join":
            side = rng.choice(("INNER", "LEFT"))
            rows = "SELECT o.k, o.g, o.amount, c.level AS q, o.x, o.ok"
            ours = f"{rows} FROM orders AS o {delay} {side} JOIN customers AS c {_CALM} ON o.k = c.ck"
            theirs = f"{rows}, o.ts, o.seen FROM orders AS o {side} JOIN LATERAL {_VERSION} ON true"
        else:
            side, seconds = rng.choice(("INNER", "LEFT")), rng.choice((5, 30, 90))
            rows = "SELECT o.k, o.g, o.amount, p.pid AS q, o.x, o.ok"
            on = f"WITHIN {seconds} SECONDS ON o.k = p.pk"
            near = f"o.k = p.pk AND abs(extract(epoch FROM o.ts - p.ts)) <= {seconds}"
            ours = f"{rows} FROM orders AS o {_CALM} {side} JOIN payments AS p {_CALM} {on}"
            theirs = f"{rows}, greatest(o.ts, p.ts) AS ts FROM orders AS o {side} JOIN payments AS p ON {near}"
            on_time, behind_s = "true", _CALM_S + seconds  # nothing is as late as that
        call, spans = self._spans(kind, f"({ours})")
        return _From(
            f"{call} AS t", _in_windows(f"({theirs}) AS made", spans, on_time),
            ("k", "g", "ok"), _ORDER_NUMBERS, _ORDER_CONDITIONS,
            (f"{kind} over joined rows", f"window over {form}", f"grace {grace}"),
            ("window_start", "window_end"), _grace(grace), final=_closed(grace, behind_s),
        )  # fmt: skip

    def _interval_join(self) -> _From:
        rng = self._rng
        side = rng.choice(("INNER", "LEFT", "FULL"))
        seconds = rng.choice((5, 30, 90))
        extra = rng.choice(("", " AND o.g > 0")) if side == "INNER" else ""
        condition = f"o.k = p.pk{extra}"
        near = f"abs(extract(epoch FROM o.ts - p.ts)) <= {seconds}"
        return _From(
            f"orders AS o {_CALM} {side} JOIN payments AS p {_CALM} WITHIN {seconds} SECONDS ON {condition}",
            f"orders AS o {side} JOIN payments AS p ON {condition} AND {near}"
            if side != "FULL"
            else _full(condition, near),
            ("o.k", "o.g", "p.pk", "coalesce(o.k, p.pk)"), ("o.amount", "p.paid", "o.g", "p.pid"),
            ("o.ok", "p.paid > 10", "o.g IS NOT NULL"), (f"{side} interval join",),
        )  # fmt: skip

    def _temporal_join(self) -> _From:
        side = self._rng.choice(("INNER", "LEFT"))
        return _From(
            f"orders AS o {_CALM} {side} JOIN customers AS c {_CALM} ON o.k = c.ck",
            f"orders AS o {side} JOIN LATERAL {_VERSION} ON true",
            ("o.k", "c.region", "c.level", "coalesce(c.region, '?')"), ("o.amount", "c.level", "o.g"),
            ("o.ok", "c.level > 1", "c.region IS NOT NULL"), (f"{side} temporal join",),
        )  # fmt: skip

    def _changelog_join(self) -> _From:
        """Of current rows: in PostgreSQL, of the table as it is in the end."""
        side = self._rng.choice(("INNER", "LEFT", "FULL"))
        condition = self._rng.choice(
            ("c.region = d.region", "c.level = d.level AND c.region = d.region", "c.ck = d.ck")
        )
        if side != "FULL":  # PostgreSQL has FULL JOIN for mergeable conditions only
            condition += self._rng.choice(("", " AND c.level < d.level", " AND c.ck <> d.ck"))
        text = f"customers AS c {side} JOIN customers AS d ON {condition}"
        return _From(
            text, text, ("c.region", "d.level", "coalesce(c.ck, d.ck)", "c.level = d.level"),
            ("c.level", "d.level", "c.level - d.level"), ("c.level > 1", "d.region IS NULL", "c.ck IS NOT NULL"),
            (f"{side} changelog join", "changelog join"),
        )  # fmt: skip

    # --- joins of joined rows ---------------------------------------------------------------------------------------
    def _pairs(self) -> tuple[str, str]:
        """Orders and payments, to be joined again, in both dialects; few, since they multiply."""
        side, seconds = self._rng.choice(("INNER", "LEFT")), self._rng.choice((2, 5))
        condition = "o.k = p.pk" + self._rng.choice(("", " AND o.g < p.pid"))
        return (
            f"orders AS o {_CALM} {side} JOIN payments AS p {_CALM} WITHIN {seconds} SECONDS ON {condition}",
            f"orders AS o {side} JOIN payments AS p ON {condition} AND {_near('o.ts', 'p.ts', seconds)}",
        )

    def _streams_and_changelog(self) -> _From:
        side, (ours, theirs) = self._rng.choice(("INNER", "LEFT")), self._pairs()
        extra = self._rng.choice(("", " AND c.level > o.g"))
        return _chain(
            f"{ours} {side} JOIN customers AS c {_CALM} ON o.k = c.ck{extra}",
            f"{theirs} {side} JOIN LATERAL {_version(at='greatest(o.ts, p.ts)')} ON true{extra}",
            ("o.k", "p.pid % 3", "c.region"), ("o.amount", "p.paid", "c.level"), ("o.ok", "c.level > 1"),
            "stream, stream, changelog",
        )  # fmt: skip

    def _stream_and_changelogs(self) -> _From:
        one, other = (self._rng.choice(("INNER", "LEFT")) for _ in range(2))
        key = self._rng.choice(  # NULL for the last records, which would wait for ever
            ("CASE WHEN o.g > 0 THEN 'a' WHEN o.g < 1 THEN o.k END",
             "CASE WHEN c.level > 1 THEN 'b' WHEN c.level < 2 THEN 'd' END")
        )  # fmt: skip
        return _chain(
            f"orders AS o {_CALM} {one} JOIN customers AS c {_CALM} ON o.k = c.ck "
            f"{other} JOIN customers AS d {_CALM} ON {key} = d.ck",
            f"orders AS o {one} JOIN LATERAL {_VERSION} ON true {other} JOIN LATERAL {_version(key, name='d')} ON true",
            ("o.k", "c.region", "d.region"), ("o.amount", "c.level", "d.level"),
            ("d.level > 1", "c.region IS NOT NULL"),
            "stream, changelog, changelog",
        )  # fmt: skip

    def _three_streams(self) -> _From:
        rng, (ours, theirs) = self._rng, self._pairs()
        side, seconds = rng.choice(("INNER", "LEFT")), rng.choice((2, 5))
        condition = f"{rng.choice(('o.k', 'p.pk'))} = q.pk{rng.choice(('', ' AND q.pid <> p.pid'))}"
        return _chain(
            f"{ours} {side} JOIN payments AS q {_CALM} WITHIN {seconds} SECONDS ON {condition}",
            f"{theirs} {side} JOIN payments AS q ON {condition} AND {_near('greatest(o.ts, p.ts)', 'q.ts', seconds)}",
            ("o.k", "p.pid % 3", "q.pk"), ("o.amount", "p.paid", "q.pid"), ("o.ok", "q.paid > 10", "q.pid IS NOT NULL"),
            "three streams",
        )  # fmt: skip

    def _joined_sub_query(self) -> _From:
        """What the sub-query computes is evaluated by DuckDB, or else by Spark."""
        rng, (ours, theirs) = self._rng, self._pairs()
        side, seconds = rng.choice(("INNER", "LEFT")), rng.choice((2, 5))
        where = rng.choice(("", " WHERE o.ok", " WHERE p.paid > 10"))
        text = f"SELECT o.k, o.g, o.amount, p.pid, {rng.choice(('p.paid * 2', 'length(p.pk)'))} AS paid"
        theirs = f"({text}, greatest(o.ts, p.ts) AS ts FROM {theirs}{where}) AS t"
        return _chain(
            f"({text} FROM {ours}{where}) AS t "
            f"{side} JOIN payments AS q {_CALM} WITHIN {seconds} SECONDS ON t.k = q.pk",
            f"{theirs} {side} JOIN payments AS q ON t.k = q.pk AND {_near('t.ts', 'q.ts', seconds)}",
            ("t.k", "t.g", "q.pk"), ("t.amount", "t.paid", "q.pid"), ("t.g > 0", "q.paid > 10"),
            "a join in a sub-query joined again",
        )  # fmt: skip

    def _joined_joins(self) -> _From:
        """Both sides are joins."""
        rng, (ours, theirs) = self._rng, self._pairs()
        side, seconds = rng.choice(("INNER", "LEFT")), rng.choice((2, 5))
        left, right = "SELECT o.k, o.g, p.pid", "SELECT x.k, x.id, x.amount, c.level"
        return _chain(
            f"({left} FROM {ours}) AS t {side} JOIN ({right} FROM orders AS x {_CALM} LEFT JOIN customers AS c {_CALM} "
            f"ON x.k = c.ck) AS u WITHIN {seconds} SECONDS ON t.k = u.k",
            f"({left}, greatest(o.ts, p.ts) AS ts FROM {theirs}) AS t {side} JOIN ({right}, x.ts FROM orders AS x "
            f"LEFT JOIN LATERAL {_version('x.k', 'x.ts')} ON true) AS u "
            f"ON t.k = u.k AND {_near('t.ts', 'u.ts', seconds)}",
            ("t.k", "u.level", "t.g"), ("u.id", "t.pid", "u.amount"), ("u.level > 1", "t.g > 0"),
            "joins on both sides",
        )  # fmt: skip

    def _four_relations(self) -> _From:
        rng, (ours, theirs) = self._rng, self._pairs()
        sides = [rng.choice(("INNER", "LEFT")) for _ in range(2)]
        time = "greatest(o.ts, p.ts, q.ts)"
        return _chain(
            f"{ours} {sides[0]} JOIN payments AS q {_CALM} WITHIN 3 SECONDS ON o.k = q.pk "
            f"{sides[1]} JOIN customers AS c {_CALM} ON o.k = c.ck",
            f"{theirs} {sides[0]} JOIN payments AS q ON o.k = q.pk AND {_near('greatest(o.ts, p.ts)', 'q.ts', 3)} "
            f"{sides[1]} JOIN LATERAL {_version(at=time)} ON true",
            ("o.k", "q.pid % 3", "c.region"), ("o.amount", "p.paid", "q.paid", "c.level"), ("o.ok", "c.level > 1"),
            "four relations",
        )  # fmt: skip

    # --- queries ----------------------------------------------------------------------------------------------------
    def _projection(self, source: _From) -> Program:
        rng = self._rng
        items = rng.sample([*source.keys, *source.numbers], k=min(4, len(source.keys) + len(source.numbers)))
        select = ", ".join(f"{text} AS c{i}" for i, text in enumerate(dict.fromkeys(items)))
        where, clauses = self._where(source)
        return _written(source, f"SELECT {select}", where, "", ("projection", *clauses))

    def _distinct(self, source: _From) -> Program:
        items = self._rng.sample(source.keys, k=2)
        where, clauses = self._where(source)
        select = ", ".join(f"{text} AS k{i}" for i, text in enumerate(items))
        return replace(_written(source, f"SELECT DISTINCT {select}", where, "", ("DISTINCT", *clauses)), keys=2)

    def _either(self, source: _From) -> Program:
        return self._rng.choice((self._aggregation, self._projection))(source)

    def _aggregation(self, source: _From) -> Program:
        rng = self._rng
        keys = [*source.must_group, *rng.sample(source.keys, k=rng.choice((0, 1, 1, 2)))]
        where, clauses = self._where(source)
        tail, more = self._tail(keys)
        calls, used = self._calls(source)
        select = ", ".join([*(f"{text} AS k{i}" for i, text in enumerate(keys)), *calls])
        written = _written(source, f"SELECT {select}", where, tail, ("GROUP BY", *clauses, *more, *used))
        return replace(self._emitted(written, source.final), keys=len(keys))

    def _grouping_sets(self, source: _From) -> Program:
        rng = self._rng
        a, b = rng.sample(source.keys[:3] if len(source.keys) > 2 else source.keys, k=2)
        clause = rng.choice((f"ROLLUP ({a}, {b})", f"CUBE ({a}, {b})", f"GROUPING SETS (({a}), ({b}), ())"))
        where, clauses = self._where(source)
        calls, used = self._calls(source)
        keys = [*source.must_group, a, b]
        select = [*(f"{text} AS k{i}" for i, text in enumerate(keys)), f"grouping({a}, {b}) AS level", *calls]
        tail = f" GROUP BY {', '.join([*source.must_group, clause])}"
        written = _written(source, f"SELECT {', '.join(select)}", where, tail, ("grouping sets", *clauses, *used))
        return self._emitted(written, source.final)

    def _sessions(self) -> Program:
        """What a session is made of has passed the WHERE and is not late, so both are inside."""
        rng = self._rng
        by = rng.choice(((), ("k",), ("k", "g")))
        gap, grace = rng.choice((2, 5, 20)), rng.choice((0, 0, 25))
        where, clauses = self._where(ORDERS)
        calls, used = self._calls(ORDERS, distinct=False)
        keys = ["window_start", "window_end", *by]
        tail, more = self._tail(keys)
        select = ", ".join([*(f"{text} AS k{i}" for i, text in enumerate(keys)), *calls])
        partition = f"PARTITION BY {', '.join(by)}" if by else ""
        length = f"interval '{gap} seconds'"
        taken = (
            f"SELECT *, CASE WHEN ts <= lag(ts) OVER ({partition} ORDER BY ts) + {length} THEN 0 ELSE 1 END AS begins "
            f"FROM orders WHERE (seen IS NULL OR ts + interval '{gap + grace} seconds' > "
            f"seen - interval '{ORDER_DELAY_S} seconds'){f' AND ({where})' if where else ''}"
        )
        islands = f"SELECT *, sum(begins) OVER ({partition} ORDER BY ts) AS island FROM ({taken}) AS b"
        of_island = f"(PARTITION BY {', '.join([*by, 'island'])})"
        theirs = (
            f"(SELECT *, min(ts) OVER {of_island} AS window_start, max(ts) OVER {of_island} + {length} AS window_end "
            f"FROM ({islands}) AS i) AS t WHERE true"
        )
        ours = (
            f"SESSION(orders {partition}, GAP {gap} SECONDS) WITH ('watermark.delay.millis' = {ORDER_DELAY_S * 1000})"
        )
        program = Program(
            _statement(ours, f"SELECT {select}", where, tail),
            _statement(theirs, f"SELECT {select}", "", tail),
            ("SESSION", f"grace {grace}", "GROUP BY", *clauses, *more, *used),
            _grace(grace),
            keys=len(keys),
        )
        return self._emitted(program, _closed(gap + grace))

    def forgetting(self) -> Program:
        """Groups of which the latest island of records is there, where the watermark is before its end. The watermark
        comes to where about half of the orders are."""
        rng = self._rng
        by = rng.sample(_ORDER_KEYS, k=rng.choice((1, 1, 2)))
        ttl, delay = rng.choice((3, 20, 60)), round((LAST - EPOCH).total_seconds()) - rng.choice((300, 550))
        where, clauses = self._where(ORDERS)
        calls, used = self._calls(ORDERS, distinct=False)
        tail, more = self._tail(by)
        select = ", ".join([*(f"{text} AS k{i}" for i, text in enumerate(by)), *calls])
        partition, length = f"PARTITION BY {', '.join(by)}", f"interval '{ttl} seconds'"
        taken = (
            f"SELECT *, CASE WHEN ts <= lag(ts) OVER ({partition} ORDER BY ts) + {length} THEN 0 ELSE 1 END AS begins "
            f"FROM orders WHERE (seen IS NULL OR ts + {length} > seen - interval '{delay} seconds')"
            f"{f' AND ({where})' if where else ''}"
        )
        islands = f"SELECT *, sum(begins) OVER ({partition} ORDER BY ts) AS island FROM ({taken}) AS b"
        latest = (
            f"SELECT *, max(island) OVER ({partition}) AS latest, "
            f"max(ts) OVER ({partition}, island) + {length} AS ends FROM ({islands}) AS i"
        )
        theirs = (
            f"(SELECT * FROM ({latest}) AS l WHERE island = latest "
            f"AND ends > timestamp '{LAST}' - interval '{delay} seconds') AS t WHERE true"
        )
        ours = f"orders WITH ('watermark.delay.millis' = {delay * 1000})"
        given = rng.choice(("state.ttl.millis", "retention.millis", "QUERY WITH"))
        asked = f" QUERY WITH ('state.ttl.millis' = {ttl * 1000})" if given == "QUERY WITH" else ""
        return Program(
            _statement(ours, f"SELECT {select}", where, f"{tail}{asked}"),
            _statement(theirs, f"SELECT {select}", "", tail),
            ("forgotten groups", "GROUP BY", *clauses, *more, *used),
            "" if asked else f"'{given}' = {ttl * 1000}",
            keys=len(by),
        )

    def _tail(self, keys: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        tail = f" GROUP BY {', '.join(keys)}" if keys else ""
        if self._rng.random() >= 0.4:
            return tail, ()
        having = self._rng.choice(("count(*) > 1", "count(*) % 2 = 0", "count(*) > 2 OR count(*) = 1"))
        return f"{tail} HAVING {having}", ("HAVING",)

    def _emitted(self, program: Program, final: str) -> Program:
        """Half of what is over windows shows them when they are closed."""
        if not final or self._rng.random() < 0.5:
            return program
        theirs = f"SELECT * FROM ({program.theirs}) AS whole WHERE {final}"
        return replace(
            program, ours=f"{program.ours} EMIT FINAL", theirs=theirs, clauses=(*program.clauses, "EMIT FINAL")
        )

    def _calls(self, source: _From, *, distinct: bool = True) -> tuple[list[str], tuple[str, ...]]:
        rng = self._rng
        calls, used = ["count(*) AS n"], []
        for i in range(rng.randint(1, 4)):
            number = rng.choice(source.numbers)
            names = ("sum({})", "count({})", "min({})", "max({})", "avg({})", "count(DISTINCT {})")
            name = rng.choice(names if distinct else names[:-1])
            text = name.format(number)
            used.append(name)
            if rng.random() < 0.3:
                text += f" FILTER (WHERE {rng.choice(source.conditions)})"
                used.append("FILTER")
            calls.append(f"{text} AS a{i}")
        return calls, tuple(used)

    def _where(self, source: _From) -> tuple[str, tuple[str, ...]]:
        if self._rng.random() < 0.5:
            return "", ()
        return self._rng.choice(source.conditions), ("WHERE",)


def _chain(
    ours: str, theirs: str, keys: tuple[str, ...], numbers: tuple[str, ...], conditions: tuple[str, ...], form: str
) -> _From:
    return _From(ours, theirs, keys, numbers, conditions, ("chain", form))


def _near(one: str, other: str, seconds: int) -> str:
    return f"abs(extract(epoch FROM {one} - {other})) <= {seconds}"


def _grace(seconds: int) -> str:
    return f"'window.grace.millis' = {seconds * 1000}" if seconds else ""


def _closed(seconds: int, behind_s: int = ORDER_DELAY_S) -> str:
    """A window is closed so long after its end, by the watermark that the last record of each partition moves."""
    return f"k1 + interval '{seconds} seconds' <= timestamp '{LAST}' - interval '{behind_s} seconds'"


def _on_time(grace: int) -> str:
    passed = f"seen - interval '{ORDER_DELAY_S} seconds'"
    return f"(seen IS NULL OR window_end + interval '{grace} seconds' > {passed})"


def _in_windows(rows: str, spans: str, on_time: str) -> str:
    """Rows, which have a time ``ts``, once for each of their windows."""
    name = rows.rsplit(" ", 1)[-1]
    return (
        f"(SELECT {name}.*, timestamp '1970-01-01' + s * interval '1 second' AS window_start, "
        f"timestamp '1970-01-01' + e * interval '1 second' AS window_end FROM {rows} "
        f"CROSS JOIN LATERAL {spans}) AS t WHERE {on_time}"
    )


def _full(condition: str, near: str) -> str:
    """PostgreSQL has FULL JOIN for mergeable conditions only."""
    both = f"{condition} AND {near}"
    return (
        f"(SELECT o, p FROM orders AS o LEFT JOIN payments AS p ON {both} UNION ALL "
        f"SELECT NULL::orders, p FROM payments AS p "
        f"WHERE NOT EXISTS (SELECT 1 FROM orders AS o WHERE {both})) AS pairs "
        "CROSS JOIN LATERAL (SELECT (pairs.o).*) AS o CROSS JOIN LATERAL (SELECT (pairs.p).*) AS p"
    )


def _written(source: _From, select: str, where: str, tail: str, clauses: tuple[str, ...]) -> Program:
    return Program(
        _statement(source.ours, select, where, tail),
        _statement(source.theirs, select, where, tail),
        (*source.clauses, *clauses),
        source.properties,
        source.virtual,
    )


def _statement(source: str, select: str, where: str, tail: str) -> str:
    if source.startswith("WITH t AS"):
        return f"{source} {select} FROM t{f' WHERE {where}' if where else ''}{tail}"
    joined = " AND " if ") AS t WHERE " in source and not source.startswith("(SELECT k,") else " WHERE "
    return f"{select} FROM {source}{f'{joined}({where})' if where else ''}{tail}"
