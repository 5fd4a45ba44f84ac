"""Casts: PostgreSQL's type names as DuckDB's, and the casts whose meaning differs."""

from __future__ import annotations

import math
import re

from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect.functions import enums, time_zones
from mvserver.dialect.functions.arrays import array_literal, no_array, shape
from mvserver.dialect.functions.bytea_texts import hexadecimal
from mvserver.dialect.functions.checked_functions import plain_number
from mvserver.errors import SqlError
from mvserver.pgcatalog.session_functions import REG_TYPES, SessionFacts, replace_reg_cast
from mvserver.types import intervals, oids

DECLARED = "declared"  # key in the meta of a cast to numeric(p, s) that the query's text has
PLAIN_NUMERIC = "plain numeric"  # key in the meta of a cast to numeric that says no digits
SHOWN_AS = "shown as"  # key in the meta of a text: the oid and modifier of the character type that it was cast to
PADDED = "padded"  # key in the meta of a cast to char(n): its value is shown, with the blanks at the end

_TEXT_TYPES = frozenset({"text", "name", "varchar", "char", "bpchar", "cstring", '"char"', "citext"})
_TYPE_ALIASES: dict[str, str] = {
    "oid": "UINTEGER", "xid": "UINTEGER", "cid": "UINTEGER", "name": "TEXT", "cstring": "TEXT", "text": "TEXT",
    "varchar": "TEXT", "char": "TEXT", "bpchar": "TEXT", "int2": "SMALLINT", "int4": "INT", "int8": "BIGINT",
    "bool": "BOOLEAN", "float4": "FLOAT", "float8": "DOUBLE", "numeric": "DECIMAL(38, 10)", "jsonb": "JSON",
    "json": "JSON", "bytea": "BLOB", "date": "DATE", "time": "TIME", "timestamp": "TIMESTAMP", "interval": "INTERVAL",
    "timestamptz": "TIMESTAMPTZ", "uuid": "UUID",
    "aclitem": "TEXT", "pg_node_tree": "TEXT", "int2vector": "SMALLINT[]", "oidvector": "UINTEGER[]",
    "unknown": "TEXT", "tid": "TEXT", "pg_lsn": "TEXT", "anyarray": "TEXT", "integer": "INT",
    "sql_identifier": "TEXT", "character_data": "TEXT", "cardinal_number": "INT", "yes_or_no": "TEXT",
}  # fmt: skip


def target_of(cast: exp.Cast) -> tuple[str, bool]:
    """The target's lower-case name without its schema, and whether it is an array of it."""
    to = cast.to
    if isinstance(to, exp.DataType):
        if to.this == exp.DType.ARRAY and to.expressions:
            inner = to.expressions[0]
            return _type_text(inner), True
        text = _type_text(to)
        return (text[:-2], True) if text.endswith("[]") else (text, False)
    return str(to.name or to.this).lower(), False


def _type_text(to: exp.Expr) -> str:
    if isinstance(to, exp.DataType):
        if to.this == exp.DType.USERDEFINED:
            kind = to.args.get("kind")
            shown = kind.sql() if isinstance(kind, exp.Expr) else str(kind)
            return shown.rpartition(".")[2].strip('"').lower()
        return str(to.this.value if hasattr(to.this, "value") else to.this).lower()
    return str(to.name or to.this).lower()


