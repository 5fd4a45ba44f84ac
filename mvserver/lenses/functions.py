"""Functions of the dialect in the words of the first one. What is in no table here is refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.lenses.problems import ProblemError, problem, unsupported
from mvserver.lenses.program import Call, CastTo, Literal
from mvserver.lenses.written import Written, joined, written
from mvserver.quoting import quoted
from mvserver.sql.names import OWN_FUNCTION


@dataclass(frozen=True)
class Function:
    """``template`` has ``{0}`` … for arguments and ``{*}`` for all of them."""

    template: str
    least: int
    most: int


def _plain(name: str, least: int, most: int | None = None) -> Function:
    return Function(f"{name}({{*}})", least, least if most is None else most)


_MANY = 64
SCALARS: Mapping[str, Function] = {
    "ABS": _plain("abs", 1),
    "AS_NULLABLE": Function("{0}", 1, 1),
    "CAPITALIZE": Function("(upper(left({0}, 1)) || substring({0}, 2))", 1, 1),
    "CEIL": _plain("ceil", 1),
    "COALESCE": _plain("coalesce", 1, _MANY),
    "CONCAT": _plain("concat", 1, _MANY),
    "CONCATENATE": _plain("concat", 1, _MANY),
    "CONTAINS": Function("(strpos({0}, {1}) > 0)", 2, 2),
    "DROPLEFT": Function("substring({0}, ({1}) + 1)", 2, 2),
    "DROPRIGHT": Function("left({0}, greatest(length({0}) - ({1}), 0))", 2, 2),
    "ENDSWITH": _plain("endswith", 2),
    "FLOOR": _plain("floor", 1),
    "ISNOTNULL": Function("({0} IS NOT NULL)", 1, 1),
    "ISNULL": Function("({0} IS NULL)", 1, 1),
    "LEN": _plain("length", 1),
    "LENGTH": _plain("length", 1),
    "LOWER": _plain("lower", 1),
    "LOWERCASE": _plain("lower", 1),
    "LPAD": _plain("lpad", 3),
    "LEFTPAD": _plain("lpad", 3),
    "MAX": _plain("greatest", 2, _MANY),
    "MIN": _plain("least", 2, _MANY),
    "REPLACE": _plain("replace", 3),
    "REVERSE": _plain("reverse", 1),
    "RPAD": _plain("rpad", 3),
    "RIGHTPAD": _plain("rpad", 3),
    "SIZEOF": _plain("cardinality", 1),
    "SQRT": _plain("sqrt", 1),
    "STARTSWITH": _plain("starts_with", 2),
    "TAKELEFT": _plain("left", 2),
    "TAKERIGHT": _plain("right", 2),
    "TRIM": _plain("btrim", 1),
    "UNCAPITALIZE": Function("(lower(left({0}, 1)) || substring({0}, 2))", 1, 1),
    "UPPER": _plain("upper", 1),
    "UPPERCASE": _plain("upper", 1),
}

AGGREGATES: Mapping[str, Function] = {
    "AVG": _plain("avg", 1),
    "COLLECT": _plain("array_agg", 1),
    "COLLECT_UNIQUE": Function("array_agg(DISTINCT {0})", 1, 1),
    "COUNT": _plain("count", 1),
    "FIRST": _plain("first_value", 1),
    "LAST": _plain("last_value", 1),
    "MAX": _plain("max", 1),
    "MAXK": _plain("topk", 2),
    "MIN": _plain("min", 1),
    "SUM": _plain("sum", 1),
}

_REFUSED = {
    "AS_NON_NULLABLE": "Use COALESCE, or filter with IS NOT NULL.",
    "ANONYMIZE": "Obfuscate before records are written.",
    **dict.fromkeys(
        ("BOTTOMK", "MAXK_UNIQUE", "MINK", "MINK_UNIQUE", "TOPK"), "Use MAXK(x, n), COLLECT, MIN or MAX."
    ),
    **dict.fromkeys(("SUBSTR", "SUBSTRING"), "Use TAKELEFT, TAKERIGHT, DROPLEFT and DROPRIGHT."),
    **dict.fromkeys(
        (
            "ABBREVIATE", "BASE64", "CENTER", "CHOP", "DATE", "DATETIME", "DECODE64", "DELETEWHITESPACE", "DIGITS",
            "DUMP", "EMAIL", "EXISTS", "FIRST1", "FIRST2", "FIRST3", "FIRST4", "HEADERASSTRING", "INDEXOF", "INITIALS",
            "JSON_EXTRACT_ALL", "JSON_EXTRACT_FIRST", "LAST1", "LAST2", "LAST3", "LAST4", "MASK", "MKSTRING", "REGEX",
            "REGEXP", "REGEX_MATCHES", "STRIPACCENTS", "SWAPCASE", "TRUNCATE", "TYPEOF", "UUID",
        ),
        "The functions that there are stand in docs/sql/lenses.md; the first dialect has more.",
    ),
}  # fmt: skip

_TYPES = {
    "BIGINT": "BIGINT", "BOOLEAN": "BOOLEAN", "BOOL": "BOOLEAN", "DATE": "DATE", "DOUBLE": "DOUBLE", "FLOAT": "FLOAT",
    "INT": "INTEGER", "INTEGER": "INTEGER", "LONG": "BIGINT", "SMALLINT": "SMALLINT", "STRING": "VARCHAR",
    "TIMESTAMP": "TIMESTAMP", "VARCHAR": "VARCHAR",
}  # fmt: skip
_DECIMAL = re.compile(r"DECIMAL\([0-9]+(, [0-9]+)?\)")
_HOLE = re.compile(r"\{(\*|[0-9])\}")


def is_aggregate(call: Call) -> bool:
    name = call.name
    if name in ("MAX", "MIN"):
        return len(call.arguments) == 1
    return name in AGGREGATES


def called(call: Call, argument: Callable[[int], Written]) -> Written:
    """The call in the first dialect."""
    if call.name in _REFUSED:
        raise unsupported(call.place, f"function {call.name} is not supported", _REFUSED[call.name])
    found = (AGGREGATES if is_aggregate(call) else SCALARS).get(call.name)
    if found is None and call.name not in AGGREGATES and call.spelled:
        return _own(call, argument)
    if found is None:
        raise problem(call.place, sqlstates.UNDEFINED_FUNCTION, f"function {call.name} does not exist")
    if call.star:
        if call.name != "COUNT":
            raise problem(call.place, sqlstates.SYNTAX_ERROR, f"{call.name}(*) is not known", "Only COUNT(*) is.")
        return written(call.place, "count(*)")
    if not found.least <= len(call.arguments) <= found.most:
        raise _wrong_number(call, found)
    if call.name == "MAXK" and not _is_count(call.arguments[1]):
        raise problem(call.place, sqlstates.INVALID_PARAMETER_VALUE, "the second argument of MAXK is a whole number")
    return _filled(found.template, call, argument)


def _own(call: Call, argument: Callable[[int], Written]) -> Written:
    """A function of a user's, under its name as written: the first dialect finds it, or says that there is none."""
    arguments = joined(", ", [argument(i) for i in range(len(call.arguments))])
    return written(call.place, f"{OWN_FUNCTION}.{quoted(call.spelled)}(", arguments, ")")


