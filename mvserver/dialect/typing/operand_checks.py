"""The operands of a query, typed by binding them once more, and refused where they do not go together.

What DuckDB lets pass there is an answer to a question that nobody meant, or an error of some later row.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby, islice

import duckdb
from sqlglot import exp

from mvserver import interrupts, limits, sqlstates
from mvserver.dialect import binding
from mvserver.dialect.duck_text import last_written, written
from mvserver.dialect.errors.duck_errors import translate
from mvserver.dialect.errors.type_texts import pg_name
from mvserver.dialect.functions.casts import check_integer
from mvserver.dialect.probes import probes, type_parameters
from mvserver.dialect.typing import operators
from mvserver.dialect.typing.operand_rules import (
    CATEGORIES,
    COMPARISONS,
    INTEGERS,
    alike,
    check,
    check_alike,
    first_select,
    has_cast,
    is_certain,
    needs_binding,
    number,
    operands,
)
from mvserver.errors import SqlError


class OperandChecks:
    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        tree: exp.Expr,
        parameters: Mapping[int, str],
        text: str | None,
        *,
        typed: Container[int] = (),
    ) -> None:
        """The types of the parameters that are ``typed`` are no guesses of DuckDB's."""
        self._cursor = cursor
        self.tree = tree
        self._parameters = parameters
        self._typed = typed
        self._whole = text
        self._outer = tree.args.get("with_")
        self._known: dict[int, str | None] = {}  # by node, PostgreSQL's names

    def check(self) -> None:
        """Raises 42883 or 42804 for the first that do not go together."""
        judged = ((node, parts) for node in interrupts.asking(self.tree.walk()) if (parts := list(operands(node))))
        checked = list(islice(judged, limits.OPERATIONS_CHECKED_MAX))
        wanted = [part for _, parts in checked for part in parts if needs_binding(part)]
        of_scope = sorted(wanted, key=_scope)
        for _, together in groupby(of_scope, key=_scope):
            self._learn(list(together))
        for node, _ in checked:
            if isinstance(node, exp.Cast):
                self._check_cast(node)
            else:
                check(node, self.type_of, self.place)
            if isinstance(node, COMPARISONS):
                self._check_constant(node.left, node.right)
                self._check_constant(node.right, node.left)
            else:
                self._check_integers(node)
        for select in interrupts.asking(self.tree.find_all(exp.Select)):
            self._check_aliases(select)
        for union in interrupts.asking(self.tree.find_all(exp.SetOperation)):
            self._check_set_operation(union)

    # --- types ------------------------------------------------------------------------------------------------------
    def _learn(self, parts: Sequence[exp.Expr]) -> None:
        """Together; where that is not possible (aggregates beside columns, outer columns) one by one."""
        types = self._bound(parts)
        if types is not None:
            self._known.update({id(part): self._name(part, kind) for part, kind in zip(parts, types, strict=True)})
            return
        for part in parts[: limits.EXPRESSIONS_BOUND_APART_MAX]:
            alone = self._bound([part])
            self._known[id(part)] = None if alone is None else self._name(part, alone[0])

    def _name(self, part: exp.Expr, kind: str) -> str | None:
        """PostgreSQL's name of DuckDB's type. That of a sum of integers is bigint or numeric there; None where the sum
        is in a sub-query."""
        if kind != "HUGEINT":
            return pg_name(kind)
        summed = [call.this for call in part.find_all(exp.Sum) if call.find_ancestor(exp.Select) is _select_of(part)]
        types = self._bound(summed) if summed else None
        if types is None:
            return None
        return "bigint" if all(pg_name(each) in ("smallint", "integer") for each in types) else "numeric"

    def _bound(self, parts: Sequence[exp.Expr]) -> Sequence[str] | None:
        try:
            types = self.bind(parts)
        except SqlError:
            return None
        return types if len(types) == len(parts) else None

    def bind(self, parts: Sequence[exp.Expr]) -> Sequence[str]:
        select = parts[0].find_ancestor(exp.Select) or exp.Select()
        failure: SqlError | None = None
        for probe in probes(parts, select, self._outer):
            type_parameters(probe, self._parameters)
            try:
                return binding.bind(self._cursor, last_written(probe)).types
            except SqlError as error:
                failure = failure or error
        assert failure is not None  # noqa: S101 - there is at least one probe
        try:
            raise failure
        finally:
            del failure  # which knows this frame

    def type_of(self, node: exp.Expr) -> str | None:
        """PostgreSQL's name; None for what is of unknown or uncertain type."""
        bare = node.unnest()
        if isinstance(bare, exp.Boolean):
            return "boolean"
        if isinstance(bare, exp.Literal):
            return None if bare.is_string else number(bare.name)
        if isinstance(bare, exp.Binary) and any(
            not each.name.isdigit() or int(each.name) not in self._typed
            for each in bare.find_all(exp.Parameter, exp.Placeholder)
        ):
            return None  # DuckDB guesses a parameter's type beside an operator
        return self._known.get(id(node))

    def shown(self, operand: exp.Expr) -> str:
        """Its type as messages show it."""
        if needs_binding(operand) and id(operand) not in self._known:
            self._learn([operand])
        return self.type_of(operand) or "unknown"

    @cached_property
    def text(self) -> str | None:
        """Where places can be looked for: for errors only, since long texts take long."""
        return self._whole if self._whole is not None and operators.is_of(self.tree, self._whole) else None

    # --- names ------------------------------------------------------------------------------------------------------
    def _check_aliases(self, select: exp.Select) -> None:
        """Expressions know the columns of FROM, and not those of the select list as in DuckDB: only a bare name in
        GROUP BY or ORDER BY may mean one of these."""
        aliases = {
            item.alias
            for item in select.expressions
            if isinstance(item, exp.Alias) and not (isinstance(item.this, exp.Column) and item.this.name == item.alias)
        }
        clauses = [select.args[key] for key in ("where", "having") if select.args.get(key) is not None]
        clauses += [item.this for item in select.expressions if isinstance(item, exp.Alias)]
        for key in ("order", "group"):
            listed = select.args[key].expressions if select.args.get(key) is not None else []
            keys = [each.this if isinstance(each, exp.Ordered) else each for each in listed]
            clauses += [each for key in keys for each in _grouped_by(key) if not isinstance(each.unnest(), exp.Column)]
        if not aliases or not clauses or select.find_ancestor(exp.Select) is not None:
            return
        for column in (column for clause in clauses for column in clause.find_all(exp.Column)):
            here = column.name in aliases and not column.table and column.find_ancestor(exp.Select) is select
            if here and self._known.get(id(column)) is None and self._bound([column]) is None:
                raise SqlError(
                    sqlstates.UNDEFINED_COLUMN,
                    f'column "{column.name}" does not exist',
                    position=self.place(column),
                )

    # --- casts and constants ----------------------------------------------------------------------------------------
    def _check_cast(self, node: exp.Cast) -> None:
        kind, target = self.type_of(node.this), pg_name(written(node.to))
        if kind is not None and not has_cast(kind, target):
            at = None if self.text is None else operators.cast_place(node, self.text)
            raise SqlError(
                sqlstates.CANNOT_COERCE,
                f"cannot cast type {kind} to {target}",
                position=None if at is None else at + 1,
            )

    def _check_constant(self, constant: exp.Expr, other: exp.Expr) -> None:
        """A text is read as a value of the other operand's type, now and not when a row needs it."""
        kind = self.type_of(other)
        if not (isinstance(constant, exp.Literal) and constant.is_string) or kind not in CATEGORIES or kind == "text":
            return
        cast = exp.cast(constant.copy(), kind, dialect="postgres")
        if kind in INTEGERS:
            self._check_integer(constant, kind)
            return
        try:
            self._cursor.execute(f"SELECT {last_written(cast)}").fetchall()
        except duckdb.Error as error:
            raise translate(error).at(self.place(constant)) from error

    def _check_integers(self, node: exp.Expr) -> None:
        """Texts among integers, which DuckDB would round."""
        parts = alike(node)
        texts = [part for part in parts if isinstance(part, exp.Literal) and part.is_string]
        if not texts:
            return
        kinds = {self.type_of(part) for part in parts if not (isinstance(part, exp.Literal) and part.is_string)}
        if kinds and all(kind in INTEGERS for kind in kinds):
            widest = max(kinds, key=lambda kind: INTEGERS.index(kind or ""))
            for part in texts:
                self._check_integer(part, widest or "")

    def _check_integer(self, constant: exp.Expr, kind: str) -> None:
        try:
            check_integer(constant.name, kind)
        except SqlError as error:
            error.position = self.place(constant)
            raise

    # --- sets -------------------------------------------------------------------------------------------------------
    def _check_set_operation(self, union: exp.SetOperation) -> None:
        word = type(union).__name__.upper()
        sides = [side for side in (first_select(union.left), first_select(union.right)) if side is not None]
        if len(sides) < 2 or any(item.is_star for side in sides for item in side.expressions):
            return
        if len(sides[0].expressions) != len(sides[1].expressions):
            raise SqlError(
                sqlstates.SYNTAX_ERROR,
                f"each {word} query must have the same number of columns",
                position=self.place(sides[1].expressions[0]),
            )
        for pair in zip(sides[0].expressions, sides[1].expressions, strict=True):
            parts = [item.unalias() for item in pair]
            if all(map(is_certain, parts)):
                for part in parts:
                    if needs_binding(part):
                        self._learn([part])
                check_alike(word, parts, self.type_of, self.place)

    # --- places -----------------------------------------------------------------------------------------------------
    def place(self, node: exp.Expr, *, operator: bool = False) -> int | None:
        if operator:
            at = None if self.text is None else operators.place(node, self.text)
        else:
            found = operators.span(node)
            at = None if found is None else found[0]
        return None if at is None else at + 1


def _select_of(part: exp.Expr) -> exp.Expr | None:
    return part.find_ancestor(exp.Select)


def _grouped_by(key: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions of ROLLUP, CUBE and GROUPING SETS, in which a bare name means what it means alone."""
    if not isinstance(key, exp.GroupingSets | exp.Rollup | exp.Cube | exp.Tuple):
        yield key
        return
    for each in key.expressions:
        yield from _grouped_by(each)


def _scope(part: exp.Expr) -> int:
    return id(_select_of(part))