def adapt_cast(cast: exp.Expr, facts: SessionFacts) -> exp.Expr:
    """``int[][]`` is ``int[]`` in PostgreSQL: a value that is written out says how many dimensions there are."""
    assert isinstance(cast, exp.Cast)  # noqa: S101 - chosen by type
    declared = 0
    while isinstance(cast.to, exp.DataType) and cast.to.this == exp.DType.ARRAY and cast.to.expressions:
        inner = cast.to.expressions[0]
        declared += 1
        if not (isinstance(inner, exp.DataType) and inner.this == exp.DType.ARRAY):
            break
        cast.set("to", inner)
    if declared and isinstance(cast.this, exp.Literal):
        literal = array_literal(cast.this)
        if literal is not None:
            _check_elements(literal, cast.to)
            cast.set("this", literal)
    rounding = _taken_rounding(cast.to.expressions[0]) if declared else None
    malformed = cast.this.name if declared and isinstance(cast.this, exp.Literal) and cast.this.is_string else None
    adapted = _adapted(cast, facts)
    if malformed is not None:
        raise no_array(malformed)
    written = len(shape(cast.this.unnest())) if declared else 0
    if isinstance(adapted, exp.Cast) and declared:
        for _ in range((written or declared) - 1):
            adapted.set("to", exp.DataType(this=exp.DType.ARRAY, expressions=[adapted.to.copy()], nested=True))
    return adapted if rounding is None else _each_rounded(adapted.copy(), *rounding, written or declared)


def _adapted(cast: exp.Cast, facts: SessionFacts) -> exp.Expr:
    name, is_array = target_of(cast)
    _refuse_type(name)
    if name in REG_TYPES and not is_array:
        outer = cast.parent
        while isinstance(outer, exp.Paren):
            outer = outer.parent
        shown = isinstance(outer, exp.Cast) and target_of(outer)[0] in _TEXT_TYPES
        shown = shown or (isinstance(outer, exp.Select | exp.Alias) and cast.arg_key in ("expressions", "this"))
        shown = shown or isinstance(outer, exp.DPipe | exp.Concat)
        return replace_reg_cast(name, cast.this, facts, as_text=shown)
    if name == "regtype" and is_array:
        return _types_by_name(cast, facts)
    enum = enums.resolve(cast.to, facts) if name not in _TYPE_ALIASES else None
    if enum is not None:
        cast.set("to", enum)
        return cast
    if name in ("numeric", "decimal") and not is_array and not getattr(cast.to, "expressions", None):
        cast.set("to", exp.DataType.build(_plain_numeric(cast.this), dialect="duckdb"))
        cast.meta[PLAIN_NUMERIC] = not isinstance(cast.this, exp.Literal)
        return cast
    if name in ("numeric", "decimal") and not is_array:
        _bound_digits(cast)
    if name in ("numeric", "decimal") and is_array:
        _give_scale(cast)
    _read_constant(cast, name, is_array=is_array)
    if name in ("numeric", "decimal"):
        cast.meta[DECLARED] = True
    alias = _TYPE_ALIASES.get(name)
    target = cast.to.expressions[0] if is_array and cast.to.expressions else cast.to
    plain = type(target) is exp.DataType and target.this != exp.DType.USERDEFINED  # not oid and its like
    if alias is None and type(target) is exp.DataType and not plain:
        raise SqlError(sqlstates.UNDEFINED_OBJECT, f'type "{name}" does not exist')  # DuckDB may have one
    if name == "char" and not plain and not is_array:  # "char", a single byte
        cast.set("to", exp.DataType.build("TEXT", dialect="duckdb"))
        first = exp.Anonymous(this="left", expressions=[cast.copy(), exp.Literal.number(1)])
        first.meta[SHOWN_AS] = (oids.CHAR, -1)
        return first
    rounding = _taken_rounding(target) if plain and not is_array else None
    if rounding is not None:
        return rounded_time(cast.copy(), *rounding)
    if alias is not None and (not plain or name in ("jsonb", "name", "char", "varchar", "bpchar")):
        if plain and name in ("char", "varchar", "bpchar") and (target.expressions or name == "char"):
            if is_array:
                raise SqlError(
                    sqlstates.FEATURE_NOT_SUPPORTED,
                    "arrays of text with a length are not supported",
                    hint="Use text[].",
                )
            return _bounded_text(cast, blank_padded=name != "varchar")
        cast.set("to", exp.DataType.build(alias + ("[]" if is_array else ""), dialect="duckdb"))
        if name in _CHARACTER_OIDS and not is_array:
            cast.meta[SHOWN_AS] = (_CHARACTER_OIDS[name], -1)
    return cast


