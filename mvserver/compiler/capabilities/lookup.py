"""The overload that a call means: PostgreSQL's way of choosing, over our table.

An overload fits when every argument has its type or turns into it implicitly. Among those that fit, the one with the
most exact arguments wins, then the one whose conversions are shortest. String constants and NULL fit anything; text
is preferred for them, and a binary operator first tries the type of its other side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.compiler.capabilities.model import Capability, Overload, Parameter
from mvserver.compiler.capabilities.refused import refusal
from mvserver.compiler.capabilities.registry import find
from mvserver.compiler.coercion import coerce, common_type_of, implicit_cost, natural_decimal
from mvserver.compiler.expressions import Call, Expression, Literal
from mvserver.compiler.literals import is_unknown
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.calls import FUNCTIONS_HINT
from mvserver.sql.types import Kind, SqlType

_CASTS_HINT = "You might need to add explicit type casts."
_AS_TEXT_KINDS = frozenset(set(Kind) - {Kind.ARRAY, Kind.MAP, Kind.STRUCT, Kind.INTERVAL})


@dataclass(frozen=True)
class _Fit:
    overload: Overload
    targets: tuple[SqlType, ...]
    exact: int
    cost: int


def call_function(name: str, arguments: Sequence[Expression], position: int | None = None) -> Expression:
    """A call by name; 0A000 for what is known and not supported, 42883 for what is not known or does not fit."""
    entry = find(name)
    if entry is None or not arguments:
        unsettled = refusal(name, position)
        if unsettled is not None:
            raise unsettled
    if entry is None:
        raise no_function(name, arguments, position, known=False)
    return _call(entry, name, arguments, position, operator=False)


def call_operator(name: str, arguments: Sequence[Expression], position: int | None = None) -> Expression:
    entry = find(name, operator=True)
    if entry is None:
        raise _no_operator(name, arguments, position)
    return _call(entry, name, arguments, position, operator=True)


def call_entry(entry: Capability, name: str, arguments: Sequence[Expression], position: int | None) -> Expression:
    """A call of an entry that may stand in no table; 42883 where no overload fits."""
    return _call(entry, name, arguments, position, operator=False)


def _call(
    entry: Capability, name: str, arguments: Sequence[Expression], position: int | None, *, operator: bool
) -> Expression:
    assumed = _assume_other_side(arguments) if operator else None
    fits = _fits(entry, assumed, arguments) if assumed else []
    if not fits:
        fits = _fits(entry, [each.type for each in arguments], arguments)
    if not fits:
        error = _no_operator if operator else no_function
        raise error(name, arguments, position)
    fits.sort(key=lambda fit: (-fit.exact, fit.cost))
    best = fits[0]
    if len(fits) > 1 and (fits[1].exact, fits[1].cost) == (best.exact, best.cost):
        raise _not_unique(name, arguments, position, operator=operator)
    _check_constants(entry, name, best.overload, arguments, position)
    coerced = tuple(
        coerce(argument, target, position) for argument, target in zip(arguments, best.targets, strict=True)
    )
    result = best.overload.result
    return Call(result if isinstance(result, SqlType) else result(coerced), best.overload.id, coerced)


def _assume_other_side(arguments: Sequence[Expression]) -> list[SqlType] | None:
    """PostgreSQL's rule for operators: a constant without a type is first taken to have the other side's."""
    if len(arguments) != 2:
        return None
    left, right = (is_unknown(each) for each in arguments)
    if left == right:
        return None
    known = arguments[1].type if left else arguments[0].type
    return [known, known]


def _fits(entry: Capability, types: Sequence[SqlType], arguments: Sequence[Expression]) -> list[_Fit]:
    found = (_fit(each, types, arguments) for each in entry.overloads)
    return [fit for fit in found if fit is not None]


def _expand(overload: Overload, count: int) -> tuple[Parameter, ...] | None:
    parameters = overload.parameters
    if overload.variadic and count >= len(parameters):
        return parameters + (parameters[-1],) * (count - len(parameters))
    return parameters if len(parameters) == count else None


def _fit(overload: Overload, types: Sequence[SqlType], arguments: Sequence[Expression]) -> _Fit | None:
    parameters = _expand(overload, len(types))
    if parameters is None:
        return None
    variables = _variables(parameters, types, arguments)
    if variables is None:
        return None
    targets: list[SqlType] = []
    exact = cost = 0
    for index, (parameter, type_, argument) in enumerate(zip(parameters, types, arguments, strict=True)):
        target = _target(parameter, type_, argument, variables[_variable(parameter, index)])
        if target is None:
            return None
        if parameter.as_text or parameter.container == "map":
            step: int | None = int(parameter.as_text)  # an overload that asks for text goes first
        elif parameter.variable:
            step = 0 if _same_kind(type_, target) else 1
        else:
            step = implicit_cost(type_, target.kind)
        if step is None:
            return None
        exact += step == 0 and type_.kind is not Kind.NULL
        cost += step
        targets.append(target)
    return _Fit(overload, tuple(targets), exact, cost)


def _same_kind(left: SqlType, right: SqlType) -> bool:
    return left.kind is right.kind


def _variable(parameter: Parameter, index: int) -> str:
    """The variable that an argument belongs to; keys and values of MAP[...] take turns."""
    return f"PAIR{index % 2}" if parameter.variable == "PAIR" else parameter.variable


def _variables(
    parameters: Sequence[Parameter], types: Sequence[SqlType], arguments: Sequence[Expression]
) -> Mapping[str, SqlType] | None:
    element = _common_element(parameters, arguments)
    if element is None:
        return None
    key = types[0].key or t.NULL if types else t.NULL
    found = {"": t.NULL, "MAP": t.NULL, "EACH": t.NULL, "ELEMENT": element, "KEY": key}
    if parameters and parameters[0].variable == "PAIR":
        for turn in (0, 1):
            common = common_type_of(arguments[turn::2])
            if common is None:
                return None
            found[f"PAIR{turn}"] = common
        found.setdefault("PAIR0", t.NULL)
    return found


def _common_element(parameters: Sequence[Parameter], arguments: Sequence[Expression]) -> SqlType | None:
    """The type that all ELEMENT arguments share."""
    shared: list[Expression] = []
    allowed: frozenset[Kind] | None = None
    compared = any(parameter.compared for parameter in parameters)
    for parameter, argument in zip(parameters, arguments, strict=True):
        if parameter.variable != "ELEMENT":
            continue
        allowed = parameter.allowed or allowed
        type_ = argument.type
        if parameter.container != "array":
            shared.append(argument)
        elif type_.kind is Kind.ARRAY and type_.element is not None:
            shared.append(Literal(type_.element, None))
        elif type_.kind is not Kind.NULL:
            return None
    common = common_type_of(shared)
    if compared and common == t.FLOAT and any(each.type.is_numeric and each.type != t.FLOAT for each in shared):
        common = t.DOUBLE  # PostgreSQL has no operator between real and other numbers
    return None if common is None or (allowed is not None and common.kind not in allowed) else common


def _target(parameter: Parameter, type_: SqlType, argument: Expression, element: SqlType) -> SqlType | None:
    if parameter.as_text:
        return t.VARCHAR if type_.kind in _AS_TEXT_KINDS else None
    if parameter.container == "map":
        return type_ if type_.kind is Kind.MAP else None
    if parameter.container == "array":
        return t.array(element)
    if parameter.variable == "EACH":
        return t.VARCHAR if is_unknown(argument) else type_
    if parameter.variable:
        return element
    kind = parameter.kind
    if kind is None:
        return None
    if kind is Kind.DECIMAL:
        fits = type_.kind in (Kind.DECIMAL, Kind.NULL) or type_.is_integer
        return natural_decimal(argument) if fits else None
    if kind is type_.kind and kind is not Kind.VARCHAR:
        return type_
    return SqlType(kind)


def _check_constants(
    entry: Capability, name: str, overload: Overload, arguments: Sequence[Expression], position: int | None
) -> None:
    parameters = _expand(overload, len(arguments)) or ()
    for index, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True), start=1):
        if parameter.constant and (not isinstance(argument, Literal) or argument.value is None):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"argument {index} of {name} must be a constant",
                hint=entry.note.capitalize() + "." if entry.note else None,
                position=position,
            )


def _spelled(arguments: Sequence[Expression]) -> list[str]:
    return [postgres_name(each.type) for each in arguments]


def _operator_spelled(name: str, arguments: Sequence[Expression]) -> str:
    types = _spelled(arguments)
    sign = name.removeprefix("prefix ").upper()
    return f"{types[0]} {sign} {types[1]}" if len(types) > 1 else f"{sign} {types[0]}"


def no_function(name: str, arguments: Sequence[Expression], position: int | None, *, known: bool = True) -> SqlError:
    hint = f"No function matches the given name and argument types. {_CASTS_HINT} " if known else ""
    return SqlError(
        sqlstates.UNDEFINED_FUNCTION,
        f"function {name}({', '.join(_spelled(arguments))}) does not exist",
        hint=hint + FUNCTIONS_HINT,
        position=position,
    )


def _no_operator(name: str, arguments: Sequence[Expression], position: int | None) -> SqlError:
    return SqlError(
        sqlstates.UNDEFINED_FUNCTION,
        f"operator does not exist: {_operator_spelled(name, arguments)}",
        hint=f"No operator matches the given name and argument types. {_CASTS_HINT}",
        position=position,
    )


def _not_unique(name: str, arguments: Sequence[Expression], position: int | None, *, operator: bool) -> SqlError:
    if operator:
        return SqlError(
            sqlstates.AMBIGUOUS_FUNCTION,
            f"operator is not unique: {_operator_spelled(name, arguments)}",
            hint=f"Could not choose a best candidate operator. {_CASTS_HINT}",
            position=position,
        )
    return SqlError(
        sqlstates.AMBIGUOUS_FUNCTION,
        f"function {name}({', '.join(_spelled(arguments))}) is not unique",
        hint=f"Could not choose a best candidate function. {_CASTS_HINT}",
        position=position,
    )


__all__ = ["call_entry", "call_function", "call_operator", "no_function"]
