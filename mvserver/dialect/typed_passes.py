"""The rewrites that depend on types, in their order. They ask DuckDB for the types of parts.

The whole query is bound once before them. It is bound again where a pass asks for ``bound`` after a change, and at the
end where something was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from mvserver import interrupts, limits
from mvserver.dialect import binding, joined_columns
from mvserver.dialect.binding import Bound
from mvserver.dialect.duck_text import last_written, written
from mvserver.dialect.functions import aggregates, binary_functions, division, enum_operands, overlapping
from mvserver.dialect.pull_query import TypedPullQuery
from mvserver.dialect.typing import constant_operands, exact_columns, mixed_numerics, set_columns
from mvserver.dialect.typing.operand_checks import OperandChecks
from mvserver.dialect.typing.typed_rewrites import concerns, concerns_always
from mvserver.errors import SqlError
from mvserver.sql.trees import dismantle

TypedPass = Callable[[TypedPullQuery], None]


def typed(query: TypedPullQuery) -> Bound:
    """All passes over the query; the names and types of what they have made of it."""
    for rewrite in BY_TYPE:
        query.go_on()
        rewrite(query)
    return query.bound


# --- before the first binding -----------------------------------------------------------------------------------------
def _type_values(query: TypedPullQuery) -> None:
    """Columns of VALUES with constants of enum types, on which types of parameters may depend."""
    query.with_enums = bool(query.query.own_types) or enum_operands.present(query.tree)
    if query.with_enums:
        query.rewriting().unify_rows()


def _type_inner_set_columns(query: TypedPullQuery) -> None:
    if _has_sets(query):
        set_columns.unify(query.cursor, query.tree, inner=True)


def _type_constants(query: TypedPullQuery) -> None:
    """Texts beside an operator, on which the types of all around them depend."""
    own = not query.query.reads_system
    if own and constant_operands.present(query.tree):
        query.rewriting().type_constants()
    if overlapping.present(query.tree):
        query.rewriting().choose_overlaps(query.query.oids)
    if own and binary_functions.present(query.tree):
        query.rewriting().trim_bytes()


def _widen_recursive(query: TypedPullQuery) -> None:
    around = query.tree.args.get("with_")
    if around is not None and around.args.get("recursive") and mixed_numerics.widen_recursive(query.cursor, query.tree):
        query.changed(complete=True)


# --- checks and parameters --------------------------------------------------------------------------------------------
def _check_operands(query: TypedPullQuery) -> None:
    try:
        bound = query.bound  # also where nothing is checked: what is wrong is said of the query as it was written
    except SqlError:
        if not _cast_all(query):
            raise
        bound = query.bound
    if not query.query.reads_system:
        numbers = binding.parameter_numbers(query.tree)
        typed = binding.client_casts(numbers, query.query.oids, {}, query.query.own_types)
        types = {**bound.parameters, **typed}
        OperandChecks(query.cursor, query.tree, types, query.query.text, typed=typed.keys()).check()


def _cast_all(query: TypedPullQuery) -> bool:
    """All parameters whose types are known; whether there are some. DuckDB does not bind what depends on them."""
    numbers = binding.parameter_numbers(query.tree)
    casts = binding.client_casts(numbers, query.query.oids, {}, query.query.own_types)
    if casts:
        query.tree = _with_casts(query.tree.copy(), casts)
        query.changed(complete=True)
    return bool(casts)


def _cast_parameters(query: TypedPullQuery) -> None:
    """As the client has declared them; those of unknown type by the first guess that binds."""
    numbers, bound = binding.parameter_numbers(query.tree), query.bound
    if not numbers:
        return
    found = bound.parameters if bound.types else {}  # without casts DuckDB types nothing that depends on them
    casts = binding.client_casts(numbers, query.query.oids, found, query.query.own_types)
    for number in binding.compared_decimals(query.tree, found):
        casts.pop(number, None)
    unknown = [n for n in numbers if bound.parameters.get(n) == binding.UNKNOWN and n not in casts]
    if unknown:
        arrays = binding.array_types(query.cursor, query.tree)
        casts = {**{n: arrays[n] for n in unknown if n in arrays}, **casts}
        unknown = _not_inferred(query, casts, [n for n in unknown if n not in arrays])
    if unknown:
        _guess(query, casts, unknown)
    elif casts:
        query.tree = _with_casts(query.tree.copy(), casts)  # errors are explained by the tree without them
        query.changed(complete=True)


def _with_casts(tree: exp.Expr, types: dict[int, str]) -> exp.Expr:
    root = exp.Paren(this=tree)
    binding.cast_parameters(root, types)
    return root.this.pop()  # type: ignore[no-any-return]


def _not_inferred(query: TypedPullQuery, casts: Mapping[int, str], unknown: list[int]) -> list[int]:
    """Those of the unknown parameters whose type DuckDB does not find either when it knows the others: one that it
    cannot find keeps it from finding any."""
    if not 1 < len(unknown) <= limits.PARAMETERS_INFERRED_SINGLY_MAX:
        return unknown
    (guess, *_) = binding.guessed_types(query.tree, unknown)
    left = []
    for number in unknown:
        others = {**{n: guess[n] for n in unknown if n != number}, **casts}
        query.go_on()
        try:
            found = binding.bind(query.cursor, last_written(_with_casts(query.tree.copy(), others))).parameters
        except SqlError:  # for lack of it, or because a guess is wrong: all of them are guessed
            return unknown
        if found.get(number, binding.UNKNOWN) == binding.UNKNOWN:
            left.append(number)
    return left


def _guess(query: TypedPullQuery, casts: dict[int, str], unknown: Sequence[int]) -> None:
    failure: SqlError | None = None
    for guess in binding.guessed_types(query.tree, unknown):
        candidate = _with_casts(query.tree.copy(), {**guess, **casts})
        try:
            bound = query.completed(candidate)
        except SqlError as error:
            failure = failure or error
            dismantle(candidate)
        else:
            query.tree = candidate
            query.take(bound)
            return
    assert failure is not None  # noqa: S101 - there is at least one guess
    try:
        raise failure
    finally:
        del failure  # which knows this frame: a cycle, with all that the frames around it hold


# --- rewrites by type -------------------------------------------------------------------------------------------------
def _type_aggregates(query: TypedPullQuery) -> None:
    if query.tree.find(exp.Sum, exp.Avg) is not None and aggregates.type_aggregates(query.cursor, query.tree):
        query.changed()


def _type_divisions(query: TypedPullQuery) -> None:
    if query.tree.find(exp.Div) is not None and division.type_divisions(query.cursor, query.tree):
        query.changed()
        _type_aggregates(query)  # those of quotients


def _by_operands(query: TypedPullQuery) -> None:
    """What PostgreSQL does differently for different types of an operand."""
    if not (query.with_enums or _needs_types(query)):
        return
    if binding.parameter_numbers(query.tree):
        query.bound  # noqa: B018 - asked for: the types of its parameters
    if query.rewriting().apply(with_enums=query.with_enums):
        query.changed(complete=True)


def _write_out_stars(query: TypedPullQuery) -> None:
    if query.query.reads_system or not joined_columns.present(query.tree):
        return
    query.bound  # noqa: B018 - asked for: what DuckDB does not bind has been put in other words then
    if joined_columns.write_out(query.cursor, query.tree):
        query.changed()


def _type_set_columns(query: TypedPullQuery) -> None:
    if _has_sets(query) and set_columns.unify(query.cursor, query.tree):
        query.changed()


def _open_parameters(query: TypedPullQuery) -> None:
    """NULLs stand for parameters that are still of unknown type."""
    bound = query.bound
    if not bound.types and _cast_all(query):
        bound = query.bound
    if binding.UNKNOWN not in bound.parameters.values() and bound.types:
        return
    casts, types = binding.cast_types(query.tree), dict(bound.parameters)
    for number, kind in types.items():
        if kind == binding.UNKNOWN and number in casts:
            types[number] = binding.bind(query.cursor, f"SELECT CAST(NULL AS {casts[number]})").types[0]

    def with_nulls(tree: exp.Expr) -> Bound:
        return binding.bind_with_nulls(query.cursor, written(tree), types)

    query.take(query.completed(query.tree, with_nulls))


def _exact_columns(query: TypedPullQuery) -> None:
    if not query.query.reads_system and exact_columns.present(query.tree) and query.rewriting().hand_out_columns():
        query.changed()
        query.bound  # noqa: B018 - what is wrong with it is said here


def _unify_numerics(query: TypedPullQuery) -> None:
    """After the columns whose numerics have digits of their own."""
    if query.query.reads_system or not mixed_numerics.present(query.tree):
        return
    if _has_sets(query):
        query.bound  # noqa: B018 - asked for: what DuckDB does not bind has been put in other words then
    if query.rewriting().unify_numerics():
        query.changed()
        query.bound  # noqa: B018 - as above


BY_TYPE: tuple[TypedPass, ...] = (
    _type_values,
    _type_constants,
    _type_inner_set_columns,
    _widen_recursive,
    _check_operands,
    _cast_parameters,
    _type_aggregates,
    _type_divisions,
    _by_operands,
    _write_out_stars,
    _type_set_columns,
    _exact_columns,
    _unify_numerics,
    _open_parameters,
)


def _has_sets(query: TypedPullQuery) -> bool:
    return not query.query.reads_system and query.tree.find(exp.SetOperation) is not None


def _needs_types(query: TypedPullQuery) -> bool:
    """Clients' own queries of the catalog are many and long, and cast what DuckDB writes as PostgreSQL does."""
    wanted = concerns if query.query.reads_views or not query.query.reads_system else concerns_always
    return any(wanted(node) for node in interrupts.asking(query.tree.walk()))