_ROUNDING = {
    "time": "_time_rounded", "timestamp": "_timestamp_rounded", "timestampntz": "_timestamp_rounded",
    "timestamptz": "_timestamptz_rounded", "interval": "_interval_rounded",
}  # fmt: skip
"""By the types that may say how many digits the fraction of their second has."""
_SECOND_DIGITS_MAX = 6


def _taken_rounding(to: exp.Expr) -> tuple[str, int] | None:
    """``timestamp(0)``: its name and how many digits it has, which are taken away; DuckDB's own have other meanings."""
    kind = _type_text(to)
    sizes = [size.this if isinstance(size, exp.DataTypeParam) else size for size in to.expressions]
    if kind not in _ROUNDING or len(sizes) != 1 or not (isinstance(sizes[0], exp.Literal) and _is_length(sizes[0])):
        return None
    to.set("expressions", None)
    return kind, int(sizes[0].name)


def _each_rounded(array: exp.Expr, kind: str, digits: int, depth: int) -> exp.Expr:
    """The elements of an array of so many dimensions."""
    if depth == 0 or digits >= _SECOND_DIGITS_MAX:
        return rounded_time(array, kind, digits)
    item = exp.to_identifier(f"_time{depth}", quoted=True)
    shown = _each_rounded(exp.Column(this=item.copy()), kind, digits, depth - 1)
    return exp.Anonymous(this="list_transform", expressions=[array, exp.Lambda(this=shown, expressions=[item])])


def rounded_time(value: exp.Expr, kind: str, digits: int) -> exp.Expr:
    """A value of one of the types of ``_ROUNDING`` to so many digits of its second's fraction."""
    if digits >= _SECOND_DIGITS_MAX:
        return value
    scale = exp.Literal.number(10 ** (_SECOND_DIGITS_MAX - digits))
    return exp.Anonymous(this=_ROUNDING[kind], expressions=[value, scale])


def _types_by_name(cast: exp.Cast, facts: SessionFacts) -> exp.Expr:
    """``x::regtype[]`` is for those who read names."""
    listed = cast.this.copy()
    if isinstance(listed, exp.Array):
        items = [replace_reg_cast("regtype", item.copy(), facts, as_text=False) for item in listed.expressions]
        listed = exp.cast(exp.Array(expressions=items), "UINTEGER[]", dialect="duckdb")
    return exp.Anonymous(this="_regtypes_out", expressions=[listed])


def _read_constant(cast: exp.Cast, name: str, *, is_array: bool) -> None:
    """A constant as PostgreSQL reads it, where DuckDB reads it in another way."""
    if not isinstance(cast.this, exp.Literal):
        return
    if name in _INTEGERS and cast.this.is_string:
        check_integer(cast.this.name, _INTEGERS[name])
    if name in ("bytea", "varbinary") and cast.this.is_string and not is_array:
        cast.this.set("this", hexadecimal(cast.this.name))
    if name in _FLOATS and not is_array:
        _check_float(cast.this.name, *_FLOATS[name])
    if not cast.this.is_string or is_array:
        return
    if name == "interval":
        cast.this.set("this", intervals.written(cast.this.name))
    if name in ("boolean", "bool"):
        word = cast.this.name.strip()
        cast.this.set("this", next((said for full, said in _BOOLEANS if _is_prefix(word.lower(), full)), word))
    if name in ("json", "jsonb"):
        _check_document(cast.this.name)
    if name in _TIMES:
        _special_time(cast)
    if name == "timestamptz" and isinstance(cast.this, exp.Literal):
        cast.this.set("this", time_zones.with_offset(cast.this.name))


_NO_TYPE = re.compile(r'"NULL"(?=[\[,)]|$)')  # not the name of a field, which a type follows


