"""The SELECT dialect: which tree each kind of SELECT becomes, and what exactly its readers see.

There are two parses, because two readers want opposite things.

``parse_select(text)`` is for **continuous** queries (CREATE STREAM AS, CREATE MATERIALIZED VIEW, INSERT INTO ...
SELECT). It yields a small closed set of sqlglot nodes in which a function is what the user wrote and nothing has been
rewritten on behalf of some other engine. The binder may treat every node that is not in the list below as a programming
error; everything the grammar knows and a continuous query cannot do is refused here with 0A000 or 42601.

``parse_pull(text)`` is for **pull** queries: the tree of :class:`MvDialect`, a sqlglot dialect over Postgres, which
regenerates as PostgreSQL or DuckDB text (``tree.sql(dialect="duckdb")``). Source properties are accepted there too
(``meta["properties"]``, ``meta["query_properties"]``), so that the router can tell a push query; a push query is bound
from ``parse_select`` of the same text.

The continuous tree
===================
Unquoted identifiers are folded to lower case (``Identifier.quoted`` tells how it was written). Nodes carry
``meta["position"]``, the 1-based offset into the whole text; ``position_of(node)`` finds it, or that of the first child
that has one. Parentheses leave no node. The tree is to be bound, not regenerated.

Query
-----
``exp.Select``, or ``exp.Union`` of UNION ALL
    ``expressions``, ``distinct`` (``exp.Distinct()``), ``from_``, ``joins``, ``where``, ``group``, ``having``,
    ``with_``; the outermost one has ``meta["query_properties"]``, the ``Properties`` of QUERY WITH, and
    ``meta["emit_final"]``
select list
    an expression, ``exp.Alias(this=expression, alias=Identifier)``, ``exp.Star()``, or for ``t.*``
    ``exp.Column(this=Star(), table=Identifier[, db, catalog])``
``exp.From(this=...)``
    one ``exp.Table`` or ``exp.Subquery``; absent when the SELECT has no FROM
``exp.Table``
    ``this``, ``db``, ``catalog`` Identifiers; ``alias`` ``TableAlias(this=Identifier[, columns])``;
    ``meta["properties"]``: ``Properties`` (always set, empty without WITH)
``exp.Subquery``
    ``this`` a Select, ``alias`` as above
``exp.Unnest``
    ``expressions`` the arrays, ``offset`` True for WITH ORDINALITY, ``alias`` as above; LATERAL leaves no trace
``exp.Join``
    ``this`` a Table, Subquery or Unnest, ``kind`` "INNER", "CROSS" (a comma too) or None, ``side`` "LEFT",
    "RIGHT", "FULL" or None, ``on`` or ``using`` (Identifiers); ``meta["within"]``: ``exp.Interval`` of WITHIN, or None
``exp.Where``, ``exp.Having``, ``exp.Group``
    ``this``; ``expressions`` (a number is an ordinal, as in PostgreSQL); among those of GROUP BY may be
    ``exp.GroupingSets``, ``exp.Rollup`` and ``exp.Cube``
``TUMBLE(...)``, ``HOP(...)``, ``CUMULATE(...)``, ``SESSION(...)``
    the Table or Subquery that the window is over; ``meta["window"]``: ``mvserver.sql.windows.WindowText``
``exp.With``
    ``expressions``: ``exp.CTE(this=Select, alias=TableAlias)``
refused here
    UNION without ALL, INTERSECT, EXCEPT, ORDER BY, LIMIT, OFFSET, FETCH, OVER and WINDOW, sub-queries in expressions,
    DISTINCT ON, NATURAL JOIN, LATERAL before anything but UNNEST, TABLESAMPLE, MATCH_RECOGNIZE, RECURSIVE, FOR UPDATE,
    parameters ($1: 42P02)

Names and access
----------------
``a``, ``t.a``, ``s.t.a``, ``d.s.t.a``
    ``exp.Column`` with ``this``, ``table``, ``db``, ``catalog``. The binder decides whether a leading part is a
    relation, its alias or a struct column.
``x -> b``, ``(x).b``
    ``exp.Dot(this=x, expression=Identifier)``: a struct field. More than four dotted parts are Dots over a Column.
``x -> 'k'``, ``x -> 0``, ``x ->> 'k'``
    ``exp.JSONExtract(this=x, expression=Literal)``, ``exp.JSONExtractScalar``
``arr[1]``, ``m['k']``
    ``exp.Bracket(this, expressions=[index])``, the index as written (no offset is applied: arrays start at 1)

Literals
--------
``'x'``, ``’x’``, ``E'\\n'``, ``$$x$$``
    ``exp.Literal(is_string=True)`` with the decoded value in ``this``
``1``, ``1.5``, ``.5``, ``1e3``
    ``exp.Literal(is_string=False)``, ``this`` is the text as written
``TRUE``, ``NULL``, ``X'1F'``
    ``exp.Boolean(this=True)``, ``exp.Null()``, ``exp.HexString(this="1F")`` (an even number of hexadecimal digits)
``DATE '...'``, ``TIMESTAMP(3) '...'`` and any ``type '...'``
    ``exp.Cast`` (below) of a string Literal, with ``meta["typed_literal"]`` True
``INTERVAL '...' [unit [TO unit]]``, ``INTERVAL 5 MINUTES``
    ``exp.Interval(this=string Literal as written, unit=None or exp.Var)``; the unit is upper-case and singular: "DAY",
    "YEAR TO MONTH"

Operators
---------
``+ - * / % ^``
    ``exp.Add Sub Mul Div Mod Pow``; unary minus ``exp.Neg``; unary plus leaves no node
``& | # << >> ~``
    ``exp.BitwiseAnd BitwiseOr BitwiseXor BitwiseLeftShift BitwiseRightShift BitwiseNot``
``||``
    ``exp.DPipe``
``= <> != < <= > >=``
    ``exp.EQ NEQ LT LTE GT GTE``
``AND OR NOT``
    ``exp.And Or Not``; a long chain of AND or OR is a balanced tree
``IS [NOT] NULL``, ``ISNULL``, ``NOTNULL``
    ``exp.Is(this, expression=Null())``, under ``exp.Not`` when negated
``IS [NOT] TRUE``, ``FALSE``, ``UNKNOWN``
    ``exp.Is(this, expression=Boolean)``, ``exp.Is(this, expression=Var("UNKNOWN"))``
``IS [NOT] DISTINCT FROM``
    ``exp.NullSafeNEQ``; with NOT ``exp.NullSafeEQ``
``[NOT] BETWEEN [SYMMETRIC]``, ``[NOT] IN (...)``
    ``exp.Between(this, low, high[, symmetric=True])``, ``exp.In(this, expressions=[...])``, under Not when negated
``[NOT] LIKE``, ``ILIKE``, ``SIMILAR TO``
    ``exp.Like`` (also ``~~``), ``exp.ILike`` (``~~*``), ``exp.SimilarTo``; with ESCAPE ``exp.Escape(this=Like,
    expression=Literal)``; under Not when negated
``~``, ``~*``, ``!~``, ``!~*``
    ``exp.RegexpLike``, ``exp.RegexpILike``, under Not when negated
``x AT TIME ZONE z``
    ``exp.AtTimeZone(this=x, zone=z)``
``CAST(x AS t)``, ``x::t``, ``TRY_CAST``
    ``exp.Cast(this=x, to=exp.DataType)``, ``exp.TryCast``. ``sql_type_of(cast)`` is the ``mvserver.sql.types.SqlType``
``CASE``
    ``exp.Case(this=operand or None, ifs=[exp.If(this, true)], default=... or None)``
``ARRAY[...]``
    ``exp.Array(expressions)``

Functions
---------
Every call is ``exp.Anonymous(this="name in lower case", expressions=[arguments])``; a quoted name keeps its case; a
leading ``pg_catalog.`` is dropped. ``COUNT(*)``: the argument is ``exp.Star()``. ``f(DISTINCT a, b)``: one argument
``exp.Distinct(expressions=[a, b])``; ALL leaves no trace. ``f(...) FILTER (WHERE c)``: ``exp.Filter(this=Anonymous,
expression=exp.Where(this=c))``, where ``f(...) WITHIN GROUP (ORDER BY x DESC)`` is ``exp.WithinGroup(this=Anonymous,
expression=exp.Order(expressions=[exp.Ordered(this=x, desc=True)]))``. ORDER BY among the arguments, OVER, named
arguments and VARIADIC are refused. Special syntax becomes ordinary calls:

``EXTRACT(unit FROM x)``
    ``extract('unit', x)``, the unit a string Literal in lower case
``POSITION(a IN b)``
    ``position(a, b)``
``SUBSTRING(x FROM a [FOR b])``, ``SUBSTRING(x FOR b)``
    ``substring(x, a[, b])``, ``substring(x, 1, b)``
``TRIM([BOTH|LEADING|TRAILING] [c] FROM x)``, ``TRIM(x[, c])``
    ``btrim|ltrim|rtrim(x[, c])``
``OVERLAY(x PLACING y FROM a [FOR b])``
    ``overlay(x, y, a[, b])``
``CEIL(x TO unit)``, ``FLOOR(x TO unit)``
    ``ceil(x, 'unit')``, ``floor(x, 'unit')``
``TIMESTAMPADD(unit, n, x)``, ``TIMESTAMPDIFF(unit, a, b)``
    the unit a string Literal in lower case
``JSON_VALUE(x, p [RETURNING t] [NULL ON EMPTY] [NULL ON ERROR])``
    ``json_value(x, p)``, with RETURNING inside ``exp.TryCast``
``CURRENT_DATE``, ``CURRENT_TIME[(n)]``, ``CURRENT_TIMESTAMP``, ``LOCALTIME``, ``LOCALTIMESTAMP``, ``USER``
    calls without arguments (or with the precision)
``MAP['k', v, ...]``, ``ROW(a, b)``, ``(a, b)``
    ``map('k', v, ...)``, ``row(a, b)``
"""

