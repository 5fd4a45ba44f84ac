"""The interfaces of Lenses for functions of users, by which a jar that was written for the original is called.

They are in a jar of their own, which Lenses publishes and compiles functions against. A function's jar need not have
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mvserver.java_functions.class_files import Jar, JarError
from mvserver.sql.types import SqlType

_HOME = "io.lenses.sql.udf."
_MANY = None
INTERFACES: Mapping[str, int | None] = {
    "UserDefinedFunction1": 1,
    "UserDefinedFunction2": 2,
    "UserDefinedFunction3": 3,
    "UserDefinedFunctionVarArg": _MANY,
    "UserDefinedAggregateFunction": _MANY,
    "UserDefinedTableAggregateFunction": _MANY,
}
"""How many arguments a function has that implements each; None: any number."""
_AGGREGATES = ("UserDefinedTableAggregateFunction", "UserDefinedAggregateFunction")


def interface_of(
    jar: Jar, class_name: str, arguments: Sequence[SqlType], result: SqlType, *, aggregate: bool
) -> str | None:
    """The interface by which the class is called; None where it has none. Raises JarError where it cannot be this
    function: what it says of types is asked when a query calls it, for that is code of the jar."""
    implemented = jar.interfaces(class_name)
    found = [name for name in INTERFACES if _HOME + name in implemented]
    aggregates = [name for name in _AGGREGATES if name in found]
    if aggregate:
        if not aggregates:
            raise JarError(f"class {class_name} does not implement {_HOME}{_AGGREGATES[-1]}")
        found = aggregates[:1]
    elif aggregates:
        raise JarError(f"class {class_name} is an aggregate: say CREATE AGGREGATE")
    if not found:
        return None
    jar.public(class_name).check_can_be_made(class_name)
    fitting = [name for name in found if INTERFACES[name] in (_MANY, len(arguments))]
    if not fitting:
        raise JarError(f"class {class_name} implements {' and '.join(found)}, which has another number of arguments")
    for type_ in (*arguments, result):
        kind = type_.kind if type_.element is None else type_.element.kind
        if not kind.row.lenses:
            raise JarError(f"the interfaces of Lenses have no values of type {kind.value}")
    return fitting[0]