def constant_of(literal: exp.Literal, kind: str) -> exp.Expr:
    """A text that is a value of DuckDB's type ``kind`` because of its place; where that is none yet, a text."""
    kind = _NO_TYPE.sub("VARCHAR", kind)
    if kind.endswith("[]"):
        array = array_literal(literal)
        if array is None:
            raise no_array(literal.name)
        return array_of(array, kind)
    made = exp.cast(literal.copy(), kind, dialect="duckdb")
    if kind.startswith("DECIMAL"):  # with digits of its own
        digits = plain_number(literal.name) or ""
        whole, _, fraction = digits.lstrip("-").partition(".")
        if digits:
            made.set("to", exp.DataType.build(f"DECIMAL({len(whole + fraction)}, {len(fraction)})", dialect="duckdb"))
    else:
        _read_constant(made, _type_text(made.to), is_array=False)
    return made


def _check_elements(array: exp.Expr, kind: exp.Expr) -> None:
    """Of an array of integers: DuckDB would round them."""
    name = _INTEGERS.get(_type_text(kind.expressions[0])) if kind.expressions else None
    if name is not None:
        for item in array.find_all(exp.Literal):
            check_integer(item.name, name)


def array_of(array: exp.Expr, kind: str) -> exp.Expr:
    """An array of texts, which a constant was, as a value of DuckDB's array type ``kind``."""
    element = kind.rstrip("[]")
    if element != "VARCHAR":
        for item in list(array.find_all(exp.Literal)):
            item.replace(constant_of(item, element))
    has_own_digits = element.startswith("DECIMAL") and array.find(exp.Literal) is not None
    return array if has_own_digits else exp.cast(array, kind, dialect="duckdb")


_CHARACTER_OIDS = {"varchar": oids.VARCHAR, "bpchar": oids.BPCHAR, "name": oids.NAME}


_REFUSED_TYPES: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("bit", "varbit", "bit varying"), ("bit strings are", "Use text or bytea instead.")),
    "xml": ("type xml is", "Keep documents as text, or as json."),
    "money": ("type money is", "Use numeric(38, 2)."),
    **{
        name: (f"type {name} is", "Keep addresses as text.") for name in ("inet", "cidr", "macaddr", "macaddr8")
    },
    **{
        name: (f"type {name} is", "Use two columns, and comparisons of both.")
        for kind in ("int4", "int8", "num", "ts", "tstz", "date")
        for name in (f"{kind}range", f"{kind}multirange")
    },
    **{
        name: (f"type {name} is", "Use numbers for the coordinates.")
        for name in ("point", "line", "lseg", "box", "path", "polygon", "circle")
    },
    **{name: (f"type {name} is", "Use LIKE or ~ on the text.") for name in ("tsvector", "tsquery")},
    **{name: (f"type {name} is", "Use bigint.") for name in ("txid_snapshot", "pg_snapshot", "xid8")},
    "timetz": ("type time with time zone is", "Use timestamp with time zone."),
    "jsonpath": ("type jsonpath is", "Use -> and ->>."),
}  # fmt: skip
"""By the name's first word or alias; DuckDB's own of these names, where it has one, have other meanings."""


def _refuse_type(name: str) -> None:
    refused = _REFUSED_TYPES.get(name)
    if refused is not None:
        raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"{refused[0]} not supported", hint=refused[1])


_BOOLEANS = (
    ("true", "true"), ("false", "false"), ("yes", "true"), ("no", "false"), ("on", "true"), ("off", "false"),
)  # fmt: skip
_IN_QUOTES = re.compile(r'"(?:[^"\\]|\\.)*"')
_LAX = re.compile(r"nan|inf|,\s*[\]}]", re.IGNORECASE)


def _is_prefix(word: str, of: str) -> bool:
    """``on`` and ``off`` begin alike."""
    return bool(word) and of.startswith(word) and (word != "o")


def _check_document(text: str) -> None:
    """DuckDB reads NaN, Infinity and a comma behind the last item."""
    if _LAX.search(text) and _LAX.search(_IN_QUOTES.sub('""', text)):
        raise SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json")


_INTEGERS = {
    "smallint": "smallint", "int2": "smallint", "int": "integer", "int4": "integer", "integer": "integer",
    "bigint": "bigint", "int8": "bigint",
}  # fmt: skip
_BITS = {"smallint": 15, "integer": 31, "bigint": 63}