def _is_count(argument: object) -> bool:
    return isinstance(argument, Literal) and argument.kind == "number" and argument.text.isdigit()


def _wrong_number(call: Call, found: Function) -> ProblemError:
    if call.name in AGGREGATES and len(call.arguments) == 2 and call.name == "COLLECT":
        return unsupported(call.place, "COLLECT with a greatest number is not supported", "Use COLLECT(x).")
    wanted = str(found.least) if found.least == found.most else f"{found.least} to {found.most}"
    return problem(
        call.place,
        sqlstates.UNDEFINED_FUNCTION,
        f"function {call.name} takes {wanted} arguments and is given {len(call.arguments)}",
    )


def _filled(template: str, call: Call, argument: Callable[[int], Written]) -> Written:
    result, at = written(call.place), 0
    for hole in _HOLE.finditer(template):
        result.add(template[at : hole.start()])
        if hole[1] == "*":
            result.add(joined(", ", [argument(i) for i in range(len(call.arguments))]))
        else:
            result.add(argument(int(hole[1])))
        at = hole.end()
    return result.add(template[at:])


def cast_type(cast: CastTo) -> str:
    found = _TYPES.get(cast.type)
    if found is None and _DECIMAL.fullmatch(cast.type):
        found = cast.type
    if found is None:
        raise problem(
            cast.place,
            sqlstates.UNDEFINED_OBJECT,
            f"type {cast.type} does not exist",
            f"Types are {', '.join(sorted(_TYPES))} and DECIMAL(p, s).",
        )
    return found
