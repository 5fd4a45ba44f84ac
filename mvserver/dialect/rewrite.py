"""PostgreSQL's dialect in DuckDB's words: functions, casts, identifiers and operators that sqlglot leaves different.

Each pass changes the query's tree in place, after names are resolved. What DuckDB already does like PostgreSQL is not
touched. What it lacks is either a macro (``pgcatalog.macros``) or rewritten here.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from mvserver import interrupts, sqlstates
from mvserver.compiler.patterns import similar_pattern
from mvserver.dialect import output_names, recursive, signals
from mvserver.dialect.clauses import check_clause
from mvserver.dialect.duck_text import refuse_repeating
from mvserver.dialect.functions import (
    character_columns,
    collected,
    filtered,
    jsonb,
    long_texts,
    overlapping,
    sorting,
    system_columns,
    time_zones,
)
from mvserver.dialect.functions.arrays import array_literal, check_shape, compared_array
from mvserver.dialect.functions.casts import SHOWN_AS, adapt_cast
from mvserver.dialect.functions.checked_functions import (
    adapt_constant,
    interval_constant,
    interval_quotient,
    interval_sum,
    least_integer,
)
from mvserver.dialect.functions.functions import adapt_function
from mvserver.dialect.functions.json_operators import adapt_operator
from mvserver.dialect.functions.pattern_arrays import any_pattern
from mvserver.dialect.functions.regular_expressions import replacement
from mvserver.dialect.marks import UNTYPED
from mvserver.dialect.parameters import constant_places
from mvserver.dialect.parameters.calls import call_of
from mvserver.dialect.pull_query import PullQuery
from mvserver.dialect.typing.operators import SYMBOLS
from mvserver.dialect.typing.row_values import compared_items, compared_rows
from mvserver.errors import SqlError
from mvserver.pgcatalog.session_functions import SessionFacts, replace_function
from mvserver.pgcatalog.static_data import procedure_columns
from mvserver.types import oids

Pass = Callable[[PullQuery], None]


def rewrite(query: PullQuery) -> None:
    for each in BY_TEXT:
        each(query)


# --- what is seen of the query as it was written ----------------------------------------------------------------------
def _name_outputs(query: PullQuery) -> None:
    output_names.name_outputs(query.tree)
    output_names.name_value_columns(query.tree)


def _take_signals(query: PullQuery) -> None:
    query.signalled = signals.take(query.tree, query.facts)


def _settle_constants(query: PullQuery) -> None:
    with query.rooted() as root:
        constant_places.settle(root)


def _quantifiers(query: PullQuery) -> None:
    """``ALL (array)`` and ``SOME (array)``, which the parser takes for functions."""
    for node in interrupts.asking(list(query.tree.find_all(exp.Anonymous))):
        if isinstance(node.parent, exp.Binary) and compared_array(node) is not None:
            whole = exp.All if node.name.lower() == "all" else exp.Any
            made = whole(this=node.expressions[0])
            made.meta.update(node.meta)
            node.replace(made)


def _recursive(query: PullQuery) -> None:
    recursive.settle(query.tree)


def _sorting(query: PullQuery) -> None:
    sorting.adapt(query.tree)


def _bytes(query: PullQuery) -> None:
    """Constants and parameters of functions that have no form for texts."""
    for node in interrupts.asking(list(query.tree.find_all(exp.Func))):
        called = call_of(node)
        if called is not None and called[0] in _OF_BYTES and called[1] and _is_open(called[1][0]):
            first = called[1][0]
            first.replace(exp.cast(first.copy(), "BYTEA", dialect="postgres"))


def _is_open(node: exp.Expr) -> bool:
    bare = node.unnest()
    return isinstance(bare, exp.Parameter) or (isinstance(bare, exp.Literal) and bool(bare.is_string))


_OF_BYTES = frozenset({"get_byte", "sha256"})


def _json_arrows(query: PullQuery) -> None:
    jsonb.arrows(query.tree)


def _note_types(query: PullQuery) -> None:
    """Those that DuckDB has no names for."""
    query.documents = jsonb.documents(query.tree)


def _json_changes(query: PullQuery) -> None:
    query.tree = jsonb.adapt(query.tree)


def _character_columns(query: PullQuery) -> None:
    character_columns.show(query.tree)


def _system_columns(query: PullQuery) -> None:
    with query.rooted() as root:
        system_columns.settle(root, query.facts.snapshot.generation)


# --- nodes of one kind after the other --------------------------------------------------------------------------------
def _catalog_vectors(query: PullQuery) -> None:
    """int2vector and oidvector are lists here, regproc an oid; clients read ``1 2`` and the function's name."""
    tree = query.tree
    if not query.reads_system:
        return
    for cast in interrupts.asking(list(tree.find_all(exp.Cast))):
        shown = _shown(cast.this) if cast.to.is_type(*exp.DataType.TEXT_TYPES) else None
        if shown is not None:
            cast.set("this", shown)
    if not isinstance(tree, exp.Select):
        return
    for item in tree.expressions:
        shown = _shown(item.unalias())
        if shown is not None and item.unalias().name.lower() not in _VECTORS:  # which the wire writes as such
            item.replace(exp.alias_(shown, item.alias_or_name, quoted=True))