_FLOATS = {
    "float": ("real", 3.4028235677973366e38), "float4": ("real", 3.4028235677973366e38),
    "real": ("real", 3.4028235677973366e38), "double": ("double precision", math.inf),
    "float8": ("double precision", math.inf),
}  # fmt: skip
"""By the parser's names: the type, and the number at which it has no finite value any more."""
_LEAST = {"real": 7.1e-46, "double precision": 5e-324}
"""What is less is nothing but zero."""


def _check_float(text: str, kind: str, bound: float) -> None:
    """DuckDB makes infinity of a number that is too large."""
    if not re.fullmatch(r"\s*[-+]?[\d.]+([eE][-+]?\d+)?\s*", text) or text.count(".") > 1:
        return
    value = abs(float(text)) if text.strip("+-. ") else 0.0
    vanished = value < _LEAST[kind] and bool(re.search("[1-9]", text.lower().partition("e")[0]))
    if value >= bound or vanished:
        raise SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, f'"{text}" is out of range for type {kind}')


def check_integer(text: str, kind: str) -> None:
    """DuckDB would round ``'1.5'``, which is no integer for PostgreSQL."""
    if not re.fullmatch(r"\s*[-+]?\d+\s*", text):
        raise SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, f'invalid input syntax for type {kind}: "{text}"')
    if not -(2 ** _BITS[kind]) <= int(text) < 2 ** _BITS[kind]:
        raise SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, f'value "{text}" is out of range for type {kind}')


_NUMERIC_SCALE = 10  # of numeric without a scale; PostgreSQL's has no bound, DuckDB's has 38 digits in all


def _bound_digits(cast: exp.Cast) -> None:
    """``numeric(1000, 15)``, as Django has it: as many digits as there can be; a value with more is an error."""
    sizes = [size.this if isinstance(size, exp.DataTypeParam) else size for size in cast.to.expressions]
    numbers = [int(size.name) for size in sizes if isinstance(size, exp.Literal) and size.name.isdigit()]
    if len(numbers) == len(sizes) and numbers and _DIGITS_MAX < numbers[0] <= _PRECISION_MAX:
        scale = min(numbers[1] if len(numbers) > 1 else 0, _DIGITS_MAX)
        cast.set("to", exp.DataType.build(f"DECIMAL({_DIGITS_MAX}, {scale})", dialect="duckdb"))


_DIGITS_MAX = 38  # DuckDB's
_PRECISION_MAX = 1_000  # PostgreSQL's


def _plain_numeric(operand: exp.Expr) -> str:
    """``x::numeric``: a constant keeps its own digits."""
    if isinstance(operand, exp.Literal):
        if "e" in operand.name.lower():
            operand.set("this", plain_number(operand.name) or operand.name)
        if re.fullmatch(r"\s*[-+]?\d*\.?\d*\s*", operand.name):
            digits = operand.name.strip().partition(".")[2]
            return f"DECIMAL(38, {len(digits)})"
    return f"DECIMAL(38, {_NUMERIC_SCALE})"


def _give_scale(cast: exp.Cast) -> None:
    """``x::numeric[]``: constants keep their digits, where DuckDB's own DECIMAL has three."""
    element = cast.to
    while element.expressions and isinstance(element.expressions[0], exp.DataType):
        element = element.expressions[0]
    if element.expressions:  # it has a scale
        return
    scale = _NUMERIC_SCALE
    if all(isinstance(node, exp.Literal | exp.Array | exp.Paren | exp.Neg) for node in cast.this.walk()):
        scale = _longest_fraction([literal.name for literal in cast.this.find_all(exp.Literal)])
    element.replace(exp.DataType.build(f"DECIMAL(38, {scale})", dialect="duckdb"))


def _longest_fraction(texts: list[str]) -> int:
    """With exponents, as many digits as there are of others."""
    if any("e" in text.lower() for text in texts):
        return _NUMERIC_SCALE
    return max((len(digits) for text in texts for digits in re.findall(r"\.(\d+)", text)), default=0)


