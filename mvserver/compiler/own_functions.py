"""Functions of users in a continuous query: found by name, chosen by their arguments, and written for Spark.

Which functions a SELECT may call depends on who states it and where, as with relations. The look-up stands for the
time of one compilation, and is another one inside the definition of a view that the query reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from mvserver.compiler.aggregates import AGGREGATES
from mvserver.compiler.capabilities.build import on
from mvserver.compiler.capabilities.lookup import call_entry, no_function
from mvserver.compiler.capabilities.model import Capability, Lowered, Parameter
from mvserver.compiler.capabilities.registry import find
from mvserver.compiler.capabilities.spark_text import FAILURE_MARK, bound_once, spark_type, string
from mvserver.compiler.coercion import coerce
from mvserver.compiler.expressions import Call, Expression, walk
from mvserver.compiler.literals import is_unknown
from mvserver.compiler.plans import ContinuousPlan, record_expressions
from mvserver.compiler.row_functions import ROW_FUNCTIONS
from mvserver.java_functions.definition import JavaFunction
from mvserver.python_functions.definition import PythonFunction
from mvserver.sql.names import OWN_FUNCTION
from mvserver.sql.nodes import position_of
from mvserver.sql.types import Kind, SqlType

OwnFunction = PythonFunction | JavaFunction
_GRAMMAR = frozenset({"grouping", "row"})


class OwnFunctions(Protocol):
    """The users' functions that a SELECT may call."""

    def named(self, parts: Sequence[str], position: int | None) -> Sequence[OwnFunction]:
        """Those of a name; none where there is none. 42501 for a place that the role may not use."""

    def call(self, function: OwnFunction, position: int | None) -> None:
        """One of them is called; 42501 where the role may not."""


class NoFunctions:
    """Where no function of a user can be called."""

    def named(self, parts: Sequence[str], position: int | None) -> Sequence[OwnFunction]:
        return ()

    def call(self, function: OwnFunction, position: int | None) -> None:
        return


_NONE = NoFunctions()
_known: ContextVar[OwnFunctions] = ContextVar("own_functions", default=_NONE)


@contextmanager
def known(functions: OwnFunctions) -> Iterator[None]:
    """What is compiled meanwhile may call these."""
    token = _known.set(functions)
    try:
        yield
    finally:
        _known.reset(token)


def is_built_in(name: str) -> bool:
    """Whether continuous queries have a function of the name, which always goes first."""
    return find(name) is not None or name in AGGREGATES or name in ROW_FUNCTIONS or name in _GRAMMAR


def own_aggregate(node: exp.Expression) -> tuple[str, ...] | None:
    """The name of a user's aggregate that a tree's node calls, with what is said before it; None: it calls none."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous) and isinstance(node.this, exp.Column):
        parts = (*(str(part.this) for part in node.this.parts), str(node.expression.this))
        position = position_of(node.expression)
    elif isinstance(node, exp.Anonymous) and not isinstance(node.parent, exp.Dot) and not is_built_in(str(node.this)):
        parts, position = (str(node.this),), position_of(node)
    else:
        return None
    return parts if any(each.aggregate for each in _named(parts, position)) else None


def _named(parts: Sequence[str], position: int | None) -> Sequence[OwnFunction]:
    return _known.get().named(parts[1:] if parts[0] == OWN_FUNCTION and len(parts) == 2 else parts, position)


def call_own(parts: Sequence[str], arguments: Sequence[Expression], position: int | None) -> Expression | None:
    """A call of a user's function; None where there is none of the name."""
    functions = _known.get()
    found = _named(parts, position)
    if not found:
        return None
    name = parts[-1]
    chosen = call_entry(_entry(name, found), name, arguments, position)
    assert isinstance(chosen, Call)  # noqa: S101 - what is chosen is a call
    function = next(each for each in found if _identity(name, each) == chosen.function)
    types = [type_ for _, type_ in function.parameters]
    fitted = tuple(
        _array(given, made, type_, name, arguments, position) if type_.kind is Kind.ARRAY else made
        for given, made, type_ in zip(arguments, chosen.arguments, types, strict=True)
    )
    functions.call(function, position)
    return replace(chosen, arguments=fitted, definition=function)