def _nodes(query: PullQuery) -> None:
    catalog = query.reads_system  # there a text like ``'{0}'`` may mean an array
    with query.rooted() as root:
        for node in interrupts.asking(list(root.walk(bfs=False))):
            if node is root or _detached(node, root):
                continue
            replacement = _adapt_node(node, query.facts, catalog=catalog)
            if replacement is not None and replacement is not node:
                query.growth.replace(node, replacement)


def _casts(query: PullQuery) -> None:
    _replace_each(query, exp.Cast, lambda cast: adapt_cast(cast, query.facts))


def _rows(query: PullQuery) -> None:
    _replace_each(query, exp.Predicate, compared_items)
    _replace_each(query, exp.Predicate, compared_rows)


def _operators(query: PullQuery) -> None:
    _replace_each(query, exp.Binary, lambda node: _containment(node) or adapt_operator(node) or _unknown_array(node))


def _patterns(query: PullQuery) -> None:
    _replace_each(query, exp.Like, any_pattern)
    _replace_each(query, exp.ILike, any_pattern)
    _replace_each(query, exp.Like, _escaped_by_backslash)
    _replace_each(query, exp.ILike, _escaped_by_backslash)


def _collected(query: PullQuery) -> None:
    with query.rooted() as root:
        collected.rewrite(root)


def _filters(query: PullQuery) -> None:
    for node in interrupts.asking(list(query.tree.find_all(exp.Filter))):
        filtered.guard(node)


def _functions(query: PullQuery) -> None:
    _replace_each(query, exp.Func, lambda function: adapt_function(function, query.facts))


def _identifiers(query: PullQuery) -> None:
    for identifier in interrupts.asking(query.tree.find_all(exp.Identifier)):
        if not identifier.quoted:
            identifier.set("this", str(identifier.this).lower())
            identifier.set("quoted", True)


def _long_texts(query: PullQuery) -> None:
    long_texts.bound(query.tree)


BY_TEXT: tuple[Pass, ...] = (
    _name_outputs,
    _take_signals,
    _settle_constants,
    _quantifiers,
    _recursive,
    _sorting,
    _bytes,
    _json_arrows,
    _note_types,
    _json_changes,
    _character_columns,
    _system_columns,
    _catalog_vectors,
    _nodes,
    _casts,
    _rows,
    _operators,
    _patterns,
    _collected,
    _filters,
    _functions,
    _identifiers,
    _long_texts,
)
"""The rewrites that need no types, in their order; those of ``typed_passes`` follow."""


def _replace_each(query: PullQuery, kind: type[exp.Expr], replacing: Callable[[exp.Expr], exp.Expr | None]) -> None:
    """Inner ones first; None leaves a node as it is."""
    with query.rooted() as root:
        found = [node for node in reversed(list(root.walk(bfs=True))) if isinstance(node, kind)]
        for node in interrupts.asking(found):
            replacement = replacing(node)
            if replacement is not None and replacement is not node:
                query.growth.replace(node, replacement)


_VECTORS = frozenset({"indkey", "indoption", "indclass", "indcollation", "proargtypes", "tgattr", "partattrs"})


def _shown(column: exp.Expr) -> exp.Expr | None:
    """The text of such a column; None for all others."""
    if not isinstance(column, exp.Column):
        return None
    if column.name.lower() in _VECTORS:
        return exp.Anonymous(this="array_to_string", expressions=[column.copy(), exp.Literal.string(" ")])
    if column.name.lower() in procedure_columns():
        return exp.Anonymous(this="_regproc_out", expressions=[column.copy()])
    return None


def _detached(node: exp.Expr, root: exp.Expr) -> bool:
    while node.parent is not None:
        node = node.parent
    return node is not root