_TIMES = frozenset({"date", "timestamp", "timestampntz", "timestamptz"})
_BEFORE_CHRIST = re.compile(r"\s*(?P<day>\d{4,}-\d\d?-\d\d?)(?P<time>.*?)\s+BC\s*", re.I | re.S)
_DAYS = {"today": 0, "tomorrow": 1, "yesterday": -1}


def _special_time(cast: exp.Cast) -> None:
    """``date 'today'``, ``timestamp 'now'``: by the clock of the transaction."""
    word = cast.this.name.strip().lower()
    if word.lstrip("+-") == "inf":  # for DuckDB it is infinity
        kind = _type_text(cast.to).replace("tz", " with time zone")
        raise SqlError(sqlstates.INVALID_DATETIME_FORMAT, f'invalid input syntax for type {kind}: "{cast.this.name}"')
    before = _BEFORE_CHRIST.fullmatch(cast.this.name)
    if before is not None:
        cast.this.set("this", f"{before['day']} (BC){before['time']}")
    now = exp.Anonymous(this="_now", expressions=[])
    if word == "now":
        cast.set("this", now)
    elif word in _DAYS:
        day = exp.cast(now, "DATE", dialect="duckdb")
        cast.set("this", exp.Paren(this=exp.Add(this=day, expression=exp.Literal.number(_DAYS[word]))))


def character_length(kind: exp.DataType) -> int | None:
    """That of char(n) and varchar(n), None where it has none; 42601 and 22023 as in PostgreSQL."""
    sizes = [size.this if isinstance(size, exp.DataTypeParam) else size for size in kind.expressions]
    if not sizes:
        return None
    wrong = next((size for size in sizes if not (isinstance(size, exp.Literal) and _is_length(size))), None)
    if wrong is not None or len(sizes) > 1:
        near = "," if wrong is None else wrong.name.lower()
        raise SqlError(
            sqlstates.SYNTAX_ERROR,
            f'syntax error at or near "{near}"',
            hint="The length of a type is one whole number. For a text of any length write text.",
        )
    length, name = int(sizes[0].name), "varchar" if kind.this == exp.DType.VARCHAR else "char"
    if not length or length > _CHARACTERS_MAX:
        bound = "must be at least 1" if not length else f"cannot exceed {_CHARACTERS_MAX}"
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f"length for type {name} {bound}")
    return length


def _is_length(size: exp.Literal) -> bool:
    return not size.is_string and size.name.isascii() and size.name.isdigit() and len(size.name) < 10


_CHARACTERS_MAX = 10_485_760  # PostgreSQL's


def _bounded_text(cast: exp.Cast, *, blank_padded: bool) -> exp.Expr:
    """An explicit cast to varchar(n) or char(n) cuts, as in PostgreSQL; DuckDB ignores n.

    The blanks at the end of a char(n) count nowhere: they are added where the value is a column of the result.
    """
    characters = character_length(cast.to) or 1
    length = exp.Literal.number(characters)
    text = exp.cast(cast.this, "TEXT", dialect="duckdb")
    cut = exp.Anonymous(this="left", expressions=[text, length.copy()])
    shown_as = (oids.BPCHAR if blank_padded else oids.VARCHAR, characters + 4)
    if not blank_padded:
        cut.meta[SHOWN_AS] = shown_as
        return cut
    _forget_blanks(cast)
    blank = exp.Literal.string(" ")
    bare = exp.Anonymous(this="rtrim", expressions=[cut, blank])
    if not cast.meta.get(PADDED):
        return bare
    padded = exp.Anonymous(this="rpad", expressions=[bare, length.copy(), blank.copy()])
    padded.meta[SHOWN_AS] = shown_as
    return padded


def _forget_blanks(cast: exp.Cast) -> None:
    """A constant that is compared with a char(n) is one too."""
    place = cast.parent
    while isinstance(place, exp.Paren):
        place = place.parent
    if isinstance(place, exp.Predicate):
        for part in place.iter_expressions():
            if isinstance(part, exp.Literal) and part.is_string and not isinstance(place, exp.Like | exp.ILike):
                part.set("this", part.name.rstrip(" "))
