"""The table of oracles: every function of the capability table with ways to call it, and what each call must give.

A use is written twice: in our SQL, and in Spark SQL over the generator's typed rows, mostly by the row functions of
``oracle_functions``. Nothing here is taken from our compiler. ``{0}``, ``{1}`` ... stand for arguments, drawn from a
*domain*: a set of values, narrower than a type, for which the function is defined.

Domains: ``b`` booleans; ``i`` small integers; ``i1 i2 i4 i8`` integers of the whole range; ``x`` doubles within a
million; ``u`` doubles within [-1, 1]; ``p`` doubles above zero; ``f8`` any double; ``t`` a double to look at, equal up
to rounding; ``f4`` any float; ``n`` DECIMAL(10, 2); ``w`` DECIMAL(38, 10); ``q`` a decimal to look at only; ``s`` any
text; ``k`` words; ``js`` JSON texts; ``y`` binary; ``d tm ts tz`` dates, times, timestamps and instants; ``arr`` and
``words`` arrays of integers and texts; ``m`` a map of texts to integers; ``bag`` an array in no order; ``z`` any value
to look at only.
"""

from __future__ import annotations

from dataclasses import dataclass

Slot = str | tuple[str, ...]
"""A domain, or the constants to choose among (spelled the same on both sides)."""

TYPES = {
    "b": "BOOLEAN",
    "i": "INTEGER",
    "i1": "TINYINT",
    "i2": "SMALLINT",
    "i4": "INTEGER",
    "i8": "BIGINT",
    "x": "DOUBLE",
    "t": "DOUBLE",
    "u": "DOUBLE",
    "p": "DOUBLE",
    "f8": "DOUBLE",
    "f4": "FLOAT",
    "n": "DECIMAL(10, 2)",
    "w": "DECIMAL(38, 10)",
    "s": "VARCHAR",
    "k": "VARCHAR",
    "js": "VARCHAR",
    "y": "VARBINARY",
    "d": "DATE",
    "tm": "TIME",
    "ts": "TIMESTAMP",
    "tz": "TIMESTAMP_LTZ",
    "arr": "ARRAY<INTEGER>",
    "words": "ARRAY<VARCHAR>",
    "m": "MAP<VARCHAR, INTEGER>",
}


@dataclass(frozen=True)
class Use:
    """One way to call a function. ``result`` is the domain of its values."""

    ours: str
    oracle: str
    arguments: tuple[Slot, ...]
    result: str


def _use(ours: str, oracle: str, arguments: str | tuple[Slot, ...], result: str) -> Use:
    slots = tuple(arguments.split()) if isinstance(arguments, str) else arguments
    return Use(ours, oracle, slots, result)


def _same(text: str, arguments: str | tuple[Slot, ...], result: str) -> Use:
    """Where a plain operation means the same everywhere."""
    return _use(text, text, arguments, result)


_SMALL = ("0", "1", "2", "3", "-1", "-2")
_COUNT = ("0", "1", "2", "5", "-1", "-3", "12")
_PART = ("'a'", "'l'", "','", "' '", "'-'", "'é'", "''", "'b-'")
_UNITS = (
    "'hour'",
    "'day'",
    "'week'",
    "'month'",
    "'quarter'",
    "'year'",
    "'minute'",
    "'second'",
    "'milliseconds'",
    "'decade'",
    "'century'",
    "'microseconds'",
)
_ONE_ARGUMENT = ("cbrt", "sinh", "cosh", "tanh", "degrees", "radians", "sin", "cos", "tan", "atan")
_NTZ = "cast({0} as timestamp_ntz)"


def _arithmetic(sign: str, name: str) -> tuple[Use, ...]:
    exact = "cast({0} as decimal(38,0)) " + sign + " cast({1} as decimal(38,0))"
    return (
        _use(f"({{0}} {sign} {{1}})", f"cast({exact} as int)", ("i", "i"), "i4"),
        _use(f"(CAST({{0}} AS bigint) {sign} {{1}})", f"cast({exact} as bigint)", ("i4", "i"), "i8"),
        _use(f"(CAST({{0}} AS smallint) {sign} CAST({{1}} AS smallint))", f"cast({exact} as smallint)", "i i", "i2"),
        _use(f"({{0}} {sign} {{1}})", f"o_decimal_{name}({{0}}, {{1}})", ("n", "n"), "q"),
        _use(f"({{0}} {sign} {{1}})", f"o_decimal_{name}({{0}}, cast({{1}} as decimal(10,0)))", ("n", "i"), "q"),
        _same(f"({{0}} {sign} {{1}})", ("x", "x"), "f8"),
    )


def _comparison(sign: str) -> tuple[Use, ...]:
    return (
        *tuple(
            _same(f"({{0}} {sign} {{1}})", slots, "b")
            for slots in ("i i", "i8 i4", "n n", "s s", "d d", "ts ts", "tz tz", "x x", "b b", "tm tm")
        ),
        _use(f"({{0}} {sign} {{1}})", f"(cast({{0}} as decimal(38,2)) {sign} {{1}})", ("i", "n"), "b"),
    )


def _fields(name: str, result: str, wrapped: str) -> tuple[Use, ...]:
    call = f"{name}('{{0}}', {{1}})" if name == "date_part" else f"{name}({{0}} FROM {{1}})"
    words = (
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "second",
        "milliseconds",
        "microseconds",
        "epoch",
        "quarter",
        "week",
        "isoyear",
        "isodow",
        "dow",
        "doy",
        "decade",
        "century",
        "millennium",
    )
    days = ("year", "month", "day", "quarter", "week", "isoyear", "isodow", "dow", "doy", "decade", "century", "epoch")
    value = wrapped.format("o_field('{0}', cast({1} as timestamp_ntz))")
    return (
        _use(call, value, (words, "ts"), result),
        _use(call, value, (words, "tz"), result),
        _use(call, value, (days, "d"), result),
        _use(
            call,
            wrapped.format("o_field('{0}', cast(concat('2000-01-01 ', cast({1} as string)) as timestamp_ntz))"),
            (("hour", "minute", "second"), "tm"),
            result,
        ),
    )


def _clock(name: str, field: str, argument: str) -> tuple[Use, ...]:
    shift = " + 1" if name == "dayofweek" else ""
    value = f"cast(floor(o_field('{field}', cast({{0}} as timestamp_ntz))) as bigint){shift}"
    return tuple(_use(f"{name}({{0}})", value, (slot,), "i8") for slot in argument.split())