def _entry(name: str, functions: Sequence[OwnFunction]) -> Capability:
    """The functions of a name as an entry of the capability table: they are chosen among by the same rules."""
    overloads = [
        on([Parameter(type_.kind) for _, type_ in each.parameters], each.result, "")(name) for each in functions
    ]
    identities = (_identity(name, each) for each in functions)
    return Capability(
        name, "", tuple(replace(made, id=id_) for made, id_ in zip(overloads, identities, strict=True)), ()
    )


def _identity(name: str, function: OwnFunction) -> str:
    return f"{name}({', '.join(str(type_) for _, type_ in function.parameters)})"


def _array(
    given: Expression,
    made: Expression,
    type_: SqlType,
    name: str,
    arguments: Sequence[Expression],
    position: int | None,
) -> Expression:
    """The elements of an array are of the declared type; arrays are not turned into others."""
    if is_unknown(given):
        return coerce(given, type_, position)
    element, wanted = made.type.element, type_.element
    if element is None or wanted is None or element.kind is not wanted.kind:
        raise no_function(name, arguments, position)
    return made


def called(plan: ContinuousPlan) -> Iterator[OwnFunction]:
    """The users' functions that a plan calls of the records of its own scan."""
    expressions = [*record_expressions(plan), *(array for unnest in plan.scan.unnests for array in unnest.arrays)]
    for expression in expressions:
        for node in walk(expression):
            if isinstance(node, Call) and node.definition is not None:
                yield node.definition


def called_anywhere(plan: ContinuousPlan) -> tuple[OwnFunction, ...]:
    """Those of the plan and of all that its rows are made of, each once."""
    found = list(called(plan))
    for side in () if plan.scan.derived is None else plan.scan.derived.sides:
        found += called_anywhere(side.plan)
    return tuple(dict.fromkeys(found))


# --- for Spark ------------------------------------------------------------------------------------------------------
def spark_name(function: OwnFunction) -> str:
    """What the function is called in Spark: its name there changes with its text."""
    return f"mv_function_{function.digest}"


def spark_text(function: OwnFunction, arguments: Sequence[Lowered]) -> str:
    """A function answers each row with a value or an error. An error counts where the value does: not in a branch of
    CASE that is not taken, nor for a record that WHERE leaves out."""
    given, answered = ", ".join(map(str, arguments)) or "0", "answer.value"
    if isinstance(function, JavaFunction):
        parts = [
            f"{_to_java(type_, str(each))} AS a{i}"
            for i, (type_, each) in enumerate(zip(function.given, arguments, strict=True))
        ]
        given, answered = f"struct({', '.join(parts) or '0'})", _from_java(function.result, answered)
    failure = f"raise_error(concat({string(FAILURE_MARK)}, answer.error))"
    value = f"CASE WHEN answer.error IS NULL THEN {answered} ELSE {failure} END"
    call = f"{spark_name(function)}({given})"
    return bound_once("answer", call, value)


_JAVA: Mapping[str, tuple[str, str, str]] = {
    "DATE": ("int", "unix_date({})", "date_from_unix_date({})"),
    "TIMESTAMP_LTZ": ("bigint", "unix_micros({})", "timestamp_micros({})"),
}
"""What Spark hands to Java in place of a date or an instant, whose classes depend on its settings: the type, and the
texts of the way there and back."""


def java_carrier(type_: SqlType) -> str:
    """Spark's type of what a function in Java answers."""
    if type_.element is not None:
        return f"array<{java_carrier(type_.element)}>"
    return _JAVA[type_.kind.value][0] if type_.kind.value in _JAVA else spark_type(type_)


def _to_java(type_: SqlType, text: str) -> str:
    return _carried(type_, text, 1)


def _from_java(type_: SqlType, text: str) -> str:
    return _carried(type_, text, 2)


def _carried(type_: SqlType, text: str, way: int) -> str:
    if type_.element is not None:
        inner = _carried(type_.element, "carried", way)
        return text if inner == "carried" else f"transform({text}, carried -> {inner})"
    return _JAVA[type_.kind.value][way].format(text) if type_.kind.value in _JAVA else text