def _adapt_node(node: exp.Expr, facts: SessionFacts, *, catalog: bool) -> exp.Expr | None:
    if isinstance(node, exp.Column):
        node.set("db", None)
        node.set("catalog", None)
        if _is_whole_row(node):
            return exp.Column(this=node.args["table"].copy())
        return _bare_session_name(node, facts)
    if isinstance(node, exp.Dot) and isinstance(node.this, exp.Identifier) and isinstance(node.expression, exp.Func):
        return node.expression  # pg_catalog.f(x), information_schema._pg_expandarray(x)
    time_zones.adapt(node)
    if isinstance(node, exp.Operator):
        return _operator(node)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod | exp.Neg):
        _refuse_unknown(node)
    if isinstance(node, exp.Neg):
        return least_integer(node)
    if isinstance(node, exp.Literal | exp.BitString | exp.HexString):
        return adapt_constant(node)
    if isinstance(node, exp.Interval):
        return interval_constant(node)
    if isinstance(node, exp.Add | exp.Sub):
        return interval_sum(node)
    if isinstance(node, exp.Overlaps):
        return overlapping.call(node)
    if isinstance(node, exp.Div):
        node.set("typed", None)  # sqlglot would cast a quotient of integers to bigint
        return interval_quotient(node)
    if isinstance(node, exp.Array):
        check_shape(node)
    if isinstance(node, exp.Bracket):
        node.set("offset", 1)  # from where subscripts count in DuckDB, too
        if catalog and isinstance(node.this, exp.Column) and node.this.name.lower() in _VECTORS:
            for subscript in list(node.expressions):  # those of a vector count from 0
                subscript.replace(exp.Add(this=subscript.copy(), expression=exp.Literal.number(1)))
    if isinstance(node, exp.Limit | exp.Offset | exp.Select):
        check_clause(node)
    if isinstance(node, exp.RegexpReplace):
        _check_flags(node.args.get("modifiers"))
        new = node.args.get("replacement")
        if isinstance(new, exp.Literal) and new.is_string:
            new.set("this", replacement(node.expression, new.name))
    if isinstance(node, exp.PercentileCont | exp.PercentileDisc):
        _check_fraction(node.this)
    if isinstance(node, exp.Window) and isinstance(node.this, exp.Ntile):
        return exp.cast(node.copy(), "INT", dialect="duckdb")
    if isinstance(node, exp.Ordered) and isinstance(node.this.unnest(), exp.Parameter) and not sorting.is_value(node):
        node.set("this", exp.cast(node.this.unnest().copy(), "TEXT", dialect="duckdb"))  # a constant: no order
    if isinstance(node, exp.Group):
        for key in [key for key in node.expressions if isinstance(key.unnest(), exp.Parameter)]:
            key.replace(exp.cast(key.unnest().copy(), "TEXT", dialect="duckdb"))
    if isinstance(node, exp.Escape) and isinstance(node.this, exp.SimilarTo):
        return _similar(node.this, node.expression)
    if isinstance(node, exp.SimilarTo):
        return _similar(node, exp.Literal.string("\\"))
    if isinstance(node, exp.Collate):
        operand: exp.Expr = node.this
        return operand  # by code point, as all of ``allowed.DEFAULT_COLLATIONS`` are
    compared = compared_array(node)
    if isinstance(compared, exp.Array) and len(compared.expressions) == 1:
        query = compared.expressions[0].unnest()
        if isinstance(query, exp.Query):  # ARRAY(SELECT ...): DuckDB would compare with the whole array
            every = isinstance(node, exp.All) or node.name.lower() == "all"
            return (exp.All if every else exp.Any)(this=exp.Subquery(this=query))  # not a copy: still to be adapted
    array = None if compared is None else array_literal(compared)
    if compared is not None and array is not None:
        array.meta[UNTYPED] = True
        compared.replace(exp.Paren(this=array))
    if catalog and isinstance(node, exp.EQ | exp.NEQ | exp.Coalesce):
        for part in list(node.iter_expressions()):
            if isinstance(part, exp.Literal) and part.is_string and part.name in ("{}", "{0}"):
                part.set("this", part.name.replace("{", "[").replace("}", "]"))
    return None


def _is_whole_row(node: exp.Column) -> bool:
    """``f(t.*)`` is ``f(t)``."""
    called = isinstance(node.parent, exp.Func) and not isinstance(node.parent, exp.Count | exp.AnonymousAggFunc)
    return called and isinstance(node.this, exp.Star) and isinstance(node.args.get("table"), exp.Identifier)


def _bare_session_name(node: exp.Column, facts: SessionFacts) -> exp.Expr | None:
    """``current_catalog``, ``session_user`` and the like are written without brackets."""
    if node.table or not isinstance(node.this, exp.Identifier) or node.this.quoted:
        return None
    name = node.name.lower()
    if name in ("current_catalog", "current_user", "session_user", "current_role", "current_schema", "user"):
        value = replace_function(name, [], facts)
        if value is not None:
            value.meta[SHOWN_AS] = (oids.NAME, -1)
        listed = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
        return exp.alias_(value, name, quoted=True) if listed and value is not None else value
    return None


