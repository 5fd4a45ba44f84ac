"""The SELECT of continuous queries: DeltaStream's clauses, nothing that a stream cannot answer.

What PostgreSQL's grammar has beyond it is recognised and refused by name, so that a user learns which clause to drop
instead of reading "syntax error".
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.expressions import ExpressionParser
from mvserver.sql.lexer import IDENTIFIER, NUMBER, STRING, WORD, Token
from mvserver.sql.names import NOT_A_NAME, identifier, label
from mvserver.sql.nodes import at
from mvserver.sql.properties import at_properties, optional_properties, property_list
from mvserver.sql.statements.base import Properties
from mvserver.sql.windows import at_window, window_table

_SIDES = frozenset({"inner", "cross", "left", "right", "full", "natural"})
_READ_WHERE = "Order and cut the rows where you read them: SELECT ... FROM view ORDER BY ... LIMIT ..."
_COMPARE_WHERE = "Create a view of each query, and compare them in the SELECT that reads both."
_REFUSED_CLAUSES = {
    "union": (
        "UNION without ALL is not supported in continuous queries",
        "UNION ALL is; SELECT DISTINCT over it drops what comes twice.",
    ),
    "intersect": ("INTERSECT is not supported in continuous queries", _COMPARE_WHERE),
    "except": ("EXCEPT is not supported in continuous queries", _COMPARE_WHERE),
    "order": ("ORDER BY is not supported in continuous queries", _READ_WHERE),
    "limit": ("LIMIT is not supported in continuous queries", _READ_WHERE),
    "offset": ("OFFSET is not supported in continuous queries", _READ_WHERE),
    "fetch": ("FETCH is not supported in continuous queries", _READ_WHERE),
    "window": (
        "the WINDOW clause is not supported in continuous queries",
        "Use window functions where you read the view: SELECT ... OVER (...) FROM view.",
    ),
    "for": ("FOR UPDATE and FOR SHARE are not supported", "Leave it out: a continuous query locks no rows."),
    "tablesample": (
        "TABLESAMPLE is not supported in continuous queries",
        "Choose records by a column: WHERE column % 10 = 0.",
    ),
}


def continuous_select(cursor: Cursor) -> exp.Select | exp.Union:
    """``[WITH ...] SELECT ... [QUERY WITH (...)]`` up to where no clause of it follows."""
    select = _Parser(cursor).query()
    select.meta["emit_final"] = _emits_final(cursor)
    properties = Properties()
    if cursor.at_word("query", "with"):
        cursor.advance()
        cursor.advance()
        properties = property_list(cursor)
    select.meta["query_properties"] = properties
    return select


def _emits_final(cursor: Cursor) -> bool:
    """``EMIT FINAL``; ``EMIT CHANGES`` is what happens without it."""
    if not cursor.at_word("emit"):
        return False
    cursor.advance()
    return cursor.expect_any("final", "changes") == "final"


class _Parser:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.expressions = ExpressionParser(cursor)

    def query(self) -> exp.Select | exp.Union:
        """``[WITH …] SELECT … [UNION ALL SELECT …]``"""
        cursor = self.cursor
        start = cursor.current
        with_ = self._with() if cursor.at_word("with") else None
        if cursor.at_any({"values", "table"}):
            raise cursor.not_supported(
                f"{cursor.current.text.upper()} is not supported in continuous queries", hint="Write a SELECT."
            )
        if with_ is not None and cursor.at_operator("("):
            raise cursor.not_supported(
                "brackets around the SELECT after WITH are not supported", hint="Leave them out."
            )
        query: exp.Select | exp.Union = self._branch()
        while cursor.at_word("union", "all"):
            token = cursor.advance()
            cursor.advance()
            query = at(exp.Union(this=query, expression=self._branch(), distinct=False), token)
        self._refuse_clauses()
        if with_ is not None:
            query.set("with_", at(with_, start))
        return query

    def _branch(self) -> exp.Select | exp.Union:
        cursor = self.cursor
        if not cursor.at_operator("("):
            return self._select()
        cursor.advance()
        inner = self.query()
        cursor.expect_operator(")")
        return inner

    def _with(self) -> exp.With:
        cursor = self.cursor
        cursor.advance()
        if cursor.at_word("recursive"):
            raise cursor.not_supported(
                "WITH RECURSIVE is not supported in continuous queries",
                hint="Use it in the SELECT that reads the view.",
            )
        ctes: list[exp.CTE] = []
        seen: set[str] = set()
        while True:
            token = cursor.current
            name = self._alias(identifier(cursor), token)
            if name.name in seen:
                raise SqlError(
                    "42712", f'WITH query name "{name.name}" specified more than once', position=token.position
                )
            seen.add(name.name)
            columns = self._column_names() if cursor.at_operator("(") else None
            cursor.expect_word("as")
            if not cursor.accept_word("not", "materialized"):
                cursor.accept_word("materialized")
            cursor.expect_operator("(")
            inner = self.query()
            cursor.expect_operator(")")
            ctes.append(at(exp.CTE(this=inner, alias=exp.TableAlias(this=name, columns=columns)), token))
            if not cursor.accept_operator(","):
                return exp.With(expressions=ctes)

    def _select(self) -> exp.Select:
        cursor = self.cursor
        token = cursor.current
        cursor.expect_word("select")
        select = at(exp.Select(), token)
        if cursor.at_word("distinct"):
            distinct = cursor.advance()
            if cursor.at_word("on"):
                raise cursor.not_supported(
                    "DISTINCT ON is not supported in continuous queries",
                    hint="GROUP BY with FIRST_VALUE or LAST_VALUE gives the first or last of a group by event time.",
                )
            select.set("distinct", at(exp.Distinct(), distinct))
        else:
            cursor.accept_word("all")
        select.set("expressions", self._select_list())
        if cursor.at_word("into"):
            raise cursor.not_supported(
                "SELECT INTO is not supported", hint="Use CREATE MATERIALIZED VIEW ... AS SELECT."
            )
        if cursor.at_word("from"):
            self._from(select)
        if cursor.at_word("where"):
            where = cursor.advance()
            select.set("where", at(exp.Where(this=self.expressions.expression()), where))
        if cursor.at_word("group", "by"):
            select.set("group", self._group())
        if cursor.at_word("having"):
            having = cursor.advance()
            select.set("having", at(exp.Having(this=self.expressions.expression()), having))
        return select

    def _refuse_clauses(self) -> None:
        token = self.cursor.current
        if token.kind is not WORD:
            return
        refused = _REFUSED_CLAUSES.get(token.text)
        if refused is not None:
            raise self.cursor.not_supported(refused[0], hint=refused[1])

    # --- the select list --------------------------------------------------------------------------------------------
    def _select_list(self) -> list[exp.Expression]:
        cursor = self.cursor
        items = [self._select_item()]
        while cursor.at_operator(","):
            comma = cursor.advance()
            items.append(self._select_item())
            if len(items) > limits.COLUMNS_MAX:
                raise SqlError(
                    sqlstates.TOO_MANY_COLUMNS,
                    f"target lists can have at most {limits.COLUMNS_MAX} entries",
                    position=comma.position,
                )
        return items

    def _select_item(self) -> exp.Expression:
        cursor = self.cursor
        token = cursor.current
        if cursor.accept_operator("*"):
            return at(exp.Star(), token)
        if cursor.at_name():
            star = self._qualified_star()
            if star is not None:
                return star
        expression = self.expressions.expression()
        name = cursor.current
        if cursor.accept_word("as"):
            name = cursor.current
            alias = self._alias(label(cursor), name)
        elif self._at_alias():
            cursor.advance()
            alias = self._alias(name.text, name)
        else:
            return expression
        return at(exp.Alias(this=expression, alias=alias), token)

    def _qualified_star(self) -> exp.Expression | None:
        """``t.*`` and ``s.t.*``."""
        cursor = self.cursor
        ahead = 1
        while cursor.peek(ahead).text == "." and cursor.peek(ahead + 1).kind in (WORD, IDENTIFIER):
            ahead += 2
        if cursor.peek(ahead).text != "." or cursor.peek(ahead + 1).text != "*":
            return None
        if ahead > 5:
            raise cursor.syntax_error(cursor.peek(ahead + 1))
        tokens = [cursor.peek(offset) for offset in range(0, ahead, 2)]
        for _ in range(ahead + 1):
            cursor.advance()
        star = at(exp.Star(), cursor.advance())
        parts = [at(exp.Identifier(this=part.text, quoted=part.kind is IDENTIFIER), part) for part in tokens]
        arguments = dict(zip(("table", "db", "catalog"), reversed(parts), strict=False))
        return at(exp.Column(this=star, **arguments), tokens[0])

    def _at_alias(self) -> bool:
        token = self.cursor.current
        if token.kind is IDENTIFIER:
            return True
        if token.kind is not WORD or token.text in NOT_A_NAME:
            return False
        following = self.cursor.peek()
        if token.text == "query":
            return not (following.kind is WORD and following.text == "with")
        if token.text == "within":
            return following.kind is not NUMBER and following.kind is not STRING and following.text != "interval"
        return token.text not in ("match_recognize", "emit")

    def _alias(self, name: str, token: Token) -> exp.Identifier:
        return at(exp.Identifier(this=name, quoted=token.kind is IDENTIFIER), token)

    def _column_names(self) -> list[exp.Identifier]:
        cursor = self.cursor
        cursor.expect_operator("(")
        names: list[exp.Identifier] = []
        while True:
            token = cursor.current
            names.append(self._alias(identifier(cursor), token))
            if cursor.accept_operator(")"):
                return names
            cursor.expect_operator(",")

    # --- FROM -------------------------------------------------------------------------------------------------------
    def _from(self, select: exp.Select) -> None:
        cursor = self.cursor
        token = cursor.advance()
        select.set("from_", at(exp.From(this=self._source()), token))
        joins: list[exp.Join] = []
        while True:
            token = cursor.current
            if cursor.accept_operator(","):
                source = self._source()
                join = at(exp.Join(this=source, kind="CROSS"), token)
                join.meta["within"] = None
                joins.append(join)
            elif cursor.at_word("join") or cursor.at_any(_SIDES):
                joins.append(self._join())
            else:
                break
        if joins:
            select.set("joins", joins)

    def _join(self) -> exp.Join:
        cursor = self.cursor
        token = cursor.current
        if cursor.at_word("natural"):
            raise cursor.not_supported("NATURAL JOIN is not supported in continuous queries", hint="Use ON.")
        side: str | None = None
        kind: str | None = None
        if cursor.at_any({"left", "right", "full"}):
            side = cursor.advance().text.upper()
            cursor.accept_word("outer")
        elif cursor.at_any({"inner", "cross"}):
            kind = cursor.advance().text.upper()
        cursor.expect_word("join")
        join = at(exp.Join(this=self._source(), side=side, kind=kind), token)
        join.meta["within"] = self._within()
        if kind == "CROSS":
            return join
        if cursor.accept_word("using"):
            join.set("using", self._column_names())
        else:
            cursor.expect_word("on")
            join.set("on", self.expressions.expression())
        return join

    def _within(self) -> exp.Interval | None:
        """``WITHIN 5 MINUTES``."""
        cursor = self.cursor
        if not cursor.at_word("within"):
            return None
        token = cursor.advance()
        if cursor.at_word("interval"):
            interval = self.expressions.interval()
            if interval is None:
                raise cursor.syntax_error()
            return interval
        amount = cursor.current
        if amount.kind is not NUMBER:
            raise cursor.syntax_error()
        cursor.advance()
        unit = self.expressions.unit()
        if unit is None:
            raise cursor.syntax_error()
        literal = at(exp.Literal.string(amount.text), amount)
        return at(exp.Interval(this=literal, unit=exp.Var(this=unit)), token)

    def _source(self) -> exp.Expression:
        cursor = self.cursor
        token = cursor.current
        lateral = cursor.accept_word("lateral")
        if cursor.at_word("unnest") and cursor.peek().text == "(":
            return self._unnest()
        if lateral:
            raise cursor.not_supported(
                "LATERAL is only supported before UNNEST in continuous queries",
                hint="Write CROSS JOIN LATERAL UNNEST(array) AS t (column).",
                token=token,
            )
        if cursor.at_operator("("):
            source = self._sub_query()
            self._source_alias(source)
            return source
        cursor.accept_word("only")
        token = cursor.current
        table = window_table(cursor, self.expressions, self._in_window) if at_window(cursor) else self._table()
        if cursor.at_operator("("):
            raise cursor.not_supported(
                "table functions are not supported in continuous queries",
                hint="FROM takes TUMBLE, HOP, CUMULATE, SESSION and UNNEST.",
                token=token,
            )
        # The properties may stand on either side of the alias.
        properties = optional_properties(cursor)
        self._source_alias(table)
        if at_properties(cursor):
            if properties:
                raise cursor.syntax_error(hint="The properties of a source are given once, in one list.")
            properties = optional_properties(cursor)
        if cursor.at_word("match_recognize"):
            raise cursor.not_supported(
                "MATCH_RECOGNIZE is not supported",
                hint="Rows that follow each other are found by a join of the stream with itself WITHIN n unit.",
            )
        if cursor.at_word("tablesample"):
            self._refuse_clauses()
        if cursor.at_word("for", "system_time"):
            raise cursor.not_supported(
                "FOR SYSTEM_TIME AS OF is not supported",
                hint="Leave it out: a stream is joined with the version of a changelog valid at its event time.",
            )
        table.meta["properties"] = properties
        return table

    def _unnest(self) -> exp.Unnest:
        """``UNNEST(array, ...) [WITH ORDINALITY] [[AS] t [(columns)]]``"""
        cursor = self.cursor
        token = cursor.advance()
        cursor.expect_operator("(")
        arrays = [self.expressions.expression()]
        while cursor.accept_operator(","):
            arrays.append(self.expressions.expression())
        cursor.expect_operator(")")
        ordinality = cursor.accept_word("with", "ordinality")
        unnest = at(exp.Unnest(expressions=arrays, offset=bool(ordinality)), token)
        self._source_alias(unnest)
        return unnest

    def _in_window(self) -> exp.Expression:
        return self._sub_query() if self.cursor.at_operator("(") else self._table()

    def _sub_query(self) -> exp.Expression:
        cursor, token = self.cursor, self.cursor.advance()
        if not cursor.at_any({"select", "with", "values"}) and not cursor.at_operator("("):
            raise cursor.not_supported(
                "brackets around joins are not supported in continuous queries",
                hint="Leave them out, or write a sub-query: (SELECT ... FROM a JOIN b ...) AS name.",
            )
        inner = self.query()
        cursor.expect_operator(")")
        return at(exp.Subquery(this=inner), token)

    def _table(self) -> exp.Table:
        cursor = self.cursor
        first = cursor.current
        parts = [self._alias(identifier(cursor), first)]
        while cursor.accept_operator("."):
            token = cursor.current
            parts.append(self._alias(label(cursor), token))
        if len(parts) > 3:
            text = ".".join(part.name for part in parts)
            raise SqlError(
                sqlstates.SYNTAX_ERROR,
                f"improper qualified name (too many dotted names): {text}",
                position=first.position,
            )
        return at(exp.Table(**dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))), first)

    def _source_alias(self, source: exp.Expression) -> None:
        cursor = self.cursor
        token = cursor.current
        if cursor.accept_word("as"):
            token = cursor.current
            name = self._alias(identifier(cursor), token)
        elif self._at_alias():
            cursor.advance()
            name = self._alias(token.text, token)
        else:
            return
        columns = self._column_names() if cursor.at_operator("(") else None
        source.set("alias", at(exp.TableAlias(this=name, columns=columns), token))

    # --- GROUP BY ---------------------------------------------------------------------------------------------------
    def _group(self) -> exp.Group:
        cursor = self.cursor
        token = cursor.advance()
        cursor.advance()
        if cursor.at_any({"distinct", "all"}):
            raise cursor.not_supported(
                f"GROUP BY {cursor.current.text.upper()} is not supported", hint="Leave the word out."
            )
        items = [self._grouping_element()]
        while cursor.accept_operator(","):
            items.append(self._grouping_element())
        return at(exp.Group(expressions=items), token)

    def _grouping_element(self) -> exp.Expression:
        """An expression, ``(a, b)``, ``()``, ROLLUP, CUBE or GROUPING SETS, which nests."""
        cursor = self.cursor
        token = cursor.current
        if cursor.at_word("grouping", "sets"):
            cursor.advance()
            cursor.advance()
            return at(exp.GroupingSets(expressions=self._grouping_list(self._grouping_element)), token)
        if cursor.at_any({"rollup", "cube"}) and cursor.peek().text == "(":
            kind = exp.Rollup if cursor.advance().text == "rollup" else exp.Cube
            return at(kind(expressions=self._grouping_list(self._grouping_item)), token)
        if cursor.at_operator("(") and cursor.peek().text == ")":
            cursor.advance()
            cursor.advance()
            return at(exp.Tuple(expressions=[]), token)
        return self._grouping_item()

    def _grouping_item(self) -> exp.Expression:
        token = self.cursor.current
        item = self.expressions.expression()
        return at(exp.Tuple(expressions=item.expressions), token) if item.meta.get("parenthesised") else item

    def _grouping_list(self, element: Callable[[], exp.Expression]) -> list[exp.Expression]:
        cursor = self.cursor
        cursor.expect_operator("(")
        items = [element()]
        while cursor.accept_operator(","):
            items.append(element())
        cursor.expect_operator(")")
        return items