from __future__ import annotations

from sqlglot import exp

from mvserver.sql import guard
from mvserver.sql.cursor import Cursor
from mvserver.sql.lexer import tokenize
from mvserver.sql.nodes import data_type, default_name, position_of, sql_type_of
from mvserver.sql.pull import MvDialect, pull_query
from mvserver.sql.select import continuous_select
from mvserver.sql.split import StatementTokens, split


def parse_select(text: str) -> exp.Select | exp.Union:
    """The continuous tree of one SELECT, or of a UNION ALL of several."""
    cursor = Cursor(_only_statement(text))
    with guard.no_recursion_error():
        select = continuous_select(cursor)
    cursor.expect_end()
    return select


def parse_pull(text: str) -> exp.Expression:
    """The pull tree of one SELECT, VALUES or TABLE."""
    return pull_query(_only_statement(text))


def _only_statement(text: str) -> StatementTokens:
    guard.check_size(text)
    tokens = tokenize(text)
    statements = split(text, tokens)
    if not statements:
        raise Cursor(StatementTokens(text, tokens)).syntax_error()
    if len(statements) > 1:
        raise Cursor(statements[1]).syntax_error()
    guard.check_tokens(statements[0].tokens)
    return statements[0]


__all__ = [
    "MvDialect",
    "data_type",
    "default_name",
    "parse_pull",
    "parse_select",
    "position_of",
    "sql_type_of",
]