def _digest(name: str) -> tuple[Use, ...]:
    return (
        _use(f"{name}({{0}})", f"o_{name}_hex({{0}})", ("s",), "k"),
        _use(f"encode({name}({{0}}), 'hex')", f"o_{name}_hex({{0}})", ("y",), "k")
        if name not in ("md5", "sha1")
        else _use(f"{name}({{0}})", f"o_{name}_hex({{0}})", ("y",), "k"),
    )


def _path(name: str, oracle: str, result: str) -> tuple[Use, ...]:
    paths = (
        ("$.a", "a"),
        ("$.b.c", "b.c"),
        ("$.l[1]", "l.1"),
        ("$.b", "b"),
        ("$.l", "l"),
        ("$.z", "z"),
        ("$.no", "no"),
    )
    return tuple(
        _use(f"{name}({{0}}, '{ours}')", f"{oracle}({{0}}, '{theirs}')", ("js",), result) for ours, theirs in paths
    )


_TO_CHAR = (
    ("YYYY-MM-DD HH24:MI:SS.US", "%Y-%m-%d %H:%M:%S.%f"),
    ("Dy, DD Mon YY", "%a, %d %b %y"),
    ("HH12:MI AM", "%I:%M %p"),
    ('YYYY"T"DDD', "%YT%j"),
    ("FMMonth FMDay", "%B %A"),
    ("DD/MM/YYYY MS", "%d/%m/%Y %3f"),
)
_JAVA = (
    ("yyyy-MM-dd HH:mm", "%Y-%m-%d %H:%M"),
    ("yyyyMMdd''T''HHmmss.SSS", "%Y%m%dT%H%M%S.%3f"),
    ("dd/MM/yyyy", "%d/%m/%Y"),
)
_PLAIN_PATTERNS = ("'[0-9]+'", "'l+'", "'^[a-z]+'", "'[^a-z]'", "'x{1,2}'")  # without groups
_PATTERNS = ("'[0-9]+'", "'l+'", "'^[a-z]+'", "'(a|b)-?'", "'[^a-z]'", "'x{1,2}'")