def _refuse_unknown(node: exp.Binary | exp.Neg) -> None:
    """``'1' + '2'`` may be numbers, dates, intervals …"""
    operands = [node.this.unnest()] if isinstance(node, exp.Neg) else [node.left.unnest(), node.right.unnest()]
    if not all(isinstance(each, exp.Null) or (isinstance(each, exp.Literal) and each.is_string) for each in operands):
        return
    symbol = SYMBOLS[type(node)][0]
    shown = f"{symbol} unknown" if isinstance(node, exp.Neg) else f"unknown {symbol} unknown"
    raise SqlError(
        sqlstates.AMBIGUOUS_FUNCTION,
        f"operator is not unique: {shown}",
        hint="Could not choose a best candidate operator. You might need to add explicit type casts.",
    )


_REGEXP_FLAGS = frozenset("bcegimnpqstwx")


def _check_flags(flags: exp.Expr | None) -> None:
    if isinstance(flags, exp.Literal) and flags.is_string:
        wrong = next((flag for flag in flags.name if flag not in _REGEXP_FLAGS), None)
        if wrong is not None:
            raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'invalid regular expression option: "{wrong}"')


def _check_fraction(fraction: exp.Expr) -> None:
    number = fraction.unnest()
    negative = isinstance(number, exp.Neg)
    constant = number.this.unnest() if negative else number
    if isinstance(constant, exp.Literal) and not constant.is_string and (float(constant.name) > 1 or negative):
        raise SqlError(
            sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
            f"percentile value {'-' if negative else ''}{constant.name} is not between 0 and 1",
        )


def _similar(node: exp.SimilarTo, escape: exp.Expr) -> exp.Expr:
    """DuckDB takes SQL's pattern for a regular expression; a constant one is translated."""
    pattern = node.expression
    if not all(isinstance(each, exp.Literal) and each.is_string for each in (pattern, escape)):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "SIMILAR TO is only supported with a constant pattern",
            hint="Use ~ with a regular expression.",
        )
    if len(escape.name) > 1:
        raise SqlError(
            sqlstates.INVALID_ESCAPE_SEQUENCE,
            "invalid escape string",
            hint="Escape string must be empty or one character.",
        )
    expression = exp.Literal.string(similar_pattern(pattern.name, escape.name))
    return exp.Anonymous(this="regexp_full_match", expressions=[node.this, expression])


def _containment(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.ArrayContainsAll):
        return _contains_all(node.this, node.expression)
    return _contains_all(node.expression, node.this) if isinstance(node, exp.ArrayContainedBy) else None


def _unknown_array(node: exp.Expr) -> exp.Expr | None:
    """A comparison with ANY or ALL of an array that is NULL is unknown; DuckDB takes it for an empty one."""
    array = compared_array(node.args["expression"]) if isinstance(node.args.get("expression"), exp.Expr) else None
    if array is None or isinstance(array, exp.Query) or isinstance(_without_casts(array), _NEVER_UNKNOWN):
        return None
    refuse_repeating(array)
    unknown = exp.If(this=exp.Is(this=array.copy(), expression=exp.Null()), true=exp.Null())
    return exp.Paren(this=exp.Case(ifs=[unknown], default=node.copy()))


_NEVER_UNKNOWN = (exp.Array, exp.Literal, exp.Parameter)
"""Arrays written out, and parameters, which look-ups by key have."""


def _without_casts(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    return node


def _contains_all(whole: exp.Expr, part: exp.Expr) -> exp.Expr:
    """A mark that ``typed_rewrites`` replaces: arrays contain by other rules than JSON documents."""
    return exp.Anonymous(this="_contains_all", expressions=[whole.copy(), part.copy()])


def _escaped_by_backslash(like: exp.Expr) -> exp.Expr | None:
    """PostgreSQL's LIKE has the backslash for its escape character, DuckDB's has none unless it is told."""
    if isinstance(like.parent, exp.Escape):
        return None
    pattern = like.args["expression"]
    bare = pattern.unnest()
    if isinstance(bare, exp.Any | exp.All) or (isinstance(bare, exp.Literal) and "\\" not in bare.name):
        return None
    return exp.Escape(this=like.copy(), expression=exp.Literal.string("\\"))


def _operator(node: exp.Operator) -> exp.Expr:
    """``a OPERATOR(pg_catalog.~) b``"""
    symbol = str(node.args.get("operator")).rpartition(".")[2].strip()
    left, right = node.this, node.expression
    simple: dict[str, type[exp.Binary]] = {
        "=": exp.EQ, "<>": exp.NEQ, "!=": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE, "+": exp.Add,
        "-": exp.Sub, "*": exp.Mul, "||": exp.DPipe, "~~": exp.Like, "~~*": exp.ILike,
    }  # fmt: skip
    if symbol in simple:
        return simple[symbol](this=left, expression=right)
    if symbol in ("~", "!~", "~*", "!~*"):
        match = (exp.RegexpILike if symbol.endswith("*") else exp.RegexpLike)(this=left, expression=right)
        return exp.Not(this=match) if symbol.startswith("!") else match
    raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"OPERATOR({node.args.get('operator')}) is not supported")