ORACLES: dict[str, tuple[Use, ...]] = {
    # --- arithmetic
    "+": (
        *_arithmetic("+", "add"),
        _use("({0} + {1})", "o_days_later({0}, {1})", ("d", "i"), "d"),
        _use("({0} + INTERVAL '1 month 2 days 03:04:05')", "o_later({0}, 1, 2, 11045000000)", ("ts",), "ts"),
        _use(
            "({0} + INTERVAL '36 hours')",
            "cast(o_later(cast({0} as timestamp_ntz), 0, 0, 129600000000) as timestamp)",
            ("tz",),
            "tz",
        ),
    ),
    "-": (
        *_arithmetic("-", "subtract"),
        _use("({0} - {1})", "o_days_between({0}, {1})", ("d", "d"), "i4"),
        _use("({0} - INTERVAL '1 year 1 day')", "o_later({0}, -12, -1, 0)", ("ts",), "ts"),
        _use("(- {0})", "cast(- cast({0} as bigint) as int)", ("i",), "i"),
        _use("EXTRACT(EPOCH FROM ({0} - {1}))", "o_micros_between({0}, {1}) / 1000000bd", ("ts", "ts"), "q"),
    ),
    "*": (
        _use("({0} * {1})", "cast(cast({0} as bigint) * {1} as int)", ("i", "i"), "i4"),
        _use("({0} * {1})", "o_decimal_multiply({0}, cast({1} as decimal(10,0)))", ("n", "i"), "q"),
        _use("({0} * {0})", "o_decimal_multiply({0}, {0})", ("n",), "q"),
        _same("({0} * {1})", "x u", "x"),
    ),
    "/": (
        _use("({0} / {1})", "cast(o_quotient({0}, {1}) as int)", ("i4", ("2", "3", "-7", "100")), "i4"),
        _use("({0} / NULLIF({1}, 0))", "cast(o_quotient({0}, {1}) as int)", ("i", "i"), "i"),
        _use("({0} / NULLIF({1}, 0))", "o_quotient({0}, {1})", ("i8", "i"), "z"),
        _use("({0} / {1})", "({0} / {1})", ("x", "p"), "f8"),
        _use("({0} / 3)", "o_decimal_divide({0}, 3bd, 13)", ("n",), "z"),
    ),
    "%": (
        _use("({0} % {1})", "cast(o_remainder({0}, {1}) as int)", ("i4", ("2", "3", "-7", "100")), "i"),
        _use("mod({0}, {1})", "o_remainder({0}, {1})", ("i8", ("10", "-3")), "i8"),
        _use("({0} % 1.75)", "o_decimal_remainder({0}, 1.75bd)", ("n",), "q"),
    ),
    "^": (_use("({0} ^ 2)", "o_power({0}, 2.0d)", ("x",), "t"), _use("({0} ^ 0.5)", "o_power({0}, 0.5d)", ("p",), "t")),
    "&": (_same("({0} & {1})", "i4 i4", "i4"), _same("({0} & {1})", "i8 i8", "i8")),
    "|": (_same("({0} | {1})", "i4 i4", "i4"), _same("({0} | {1})", "i2 i2", "i2")),
    "#": (_use("({0} # {1})", "({0} ^ {1})", "i4 i4", "i4"), _use("({0} # {1})", "({0} ^ {1})", "i8 i8", "i8")),
    "prefix ~": (_use("(~ {0})", "cast(-1 - cast({0} as bigint) as int)", ("i4",), "i4"),),
    "<<": (_use("({0} << {1})", "o_wrapped_shift_left({0}, {1})", ("i4", ("0", "1", "5", "31")), "i4"),),
    ">>": (_use("({0} >> {1})", "cast(floor({0} / power(2, {1})) as int)", ("i4", ("0", "1", "5")), "i4"),),
    "normalized key": (),  # made by GROUP BY of a float or double
    # --- comparison
    **{sign: _comparison(sign) for sign in ("=", "<>", "<", "<=", ">", ">=")},
    "is distinct from": tuple(
        _use("({0} IS DISTINCT FROM {1})", "(NOT ({0} <=> {1}))", s, "b") for s in ("k k", "i i", "d d")
    ),
    "is not distinct from": tuple(
        _use("({0} IS NOT DISTINCT FROM {1})", "({0} <=> {1})", s, "b") for s in ("k k", "n n", "b b")
    ),
    "is null": tuple(_same("({0} IS NULL)", s, "b") for s in ("s", "i8", "tz", "n", "arr", "m")),
    "is not null": tuple(_same("({0} IS NOT NULL)", s, "b") for s in ("s", "f8", "tm", "y", "words")),
    "between": tuple(
        _use("({0} BETWEEN {1} AND {2})", "({0} >= {1} AND {0} <= {2})", s, "b")
        for s in ("i i i", "s s s", "d d d", "n n n")
    ),
    "in": (
        _use("({0} IN (1, 2, {1}))", "({0} = 1 OR {0} = 2 OR {0} = {1})", "i i", "b"),
        _use("({0} NOT IN ('a', 'b-c'))", "(NOT ({0} = 'a' OR {0} = 'b-c'))", "k", "b"),
        _use("({0} IN (1, NULL))", "({0} = 1 OR cast(NULL as boolean))", "i", "b"),
    ),
    # --- logic
    "and": (_same("({0} AND {1})", "b b", "b"),),
    "or": (_same("({0} OR {1})", "b b", "b"),),
    "not": (_same("(NOT {0})", "b", "b"),),
    "is true": (_use("({0} IS TRUE)", "coalesce({0}, false)", "b", "b"),),
    "is not true": (_use("({0} IS NOT TRUE)", "NOT coalesce({0}, false)", "b", "b"),),
    "is false": (_use("({0} IS FALSE)", "NOT coalesce({0}, true)", "b", "b"),),
    "is not false": (_use("({0} IS NOT FALSE)", "coalesce({0}, true)", "b", "b"),),
    "coalesce": (
        *tuple(
            _use(
                "coalesce({0}, {1}, {2})",
                "CASE WHEN {0} IS NOT NULL THEN {0} WHEN {1} IS NOT NULL THEN {1} ELSE {2} END",
                f"{s} {s} {s}",
                s,
            )
            for s in ("s", "i", "d", "n", "f8", "tz")
        ),
        _use("coalesce({0}, {1})", "coalesce(cast({0} as decimal(12,2)), cast({1} as decimal(12,2)))", "i n", "q"),
    ),
    "ifnull": tuple(
        _use("ifnull({0}, {1})", "CASE WHEN {0} IS NULL THEN {1} ELSE {0} END", f"{s} {s}", s)
        for s in ("s", "i4", "ts")
    ),
    "nullif": tuple(
        _use("nullif({0}, {1})", "CASE WHEN {0} = {1} THEN NULL ELSE {0} END", f"{s} {s}", s) for s in ("i", "k", "d")
    ),
    "greatest": tuple(
        _use("greatest({0}, {1})", "CASE WHEN {0} IS NULL OR {1} > {0} THEN {1} ELSE {0} END", f"{s} {s}", s)
        for s in ("i", "s", "d", "n", "ts")
    ),
    "least": tuple(
        _use("least({0}, {1})", "CASE WHEN {0} IS NULL OR {1} < {0} THEN {1} ELSE {0} END", f"{s} {s}", s)
        for s in ("i", "s", "tz", "i8")
    ),
    "if": tuple(
        _use("if({0}, {1}, {2})", "CASE WHEN {0} THEN {1} ELSE {2} END", f"b {s} {s}", s) for s in ("i", "s", "tm")
    ),
    # --- text
    "||": (
        _use("({0} || {1})", "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN o_concat({0}, {1}) END", "s s", "s"),
        _use(
            "({0} || {1})",
            "CASE WHEN {1} IS NOT NULL THEN o_concat({0}, cast({1} as string)) END",
            (("'n='",), "i8"),
            "s",
        ),
        _use(
            "({0} || {1})",
            "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN o_concat({0}, cast({1} as string)) END",
            "k d",
            "s",
        ),
    ),
    "concat": (
        _use("concat({0}, {1}, {2})", "o_concat({0}, cast({1} as string), {2})", "s n s", "s"),
        _use("concat({0}, {1})", "o_concat(cast({0} as string), cast({1} as string))", "i b", "k"),
    ),
    "concat_ws": (
        _use(
            "concat_ws('-', {0}, {1}, {2})",
            "o_concat_ws('-', {0}, cast({1} as string), cast({2} as string))",
            "s i d",
            "s",
        ),
        _use("concat_ws({0}, {1}, {2})", "o_concat_ws({0}, {1}, {2})", "k k s", "s"),
    ),
    "length": (
        _use("length({0})", "o_length({0})", "s", "i"),
        _use("char_length({0})", "o_length({0})", "s", "i"),
        _use("length({0})", "cast(length(o_hex_of({0})) / 2 as int)", "y", "i"),
    ),
    "octet_length": (
        _use("octet_length({0})", "o_octets({0})", "s", "i"),
        _use("octet_length({0})", "cast(length(o_hex_of({0})) / 2 as int)", "y", "i"),
    ),
    "bit_length": (
        _use("bit_length({0})", "(o_octets({0}) * 8)", "s", "i4"),
        _use("bit_length({0})", "(length(o_hex_of({0})) * 4)", "y", "i4"),
    ),
    "upper": (_use("upper({0})", "o_upper({0})", "s", "s"), _use("ucase({0})", "o_upper({0})", "k", "k")),
    "lower": (_use("lower({0})", "o_lower({0})", "s", "s"), _use("lcase({0})", "o_lower({0})", "k", "k")),
    "initcap": (_use("initcap({0})", "o_initcap({0})", "s", "s"),),
    "substring": (
        _use("substring({0}, {1}, {2})", "o_substring({0}, {1}, {2})", ("s", _SMALL, ("0", "1", "3", "20")), "s"),
        _use("substring({0} FROM {1})", "o_substring({0}, {1})", ("s", _SMALL), "s"),
    ),
    "left": (_use("left({0}, {1})", "o_left({0}, {1})", ("s", _COUNT), "s"),),
    "right": (_use("right({0}, {1})", "o_right({0}, {1})", ("s", _COUNT), "s"),),
    "lpad": (
        _use("lpad({0}, {1}, {2})", "o_lpad({0}, {1}, {2})", ("s", _COUNT, ("'xy'", "''", "'é'")), "s"),
        _use("lpad({0}, {1})", "o_lpad({0}, {1}, ' ')", ("s", _COUNT), "s"),
    ),
    "rpad": (
        _use("rpad({0}, {1}, {2})", "o_rpad({0}, {1}, {2})", ("s", _COUNT, ("'xy'", "''", "'é'")), "s"),
        _use("rpad({0}, {1})", "o_rpad({0}, {1}, ' ')", ("s", _COUNT), "s"),
    ),
    **{
        name: (
            _use(f"{name}({{0}})", f"o_{name}({{0}}, ' ')", "s", "s"),
            _use(f"{name}({{0}}, {{1}})", f"o_{name}({{0}}, {{1}})", ("s", ("'a'", "'x y'", "''", "'-]^é'")), "s"),
        )
        for name in ("btrim", "ltrim", "rtrim")
    },
    "replace": (_use("replace({0}, {1}, {2})", "o_replace({0}, {1}, {2})", ("s", _PART, ("''", "'Z'", "'$1'")), "s"),),
    "reverse": (_use("reverse({0})", "o_reverse({0})", "s", "s"),),
    "repeat": (_use("repeat({0}, {1})", "o_repeat({0}, {1})", ("k", ("0", "1", "3", "-1")), "k"),),
    "position": (_use("position({0} IN {1})", "o_position({0}, {1})", (_PART, "s"), "i"),),
    "strpos": (
        _use("strpos({0}, {1})", "o_position({1}, {0})", ("s", _PART), "i"),
        _use("instr({0}, {1})", "o_position({1}, {0})", "s k", "i"),
    ),
    "locate": (
        _use("locate({0}, {1})", "o_position({0}, {1})", (_PART, "s"), "i"),
        _use(
            "locate({0}, {1}, {2})", "o_locate_from({0}, {1}, {2})", (("'a'", "'l'", "' '"), "s", ("1", "2", "4")), "i"
        ),
    ),
    "split_part": (
        _use(
            "split_part({0}, {1}, {2})", "o_split_part({0}, {1}, {2})", ("s", _PART, ("1", "2", "-1", "-2", "9")), "s"
        ),
    ),
    "split_index": (
        _use(
            "split_index({0}, {1}, {2})",
            "o_split_index({0}, {1}, {2})",
            ("s", ("','", "'-'", "' '", "'.'"), ("0", "1", "2", "-1")),
            "s",
        ),
    ),
    "translate": (
        _use(
            "translate({0}, {1}, {2})",
            "o_translate({0}, {1}, {2})",
            ("s", ("'abl'", "'aa-'", "''"), ("'xy'", "''", "'12345'")),
            "s",
        ),
    ),
    "starts_with": (
        _use("starts_with({0}, {1})", "o_starts_with({0}, {1})", ("s", _PART), "b"),
        _use("startswith({0}, {1})", "o_starts_with({0}, {1})", "k k", "b"),
    ),
    "endswith": (_use("endswith({0}, {1})", "o_ends_with({0}, {1})", ("s", _PART), "b"),),
    "ascii": (_use("ascii({0})", "o_ascii({0})", "s", "i4"),),
    "chr": (
        _use("chr({0})", "o_chr({0})", (("65", "960", "233", "128512", "10"),), "s"),
        _use("chr(97 + abs({0}) % 26)", "o_chr(97 + pmod(abs({0}), 26))", "i", "k"),
    ),
    "overlay": (
        _use(
            "overlay({0} PLACING {1} FROM {2} FOR {3})",
            "o_overlay({0}, {1}, {2}, {3})",
            ("s", ("'ZZ'", "''"), ("1", "2", "9"), ("0", "1", "4")),
            "s",
        ),
        _use("overlay({0} PLACING {1} FROM {2})", "o_overlay({0}, {1}, {2})", ("s", ("'ZZ'", "'é'"), ("1", "3")), "s"),
    ),
    "quote_literal": (_use("quote_literal({0})", "o_quote_literal({0})", "s", "s"),),
    "to_hex": (
        _use("to_hex({0})", "o_hexadecimal({0})", "i4", "k"),
        _use("to_hex({0})", "o_hexadecimal_64({0})", "i8", "k"),
    ),
    "space": (
        _use("space({0})", "o_repeat(' ', {0})", (("0", "1", "4"),), "s"),
        _use("length(space(abs({0})))", "cast(abs({0}) as int)", "i", "i"),
    ),
    # --- matching
    "like": (
        *tuple(
            _use(f"({{0}} {word} {ours})", f"({negated}o_like({{0}}, {theirs}, {escape}, false))", "s", "b")
            for word, negated, ours, theirs, escape in (
                ("LIKE", "", "'a%'", "'a%'", "'!'"),
                ("LIKE", "", "'%l_'", "'%l_'", "'!'"),
                ("NOT LIKE", "NOT ", "'%\\_%'", "'%!_%'", "'!'"),
                ("LIKE", "", "'%!%%' ESCAPE '!'", "'%!%%'", "'!'"),
                ("LIKE", "", "''", "''", "'!'"),
                ("LIKE", "", "'_'", "'_'", "'!'"),
            )
        ),
        _use("({0} LIKE {1})", "o_like({0}, {1}, '\\\\', false)", "s k", "b"),
    ),
    "ilike": tuple(
        _use(f"({{0}} ILIKE {p})", f"o_like({{0}}, {p}, '!', true)", "s", "b") for p in ("'A%'", "'%LL%'", "'%É%'")
    ),
    "similar to": (
        _use("({0} SIMILAR TO '%(l|d)+%')", "o_matches_whole({0}, '.*(l|d)+.*')", "s", "b"),
        _use("({0} NOT SIMILAR TO '[a-z]+(-_)?')", "(NOT o_matches_whole({0}, '[a-z]+(-.)?'))", "s", "b"),
    ),
    "~": (
        _use("({0} ~ {1})", "o_matches({0}, {1}, '')", ("s", _PATTERNS), "b"),
        _use("({0} !~ {1})", "(NOT o_matches({0}, {1}, ''))", ("s", _PATTERNS), "b"),
    ),
    "~*": (_use("({0} ~* {1})", "o_matches({0}, {1}, 'i')", ("s", _PATTERNS), "b"),),
    "regexp_like": (
        _use("regexp_like({0}, {1})", "o_matches({0}, {1}, '')", ("s", _PATTERNS), "b"),
        _use("regexp_like({0}, {1}, 'i')", "o_matches({0}, {1}, 'i')", ("s", _PATTERNS), "b"),
    ),
    "regexp_replace": (
        _use("regexp_replace({0}, {1}, 'Z')", "o_regexp_replace({0}, {1}, 'Z', '')", ("s", _PATTERNS), "s"),
        _use("regexp_replace({0}, {1}, '$', 'gi')", "o_regexp_replace({0}, {1}, '$', 'gi')", ("s", _PATTERNS), "s"),
        _use(
            "regexp_replace({0}, '([a-z])([a-z])', '\\2\\1', 'g')",
            "o_regexp_replace({0}, '([a-z])([a-z])', '\\\\2\\\\1', 'g')",
            "s",
            "s",
        ),
    ),
    "regexp_substr": (_use("regexp_substr({0}, {1})", "o_regexp_group({0}, {1}, 0)", ("s", _PATTERNS), "s"),),
    "regexp_count": (_use("regexp_count({0}, {1})", "o_regexp_count({0}, {1})", ("s", _PATTERNS), "i"),),
    "regexp_instr": (_use("regexp_instr({0}, {1})", "o_regexp_instr({0}, {1})", ("s", _PATTERNS), "i"),),
    "regexp_extract": (
        _use(
            "regexp_extract({0}, '([a-z]+)[^a-z]+([a-z]+)', {1})",
            "o_regexp_group({0}, '([a-z]+)[^a-z]+([a-z]+)', {1})",
            ("s", ("0", "1", "2")),
            "s",
        ),
        _use("regexp_extract({0}, {1})", "o_regexp_group({0}, {1}, 0)", ("s", _PATTERNS), "s"),
    ),
    "regexp_match": (
        _use("(regexp_match({0}, {1}))[1]", "o_regexp_group({0}, {1}, 0)", ("s", _PLAIN_PATTERNS), "s"),
        _use("(regexp_match({0}, '([a-z])-?([a-z])'))[2]", "o_regexp_group({0}, '([a-z])-?([a-z])', 2)", "s", "s"),
    ),
    "regexp_groups": (
        _use("cardinality(regexp_groups({0}, {1}))", "o_regexp_count({0}, {1})", ("s", _PATTERNS), "i"),
        _use(
            "((regexp_groups({0}, '([a-z])-?([a-z])'))[1])[2]", "o_regexp_group({0}, '([a-z])-?([a-z])', 2)", "s", "s"
        ),
    ),
    # --- texts in other forms
    "abbreviate": (_use("abbreviate({0}, {1})", "o_abbreviate({0}, {1})", ("s", ("4", "5", "9")), "s"),),
    "center": (
        _use("center({0}, {1})", "o_center({0}, {1}, ' ')", ("s", ("0", "4", "9")), "s"),
        _use("center({0}, {1}, {2})", "o_center({0}, {1}, {2})", ("s", ("3", "8"), ("'x'", "'é-z'")), "s"),
    ),
    "text_slice": (
        _use("text_slice({0}, {1})", "o_text_from({0}, {1})", ("s", _COUNT), "s"),
        _use("text_slice({0}, {1}, {2})", "o_text_between({0}, {1}, {2})", ("s", _COUNT, _COUNT), "s"),
    ),
    "swapcase": (_use("swapcase({0})", "o_swapcase({0})", "s", "s"),),
    "strip_accents": (_use("strip_accents({0})", "o_strip_accents({0})", "s", "s"),),
    "anonymize": (_use("anonymize({0})", "o_anonymize({0})", "s", "s"),),
    "keep_first": (_use("keep_first({0}, {1})", "o_keep_first({0}, {1})", ("s", ("0", "1", "4")), "s"),),
    "keep_last": (_use("keep_last({0}, {1})", "o_keep_last({0}, {1})", ("s", ("0", "1", "4")), "s"),),
    "mask_email": (
        _use("mask_email({0})", "o_mask_email({0})", "s", "s"),
        _use("mask_email({0} || '@' || {1})", "o_mask_email({0} || '@' || {1})", "s k", "s"),
    ),
    "initials": (_use("initials({0})", "o_initials({0})", "s", "s"),),
    "pg_typeof": (
        _use("pg_typeof({0})", "'boolean'", "b", "k"),
        _use("pg_typeof({0})", "'bigint'", "i8", "k"),
        _use("pg_typeof({0})", "'double precision'", "x", "k"),
        _use("pg_typeof({0})", "'date'", "d", "k"),
    ),
    "required": (_use("required(coalesce({0}, 7))", "coalesce({0}, 7)", "i", "i"),),
    # --- mathematics
    "abs": (
        _use("abs({0})", "CASE WHEN {0} < 0 THEN cast(0 - {0} as int) ELSE {0} END", "i", "i"),
        _use("abs({0})", "CASE WHEN {0} < 0 THEN 0 - {0} ELSE {0} END", "n", "q"),
        _use("abs({0})", "CASE WHEN {0} < 0 THEN 0 - {0} ELSE {0} END", "x", "x"),
    ),
    "ceil": (
        _use("ceil({0})", "o_decimal_ceil({0})", "n", "q"),
        _use("ceiling({0})", "o_double_ceil({0})", "x", "x"),
        _use("ceil({0})", "o_double_ceil({0})", "f8", "f8"),
    ),
    "floor": (
        _use("floor({0})", "o_decimal_floor({0})", "n", "q"),
        _use("floor({0})", "o_double_floor({0})", "x", "x"),
        _use("floor({0})", "o_double_floor({0})", "f8", "f8"),
    ),
    "round": (
        _use("round({0})", "o_decimal_round({0}, 0)", "n", "q"),
        _use("round({0}, {1})", "o_decimal_round({0}, {1})", ("n", ("1", "0", "2", "-2")), "q"),
        _use("round({0})", "o_double_round({0})", "x", "x"),
        _use("round({0}, 1)", "o_double_round_to({0}, 1)", "x", "x"),
    ),
    "trunc": (
        _use("trunc({0})", "o_decimal_trunc({0}, 0)", "n", "q"),
        _use("trunc({0}, {1})", "o_decimal_trunc({0}, {1})", ("n", ("1", "-1")), "q"),
        _use("truncate({0})", "o_double_trunc({0})", "x", "x"),
    ),
    "div": (_use("div({0}, {1})", "o_decimal_trunc({0} / {1}, 0)", ("n", ("3", "-7", "0.5")), "z"),),
    "power": (
        _use("power({0}, {1})", "o_power({0}, cast({1} as double))", ("p", ("0.5", "2", "-1")), "t"),
        _use("pow({0}, 3)", "o_power({0}, 3.0d)", "x", "t"),
    ),
    "sqrt": (_use("sqrt({0})", "o_sqrt({0})", "p", "t"), _use("sqrt(abs({0}))", "o_sqrt(abs({0}))", "i", "t")),
    **{name: (_use(f"{name}({{0}})", f"o_{name}({{0}})", "u", "t"),) for name in _ONE_ARGUMENT},
    "exp": (_use("exp({0})", "o_exp({0})", "u", "t"),),
    **{name: (_use(f"{name}({{0}})", f"o_{name}({{0}})", "p", "t"),) for name in ("ln", "log10", "log2")},
    "log": (
        _use("log({0})", "o_log10({0})", "p", "t"),
        _use("log({0}, {1})", "o_log(cast({0} as double), {1})", (("2", "10"), "p"), "t"),
    ),
    "sign": (
        _use("sign({0})", "o_sign({0})", "x", "u"),
        _use("sign({0})", "cast(o_sign(cast({0} as double)) as decimal(10,0))", "n", "z"),
    ),
    "cot": (_use("cot({0})", "o_cot({0})", "p", "t"),),
    "asin": (_use("asin({0})", "o_asin({0})", "u", "t"),),
    "acos": (_use("acos({0})", "o_acos({0})", "u", "t"),),
    "atan2": (_use("atan2({0}, {1})", "o_atan2({0}, {1})", "x x", "t"),),
    "pi": (_use("pi()", "3.141592653589793d", (), "p"), _use("({0} * pi())", "({0} * 3.141592653589793d)", "u", "x")),
    "width_bucket": (
        _use(
            "width_bucket({0}, {1}, {2}, {3})",
            "o_width_bucket({0}, cast({1} as double), cast({2} as double), {3})",
            ("x", ("-10", "0"), ("20", "500.5"), ("4", "10")),
            "i",
        ),
    ),
    "factorial": (
        _use("factorial(abs({0}) % 20)", "cast(o_factorial(abs({0}) % 20) as decimal(38,0))", "i", "z"),
        _use("factorial({0})", "cast(o_factorial({0}) as decimal(38,0))", (("0", "5", "20"),), "z"),
    ),
    "isnan": (_use("isnan({0})", "({0} = cast('NaN' as double))", "f8", "b"),),
    # --- dates and times
    "extract": _fields("EXTRACT", "q", "{0}"),
    "date_part": _fields("date_part", "t", "cast({0} as double)"),
    "date_trunc": (
        _use("date_trunc({0}, {1})", "o_date_trunc({0}, {1})", (_UNITS, "ts"), "ts"),
        _use(
            "date_trunc({0}, {1})",
            "cast(o_date_trunc({0}, cast({1} as timestamp_ntz)) as timestamp)",
            (_UNITS, "tz"),
            "tz",
        ),
        _use(
            "date_trunc({0}, {1})",
            "cast(o_date_trunc({0}, cast({1} as timestamp_ntz)) as timestamp)",
            (("'month'", "'week'"), "d"),
            "tz",
        ),
    ),
    "date_bin": (
        _use(
            "date_bin('15 minutes', {0}, TIMESTAMP '2001-02-03 00:00:00')",
            "o_date_bin(900, {0}, timestamp_ntz'2001-02-03 00:00:00')",
            "ts",
            "ts",
        ),
        _use(
            "date_bin('36 hours', {0}, CAST('2001-02-03 00:00:07Z' AS timestamptz))",
            "cast(o_date_bin(129600, cast({0} as timestamp_ntz), timestamp_ntz'2001-02-03 00:00:07') as timestamp)",
            "tz",
            "tz",
        ),
    ),
    "make_date": (
        _use(
            "make_date(2024, 1 + abs({0}) % 12, 1 + abs({1}) % 28)",
            "o_make_date(2024, 1 + abs({0}) % 12, 1 + abs({1}) % 28)",
            "i i",
            "d",
        ),
    ),
    "make_timestamp": (
        _use(
            "make_timestamp(2001, 2, 3, abs({0}) % 24, 5, {1} * {1})",
            "o_make_timestamp(2001, 2, 3, abs({0}) % 24, 5, {1} * {1})",
            "i u",
            "ts",
        ),
    ),
    "to_char": tuple(
        _use(f"to_char({{0}}, '{a}')", f"o_formatted({_NTZ}, '{b}')", (s,), "s")
        for a, b in _TO_CHAR
        for s in ("ts", "tz")
    ),
    "date_format": tuple(
        _use(f"date_format({{0}}, '{a}')", f"o_formatted({_NTZ}, '{b}')", (s,), "s")
        for a, b in _JAVA
        for s in ("ts", "tz")
    ),
    "to_timestamp": (
        _use("to_timestamp({0})", "cast(o_from_epoch({0}, 1000000) as timestamp)", "x", "tz"),
        _use(
            "to_timestamp(to_char({0}, 'DD Mon YYYY'), 'DD Mon YYYY')",
            "cast(cast(cast({0} as date) as timestamp_ntz) as timestamp)",
            "ts",
            "tz",
        ),
        _use("to_timestamp({0})", "cast(NULL as timestamp_ntz)", ("k",), "ts"),
        _use("to_timestamp(to_char({0}, 'YYYY-MM-DD HH24:MI:SS.US'))", "{0}", "ts", "ts"),
    ),
    "to_date": (
        _use("to_date(to_char({0}, 'DD/MM/YYYY'), 'DD/MM/YYYY')", "cast({0} as date)", "ts", "d"),
        _use("to_date(CAST({0} AS varchar))", "{0}", "d", "d"),
        _use("to_date({0})", "cast(NULL as date)", "k", "d"),
    ),
    "to_timestamp_ltz": (
        _use("to_timestamp_ltz({0}, 0)", "cast(o_from_epoch({0}, 1000000) as timestamp)", "i", "tz"),
        _use("to_timestamp_ltz({0}, 3)", "cast(o_from_epoch({0}, 1000) as timestamp)", "i4", "tz"),
        _use(
            "to_timestamp_ltz(date_format({0}, 'dd/MM/yyyy HH:mm'), 'dd/MM/yyyy HH:mm')",
            "cast(o_date_trunc('minute', {0}) as timestamp)",
            "ts",
            "tz",
        ),
    ),
    "from_unixtime": (
        _use("from_unixtime({0})", "o_formatted(o_from_epoch({0}, 1000000), '%Y-%m-%d %H:%M:%S')", "i4", "s"),
        _use("from_unixtime({0}, 'yyyy/MM/dd')", "o_formatted(o_from_epoch({0}, 1000000), '%Y/%m/%d')", "i4", "s"),
    ),
    "unix_timestamp": (
        _use("unix_timestamp(to_char({0}, 'YYYY-MM-DD HH24:MI:SS'))", "o_whole_epoch({0})", "ts", "i8"),
        _use(
            "unix_timestamp(CAST({0} AS varchar), 'yyyy-MM-dd')", "o_whole_epoch(cast({0} as timestamp_ntz))", "d", "i8"
        ),
    ),
    "timestampdiff": (
        _use(
            "timestampdiff({0}, {1}, {2})",
            "o_timestampdiff(lower('{0}'), {1}, {2})",
            (("DAY", "MONTH", "HOUR", "SECOND", "MINUTE"), "ts", "ts"),
            "i8",
        ),
        _use(
            "timestampdiff({0}, {1}, {2})",
            "o_timestampdiff(lower('{0}'), cast({1} as timestamp_ntz), cast({2} as timestamp_ntz))",
            (("DAY", "MONTH", "HOUR"), "tz", "tz"),
            "i8",
        ),
    ),
    "timestampadd": (
        _use("timestampadd(MONTH, {0}, {1})", "o_later({1}, {0}, 0, 0)", "i ts", "ts"),
        _use("timestampadd(DAY, {0}, {1})", "o_later({1}, 0, {0}, 0)", "i ts", "ts"),
        _use(
            "timestampadd(HOUR, {0}, {1})",
            "cast(o_later(cast({1} as timestamp_ntz), 0, 0, {0} * 3600000000L) as timestamp)",
            "i tz",
            "tz",
        ),
    ),
    "last_day": (_use("last_day({0})", "o_last_day({0})", "d", "d"),),
    "timezone": (
        _use(
            "({0} AT TIME ZONE 'Europe/Berlin')", "cast(o_zone_to_utc('Europe/Berlin', {0}) as timestamp)", "ts", "tz"
        ),
        _use(
            "({0} AT TIME ZONE 'America/New_York')",
            "o_utc_to_zone('America/New_York', cast({0} as timestamp_ntz))",
            "tz",
            "ts",
        ),
    ),
    "year": _clock("year", "year", "ts tz d"),
    "quarter": _clock("quarter", "quarter", "ts tz d"),
    "month": _clock("month", "month", "ts tz d"),
    "week": _clock("week", "week", "ts tz d"),
    "dayofyear": _clock("dayofyear", "doy", "ts d"),
    "dayofmonth": _clock("dayofmonth", "day", "tz d"),
    "dayofweek": _clock("dayofweek", "dow", "ts d"),
    "hour": _clock("hour", "hour", "ts tz"),
    "minute": _clock("minute", "minute", "ts tz"),
    "second": _clock("second", "second", "ts tz"),
    # --- JSON
    "json_value": _path("json_value", "o_json_scalar", "s"),
    "json_query": _path("json_query", "o_json_nested", "s"),
    "json_exists": _path("json_exists", "o_json_exists", "b"),
    "json_path_first": (
        _use("json_path_first({0}, '$.b')", "o_json_any({0}, 'b')", "js", "s"),
        _use("json_path_first({0}, '$.b.c')", "o_json_any({0}, 'b.c')", "js", "s"),
        _use("json_path_first({0}, '$.l[1]')", "o_json_any({0}, 'l.1')", "js", "s"),
    ),
    "json_path_all": (
        _use("array_to_string(json_path_all({0}, '$.l[*]'), '|')", "o_json_elements({0}, 'l')", "js", "s"),
        _use("array_to_string(json_path_all({0}, '$.a[*]'), '|')", "o_json_elements({0}, 'a')", "js", "s"),
    ),
    "json_extract_path_text": (
        _use("json_extract_path_text({0}, 'b', 'c')", "o_json_text({0}, 'b.c')", "js", "s"),
        _use("json_extract_path_text({0}, 'l', '0')", "o_json_text({0}, 'l.0')", "js", "s"),
    ),
    "->>": (
        _use("({0} ->> 'a')", "o_json_text({0}, 'a')", "js", "s"),
        _use("({0} ->> 'l')", "o_json_text({0}, 'l')", "js", "s"),
        _use("({0} ->> 1)", "o_json_text(CASE WHEN {0} LIKE '[%' THEN {0} END, '1')", "js", "s"),
    ),
    "->": (
        _use("({0} -> 'b')", "o_json_any({0}, 'b')", "js", "s"),
        _use("({0} -> 'b' ->> 'c')", "o_json_text({0}, 'b.c')", "js", "s"),
        _use("({0} -> 0)", "o_json_any(CASE WHEN {0} LIKE '[%' THEN {0} END, '0')", "js", "s"),
    ),
    "json_array_length": (_use("json_array_length({0})", "o_json_length({0})", "js", "i"),),
    # --- arrays and maps
    "array": (
        _use(
            "(ARRAY[{0}, {1}, NULL])[{2}]",
            "CASE {2} WHEN 1 THEN {0} WHEN 2 THEN {1} END",
            ("i", "i", ("1", "2", "3", "4")),
            "i",
        ),
        _use("ARRAY[{0}, {1}]", "array({0}, {1})", "i i", "arr"),
    ),
    "[]": (
        _use("({0})[{1}]", "o_element({0}, {1})", ("arr", ("1", "2", "0", "9", "-1")), "i4"),
        _use("({0})[{1}]", "o_text_element({0}, {1})", ("words", ("1", "2", "9")), "s"),
        _use("({0})[{1}]", "o_map_value({0}, {1})", ("m", ("'a'", "'b'", "'zz'")), "i4"),
    ),
    "cardinality": (
        _use("cardinality({0})", "o_array_size({0})", "arr", "i"),
        _use("cardinality({0})", "o_array_size({0})", "m", "i"),
    ),
    "array_length": (
        _use("array_length({0}, 1)", "o_array_length({0})", "arr", "i"),
        _use("array_length({0}, 2)", "cast(NULL as int)", "words", "i"),
    ),
    "array_upper": (_use("array_upper({0}, 1)", "o_array_length({0})", "words", "i"),),
    "array_contains": (
        _use(
            "array_contains({0}, {1})",
            "CASE WHEN {0} IS NOT NULL THEN o_array_position({0}, {1}) IS NOT NULL END",
            ("arr", ("1", "3", "7")),
            "z",
        ),
        _use("array_contains({0}, 'a')", "(o_array_text({0}, ',', NULL) RLIKE '(^|,)a(,|$)')", "words", "z"),
    ),
    "array_position": (_use("array_position({0}, {1})", "o_array_position({0}, {1})", ("arr", ("1", "3", "7")), "i"),),
    "array_to_string": (
        _use("array_to_string({0}, ',')", "o_array_text({0}, ',', NULL)", "arr", "s"),
        _use("array_join({0}, '/', '*')", "o_array_text({0}, '/', '*')", "words", "s"),
    ),
    "string_to_array": (
        _use("string_to_array({0}, ',')", "o_text_parts({0}, ',')", "s", "words"),
        _use("(string_to_array({0}, '-'))[1]", "o_text_element(o_text_parts({0}, '-'), 1)", "k", "s"),
    ),
    "array_append": (_use("array_append({0}, {1})", "o_array_append({0}, {1})", "arr i", "arr"),),
    "array_prepend": (_use("array_prepend({0}, {1})", "o_array_prepend({0}, {1})", "i arr", "arr"),),
    "array_cat": (_use("array_cat({0}, {1})", "o_array_cat({0}, {1})", "arr arr", "arr"),),
    "array_remove": (_use("array_remove({0}, {1})", "o_array_remove({0}, {1})", ("arr", ("1", "3")), "arr"),),
    "array_distinct": (_use("array_distinct({0})", "o_array_distinct({0})", "arr", "arr"),),
    "map": (
        _use("(MAP['x', {0}, 'y', {1}])['y']", "{1}", "i i", "i"),
        _use("cardinality(MAP['x', {0}, 'y', 2])", "(2 + 0 * coalesce({0}, 0))", "i", "i"),
    ),
    "flatten": (_use("flatten(ARRAY[{0}, {1}])", "o_flatten({0}, {1})", "arr arr", "arr"),),
    "array_repeat": (_use("array_repeat({0}, {1})", "o_array_repeat({0}, {1})", ("i", ("0", "1", "3")), "arr"),),
    "array_zip": (
        _use("cardinality(array_zip({0}, 'x', {1}, 'y'))", "o_zip_size({0}, {1})", "arr words", "i"),
        _use("((array_zip({0}, 'x', {1}, 'y'))[2]).y", "o_zip_second({0}, {1})", "arr words", "s"),
    ),
    "named_struct": (
        _use("(named_struct('x', {0}, 'y', {1})).y", "{1}", "i s", "s"),
        _use("(named_struct('x', named_struct('y', {0}))).x.y", "{0}", "arr", "arr"),
    ),
    "array_zip_all": (
        _use("cardinality(array_zip_all({0}, 'x', {1}, 'y'))", "o_zip_all_size({0}, {1})", "arr words", "i"),
        _use("((array_zip_all({0}, 'x', {1}, 'y'))[2]).y", "o_zip_all_second({0}, {1})", "arr words", "s"),
    ),
    "map_keys": (_use("map_keys({0})", "o_map_key_list({0})", "m", "bag"),),
    "map_values": (_use("map_values({0})", "o_map_value_list({0})", "m", "bag"),),
    # --- bytes
    **{name: _digest(name) for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")},
    "encode": (
        _use("encode({0}, 'hex')", "o_hex_of({0})", "y", "k"),
        _use("encode({0}, 'base64')", "o_base64_of({0})", "y", "s"),
    ),
    "decode": (
        _use("decode(encode({0}, 'hex'), 'hex')", "{0}", "y", "y"),
        _use("decode(to_base64({0}), 'base64')", "o_utf8({0})", "s", "y"),
    ),
    "to_base64": (_use("to_base64({0})", "o_base64_text({0})", "s", "s"),),
    "from_base64": (_use("from_base64(to_base64({0}))", "{0}", "s", "s"),),
    "hex": (_use("hex({0})", "upper(o_hexadecimal_64({0}))", "i8", "k"), _use("hex({0})", "o_hex_text({0})", "s", "s")),
    "bin": (_use("bin({0})", "o_binary_digits({0})", "i8", "k"),),
}

CASTS: tuple[Use, ...] = (
    _use("CAST({0} AS varchar)", "cast({0} as string)", "n", "s"),
    _use("CAST({0} AS varchar)", "cast({0} as string)", "d", "s"),
    _use("CAST({0} AS varchar)", "cast({0} as string)", "i8", "k"),
    _use("CAST({0} AS varchar)", "cast({0} as string)", "b", "k"),
    _use("CAST({0} AS varchar(3))", "left({0}, 3)", "s", "s"),
    _use("CAST({0} AS varchar)", "o_shortest({0})", "x", "z"),
    _use("CAST({0} AS integer)", "o_nearest_integer({0})", "n", "i4"),
    _use("CAST({0} AS integer)", "o_nearest_even({0})", "x", "i4"),
    _use("CAST({0} AS double precision)", "cast({0} as double)", "i4", "f8"),
    _use("CAST({0} AS bigint)", "cast({0} as bigint)", "i2", "i8"),
    _use("CAST({0} AS integer)", "CASE WHEN {0} THEN 1 WHEN NOT {0} THEN 0 END", "b", "i"),
    _use("CAST(CAST({0} AS varchar) AS integer)", "{0}", "i4", "i4"),
    _use("CAST(CAST({0} AS varchar) AS numeric(10, 2))", "{0}", "n", "n"),
    _use("CAST(CAST({0} AS varchar) AS timestamp)", "{0}", "ts", "ts"),
    _use("CAST(CAST({0} AS varchar) AS time)", "{0}", "tm", "tm"),
    _use("CAST({0} AS date)", "cast({0} as date)", "ts", "d"),
    _use("CAST({0} AS timestamp)", "cast({0} as timestamp_ntz)", "d", "ts"),
    _use("CAST({0} AS numeric(6, 1))", "o_decimal_round(cast({0} as decimal(38,0)), 1)", "i", "q"),
    _use(
        "TRY_CAST({0} AS integer)",
        "try_cast(CASE WHEN {0} RLIKE '^ *[+-]?[0-9]+ *$' THEN trim({0}) END as int)",
        "s",
        "i4",
    ),
    _use(
        "(CASE WHEN {0} THEN {1} WHEN {2} IS NULL THEN 'n' ELSE {1} END)",
        "IF({0}, {1}, IF({2} IS NULL, 'n', {1}))",
        "b s i",
        "s",
    ),
    _use(
        "(CASE {0} WHEN 1 THEN 'one' WHEN 2 THEN 'two' END)",
        "IF({0} <=> 1, 'one', IF({0} <=> 2, 'two', NULL))",
        "i",
        "k",
    ),
    _use("(st->a)", "st.a", (), "i4"),
    _use("(st->inner->x)", "st.inner.x", (), "s"),
)
