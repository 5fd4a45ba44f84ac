"""The types of parameters that a client leaves out, as PostgreSQL infers them.

The query is read in the order in which PostgreSQL analyses it: FROM, the select list, WHERE, HAVING, ORDER BY,
GROUP BY, LIMIT. A parameter has the type that its first place asks for: that of the other operand, of the
function's argument, of the other branches. The tree is as it was written, except that names of tables are resolved.

The type of an expression is an oid, ``oids.UNKNOWN`` of a constant text or an open parameter, and None where it cannot
be told here: parameters beside it are left open, for the binding of the query to find.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

from sqlglot import exp

from mvserver import interrupts, sqlstates
from mvserver.dialect.functions.arrays import compared_array
from mvserver.dialect.functions.casts import target_of
from mvserver.dialect.joins import is_bracket, joined
from mvserver.dialect.parameters import signatures
from mvserver.dialect.parameters.calls import call_of
from mvserver.errors import SqlError
from mvserver.pgcatalog import static_data
from mvserver.types import oids

Type = int | None
Columns = Sequence[tuple[str, Type]]
Source = Mapping[str, Type] | None  # the columns of a relation by name; None where they are not known

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "||",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "=", exp.NullSafeNEQ: "=", exp.Like: "~~", exp.ILike: "~~*", exp.SimilarTo: "~",
    exp.RegexpLike: "~", exp.RegexpILike: "~*", exp.ArrayContainsAll: "@>", exp.ArrayContainedBy: "<@",
    exp.ArrayOverlaps: "&&", exp.JSONExtract: "->", exp.JSONExtractScalar: "->>", exp.JSONBExtract: "#>",
    exp.JSONBExtractScalar: "#>>", exp.JSONBContainsTopKey: "?", exp.JSONBContainsAnyTopKeys: "?|",
    exp.JSONBContainsAllTopKeys: "?&", exp.JSONBDeleteAtPath: "#-", exp.BitwiseAnd: "&", exp.BitwiseOr: "|",
    exp.BitwiseXor: "#", exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>",
}  # fmt: skip
_CAST_NAMES = {
    "double": oids.FLOAT8, "float": oids.FLOAT4, "varbinary": oids.BYTEA, "tinyint": oids.INT2, "string": oids.TEXT,
    "int": oids.INT4, "decimal": oids.NUMERIC, "char": oids.BPCHAR,
}  # fmt: skip


def infer(
    tree: exp.Expr,
    given: Sequence[int],
    columns: Callable[[exp.Expr], Columns | None],
    own_type: Callable[[exp.Expr], Type] = lambda target: None,
) -> dict[int, int]:
    """The oids of the parameters by number, the client's own among them. ``columns`` are those of a relation's node,
    ``own_type`` is that of a cast's target which users have made."""
    inference = _Inference({at: oid for at, oid in enumerate(given, start=1) if oid}, columns, own_type)
    inference.query(tree)
    return inference.found


class _Inference:
    def __init__(
        self,
        found: dict[int, int],
        columns: Callable[[exp.Expr], Columns | None],
        own_type: Callable[[exp.Expr], Type],
    ) -> None:
        self.found = found
        self._columns = columns
        self._own_type = own_type
        self._frames: list[list[tuple[str, Source]]] = []  # the relations in scope, the innermost query last
        self._ctes: dict[str, Columns | None] = {}

    # --- queries ------------------------------------------------------------------------------------------------------
    def query(self, query: exp.Expr) -> Columns | None:
        """Its columns, a constant text being text."""
        items = self._items(query)
        if items is None:
            return None
        return [(name, self._decided(node, oid)) for name, oid, node in items]

    def _items(self, query: exp.Expr) -> list[tuple[str, Type, exp.Expr | None]] | None:
        bare = query.unnest() if isinstance(query, exp.Subquery | exp.Paren) else query
        outer = self._ctes
        self._ctes = dict(outer)
        try:
            for node in (query, bare) if bare is not query else (bare,):
                self._with(node)
            if isinstance(bare, exp.SetOperation):
                return self._set(bare)
            if isinstance(bare, exp.Values):
                return [(name, oid, None) for name, oid in self._values(bare)]
            return self._select(bare) if isinstance(bare, exp.Select) else None
        finally:
            self._ctes = outer

    def _with(self, query: exp.Expr) -> None:
        clause = query.args.get("with_")
        if clause is None:
            return
        for cte in clause.expressions:
            name = _folded(cte.args["alias"].this)
            if clause.args.get("recursive"):
                self._ctes[name] = None
            self._ctes[name] = _renamed(self.query(cte.this), cte.args["alias"])

    def _set(self, union: exp.SetOperation) -> list[tuple[str, Type, exp.Expr | None]] | None:
        left, right = self._items(union.left), self._items(union.right)
        made: list[tuple[str, Type, exp.Expr | None]] = []
        for one, other in zip(left or (), right or (), strict=False):
            common = signatures.common_type((one[1], other[1]))
            for _, _, node in (one, other):
                self._take(node, common)
            made.append((one[0], common, None))
        self._tail(union)
        return made if left is not None and right is not None else None

    def _values(self, values: exp.Values) -> Columns:
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in values.expressions]
        typed = [[(item, self.type_of(item)) for item in row] for row in interrupts.asking(rows)]
        made: list[tuple[str, Type]] = []
        for number, column in enumerate(zip(*typed, strict=False), start=1):
            common = signatures.common_type([oid for _, oid in column])
            for item, _ in column:
                self._take(item, common)
            made.append((f"column{number}", common))
        return made

    def _select(self, select: exp.Select) -> list[tuple[str, Type, exp.Expr | None]]:
        self._frames.append([])
        try:
            start = select.args.get("from_")
            if start is not None:
                self._source(start.this)
            for join in (*(select.args.get("joins") or ()), *(select.args.get("laterals") or ())):
                self._join(join)
            items = self._listed(select)
            for key in ("where", "having", "qualify"):
                if select.args.get(key) is not None:
                    self._condition(select.args[key].this)
            if select.args.get("order") is not None:
                self._order(select.args["order"])
            for key in ("group", "distinct", "windows"):
                for part in _nodes(select.args.get(key)):
                    self._decided(part, self.type_of(part))
            self._tail(select)
            return items
        finally:
            self._frames.pop()

    def _listed(self, select: exp.Select) -> list[tuple[str, Type, exp.Expr | None]]:
        items: list[tuple[str, Type, exp.Expr | None]] = []
        for item in interrupts.asking(select.expressions):
            bare = item.unalias()
            if bare.is_star and not isinstance(bare, exp.Count):
                items += [(name, oid, None) for name, oid in self._starred(bare, select)]
            else:
                items.append((_folded(item.args["alias"]) if isinstance(item, exp.Alias) else item.output_name,
                              self.type_of(bare), bare))  # fmt: skip
        nested = isinstance(select.parent, exp.SetOperation) or (
            isinstance(select.parent, exp.Subquery) and isinstance(select.parent.parent, exp.SetOperation)
        )
        if nested:
            return items
        return [(name, self._decided(node, oid), node) for name, oid, node in items]

    def _starred(self, star: exp.Expr, select: exp.Select) -> Columns:
        table = star.table if isinstance(star, exp.Column) else ""
        start, sources = select.args.get("from_"), dict(self._frames[-1])

        def columns_of(source: exp.Expr) -> Columns | None:
            found = sources.get(source.alias_or_name.lower())
            return None if found is None else list(found.items())

        if not table and start is not None:
            found = joined(start.this, columns_of, select.args.get("joins") or ())
            if found is not None:
                return [(name, signatures.common_type(types)) for name, types in found]
        made: list[tuple[str, Type]] = []
        for alias, source in self._frames[-1]:
            if not table or alias == table.lower():
                made += list(source.items()) if source is not None else []
        return made

    def _tail(self, query: exp.Expr) -> None:
        if not isinstance(query, exp.Select) and query.args.get("order") is not None:
            self._order(query.args["order"])
        for key in ("offset", "limit"):
            clause = query.args.get(key)
            if clause is not None:
                count = clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.expression
                if isinstance(count, exp.Expr):
                    self._coerced(count, oids.INT8)

    def _order(self, order: exp.Expr) -> None:
        for key in order.expressions:
            part = key.this if isinstance(key, exp.Ordered) else key
            self._decided(part, self.type_of(part))

    # --- relations ----------------------------------------------------------------------------------------------------
    def _join(self, join: exp.Expr) -> None:
        if isinstance(join, exp.Join):
            self._source(join.this)
            if join.args.get("on") is not None:
                self._condition(join.args["on"])
        else:
            self._source(join)

    def _source(self, node: exp.Expr) -> None:
        inner = node.this if isinstance(node, exp.Lateral) else node
        alias = node.args.get("alias") or inner.args.get("alias")
        found = self._relation(inner)
        found = _renamed(found, alias)
        name = _folded(alias.this) if alias is not None and alias.this is not None else inner.alias_or_name.lower()
        self._frames[-1].append((name, None if found is None else dict(found)))
        for join in (*(node.args.get("joins") or ()), *(node.args.get("laterals") or ())):
            self._join(join)

    def _relation(self, node: exp.Expr) -> Columns | None:
        known = self._columns(node)
        if known is not None:
            return known
        if isinstance(node, exp.Values):
            return self._values(node)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Values):
            return self._values(node.this)
        if is_bracket(node):
            self._source(node.this)
            return None
        if isinstance(node, exp.Query):
            return self.query(node)
        call = node.this if isinstance(node, exp.Table) and isinstance(node.this, exp.Func) else node
        if isinstance(call, exp.Func):
            oid = self.type_of(call)
            name = (call_of(call) or (call.name.lower(), []))[0]
            return None if oid is None else [(node.alias or name, oid), *_ordinality(node)]
        if isinstance(node, exp.Table) and not node.args.get("db"):
            return self._ctes.get(node.name if node.this.quoted else node.name.lower())
        return None

    def _column(self, column: exp.Column) -> Type:
        name, table = _folded(column.this), _folded(column.args["table"]) if column.args.get("table") else ""
        for frame in reversed(self._frames):
            for alias, source in frame:
                if table and alias != table:
                    continue
                if source is None:
                    return None
                if name in source:
                    return source[name]
                if table:
                    return None
        return None

    # --- parameters ---------------------------------------------------------------------------------------------------
    def _take(self, node: exp.Expr | None, oid: Type) -> None:
        """The type that the place asks for, where the node is a parameter that has none."""
        bare = node.unnest() if node is not None else None
        if isinstance(bare, exp.Parameter) and bare.name.isdigit() and oid not in (None, oids.UNKNOWN, oids.ANY):
            assert oid is not None  # noqa: S101 - just seen
            self.found.setdefault(int(bare.name), oid)

    def _decided(self, node: exp.Expr | None, oid: Type) -> Type:
        """Text where nothing has asked for another type."""
        if oid != oids.UNKNOWN:
            return oid
        self._take(node, oids.TEXT)
        return oids.TEXT

    def _coerced(self, node: exp.Expr, oid: Type) -> None:
        self.type_of(node)
        self._take(node, oid)

    def _condition(self, node: exp.Expr) -> None:
        self._coerced(node, oids.BOOL)

    def _chosen(
        self, choose: Callable[[str, Sequence[int]], signatures.Signature | None], name: str, types: Sequence[int],
        parts: Sequence[exp.Expr | None],
    ) -> signatures.Signature | None:  # fmt: skip
        """42725 where several fit parameters whose types are not known; None where none does."""
        try:
            return choose(name, types)
        except signatures.AmbiguousError:
            if not any(part is not None and self._is_open(part) for part in parts):
                return None  # a query that has no parameters there is not judged here
        shown = ["unknown" if oid == oids.UNKNOWN else oids.type_name(oid) for oid in types]
        if choose is signatures.function:
            what, kind = f"function {name}({', '.join(shown)})", "function"
        else:
            what, kind = f"operator {' '.join([*shown[:-1], name, shown[-1]])}", "operator"
        raise SqlError(
            sqlstates.AMBIGUOUS_FUNCTION,
            f"{what} is not unique" if kind == "function" else f"operator is not unique: {what[9:]}",
            hint=f"Could not choose a best candidate {kind}. You might need to add explicit type casts.",
        )

    def _is_open(self, node: exp.Expr) -> bool:
        bare = node.unnest()
        return isinstance(bare, exp.Parameter) and bare.name.isdigit() and int(bare.name) not in self.found

    # --- expressions --------------------------------------------------------------------------------------------------
    def type_of(self, node: exp.Expr) -> Type:
        interrupts.check()
        bare = node.unnest()
        if isinstance(bare, exp.Parameter):
            return self.found.get(int(bare.name), oids.UNKNOWN) if bare.name.isdigit() else None
        for kinds, typed in _BY_KIND:
            if isinstance(bare, kinds):
                return typed(self, bare)
        if type(bare) in _BINARY:
            return self._operator(_BINARY[type(bare)], bare.this, bare.args["expression"], bare)
        call = call_of(bare)
        if call is not None:
            oid = self._call(*call, bare)
            for part in bare.iter_expressions():
                if isinstance(part, exp.Order):  # of an aggregate's values
                    self._order(part)
            return oid
        for part in bare.iter_expressions():
            self.type_of(part)
        return None

    def _constant(self, node: exp.Expr) -> Type:
        if isinstance(node, exp.Boolean):
            return oids.BOOL
        if isinstance(node, exp.Interval):
            return oids.INTERVAL
        if not isinstance(node, exp.Literal) or node.is_string:
            return oids.UNKNOWN
        if not node.name.isdigit():
            return oids.NUMERIC
        value = int(node.name)
        return oids.INT4 if value < 2**31 else oids.INT8 if value < 2**63 else oids.NUMERIC

    def _cast(self, node: exp.Expr) -> Type:
        assert isinstance(node, exp.Cast)  # noqa: S101 - chosen by type
        name, is_array = target_of(node)
        oid = _CAST_NAMES.get(name) or static_data.type_names().get(name)
        if oid is None:
            oid = self._own_type(node.to)
        elif is_array:
            oid = oids.ARRAY_OF.get(oid)
        if isinstance(node.this, exp.Array):
            element = oids.element_of(oid) if oid is not None else None
            for item in node.this.expressions:
                self._coerced(item, element)
        self._coerced(node.this, oid)
        return oid

    def _operator(self, symbol: str, left: exp.Expr, right: exp.Expr, node: exp.Expr | None = None) -> Type:
        array = compared_array(right)
        if array is not None:
            return self._compared_with_array(symbol, left, array)
        sides = [_row(left), _row(right)]
        if sides[0] is not None and sides[1] is not None:
            for one, other in zip(*sides, strict=False):
                self._operator(symbol, one, other)
            return oids.BOOL
        if isinstance(right.unnest(), exp.JSONPath):  # a constant step of ->
            kind = self.type_of(left)
            return kind if symbol == "->" else oids.TEXT
        found = self._applied(symbol, left, self.type_of(left), right, self.type_of(right))
        if found is None and isinstance(node, exp.Predicate):
            return oids.BOOL
        return found

    def _applied(self, symbol: str, left: exp.Expr | None, one: Type, right: exp.Expr | None, other: Type) -> Type:
        """The operator's result, the operands being taken as it asks for them."""
        if one is None or other is None:
            return None
        chosen = self._chosen(signatures.operator, symbol, (one, other), (left, right))
        if chosen is None:
            return None
        for part, oid, wanted in ((left, one, chosen.arguments[0]), (right, other, chosen.arguments[1])):
            if oid == oids.UNKNOWN:
                self._refuse_other(part, wanted)
            self._take(part, wanted)
        return chosen.result

    def _refuse_other(self, node: exp.Expr | None, oid: int) -> None:
        """42P08 for a parameter that was of no type when its expression was read, and has another one since."""
        bare = node.unnest() if node is not None else None
        found = self.found.get(int(bare.name)) if isinstance(bare, exp.Parameter) and bare.name.isdigit() else None
        if found is not None and oid not in (found, oids.ANY):
            raise SqlError(
                sqlstates.AMBIGUOUS_PARAMETER,
                f"inconsistent types deduced for parameter ${bare.name if bare is not None else ''}",
                detail=f"{oids.type_name(found)} versus {oids.type_name(oid)}",
            )

    def _compared_with_array(self, symbol: str, left: exp.Expr, array: exp.Expr) -> Type:
        one = self.type_of(left)
        if isinstance(array, exp.Query | exp.Subquery):
            columns = self.query(array)
            self._applied(symbol, left, one, None, columns[0][1] if columns else None)
            return oids.BOOL
        whole = self.type_of(array)
        element = whole if whole in (None, oids.UNKNOWN) else oids.element_of(whole or 0)
        known = one is not None and element is not None
        chosen = self._chosen(signatures.operator, symbol, (one or 0, element or 0), (left, array)) if known else None
        if chosen is not None:
            self._take(left, chosen.arguments[0])
            self._take(array, oids.ARRAY_OF.get(chosen.arguments[1]))
        return oids.BOOL

    def _between(self, node: exp.Expr) -> Type:
        for symbol, key in ((">=", "low"), ("<=", "high")):
            self._operator(symbol, node.this, node.args[key])
        return oids.BOOL

    def _in(self, node: exp.Expr) -> Type:
        query = node.args.get("query")
        rows = _row(node.this)
        if query is not None:
            columns = self.query(query) or ()
            for part, (_, oid) in zip(rows if rows is not None else [node.this], columns, strict=False):
                self._applied("=", part, self.type_of(part), None, oid)
            return oids.BOOL
        one = self.type_of(node.this) if rows is None else None
        firsts = [self.type_of(part) for part in rows or ()]  # they are read once
        items = node.expressions
        alone = [item for item in items if item.find(exp.Column) is None]
        if rows is None and len(alone) > 1:
            common = signatures.common_type([one, *(self.type_of(item) for item in alone)])
            for item in alone:
                self._take(item, common)
            self._applied("=", node.this, one, None, common)
            one = self.type_of(node.this)  # by all of them at once
            items = [item for item in items if item.find(exp.Column) is not None]
        for item in items:
            fields = _row(item)
            if rows is None:
                self._applied("=", node.this, one, item, self.type_of(item))
            elif fields is not None:
                for part, first, other in zip(rows, firsts, fields, strict=False):
                    self._applied("=", part, first, other, self.type_of(other))
        return oids.BOOL

    def _alike(self, node: exp.Expr) -> Type:
        parts = node.expressions if isinstance(node, exp.Array) else [node.this, *node.expressions]
        common = self._common(parts)
        if isinstance(node, exp.Array):
            return None if common is None else oids.ARRAY_OF.get(common)
        return common

    def _common(self, parts: Sequence[exp.Expr]) -> Type:
        common = signatures.common_type([self.type_of(part) for part in parts])
        for part in parts:
            self._take(part, common)
        return common

    def _case(self, node: exp.Expr) -> Type:
        branches = node.args["ifs"]
        if node.this is not None:
            tested = self._decided(node.this, self.type_of(node.this))
            for branch in branches:
                self._applied("=", None, tested, branch.this, self.type_of(branch.this))
        else:
            for branch in branches:
                self._condition(branch.this)
        default = node.args.get("default")
        return self._common([*([] if default is None else [default]), *(branch.args["true"] for branch in branches)])

    def _nullif(self, node: exp.Expr) -> Type:
        self._operator("=", node.this, node.expression)
        oid = self.type_of(node.this)
        return None if oid is None else self._decided(node.this, oid)

    def _logical(self, node: exp.Expr) -> Type:
        for part in node.iter_expressions():
            self._condition(part)
        return oids.BOOL

    def _is(self, node: exp.Expr) -> Type:
        self._coerced(node.this, oids.BOOL if isinstance(node.expression, exp.Boolean) else None)
        return oids.BOOL

    def _negative(self, node: exp.Expr) -> Type:
        oid = self.type_of(node.this)
        chosen = None if oid is None else self._chosen(signatures.operator, "-", (oid,), (node.this,))
        if chosen is None:
            return oid if oid != oids.UNKNOWN else None
        self._take(node.this, chosen.arguments[0])
        return chosen.result

    def _subscript(self, node: exp.Expr) -> Type:
        whole = self.type_of(node.this)
        sliced = False
        for part in node.expressions:
            bounds = [part.this, part.expression] if isinstance(part, exp.Slice) else [part]
            sliced = sliced or isinstance(part, exp.Slice)
            for bound in bounds:
                if isinstance(bound, exp.Expr):
                    self._coerced(bound, oids.INT4)
        return whole if sliced or whole is None else oids.element_of(whole)

    def _scalar(self, node: exp.Expr) -> Type:
        columns = self.query(node)
        return columns[0][1] if columns else None

    def _exists(self, node: exp.Expr) -> Type:
        self.query(node.this)
        return oids.BOOL

    def _clock(self, node: exp.Expr) -> Type:
        if isinstance(node, exp.CurrentDate):
            return oids.DATE
        return oids.TIMESTAMP if isinstance(node, exp.Localtimestamp) else oids.TIMESTAMPTZ

    # --- calls --------------------------------------------------------------------------------------------------------
    def _window(self, node: exp.Expr) -> Type:
        oid = self.type_of(node.this)
        for key in ("partition_by", "order"):
            for part in _nodes(node.args.get(key)):
                self.type_of(part)
        return oid

    def _filter(self, node: exp.Expr) -> Type:
        oid = self.type_of(node.this)
        self._condition(node.expression.this)
        return oid

    def _within(self, node: exp.Expr) -> Type:
        call, order = call_of(node.this), node.find(exp.Ordered)
        sorted_by = self.type_of(order.this) if order is not None else None
        if call is None:
            return None
        name, arguments = call
        if name in ("percentile_cont", "percentile_disc"):
            for argument in arguments:
                self._coerced(argument, oids.FLOAT8)
            if name == "percentile_cont" and order is not None and sorted_by == oids.UNKNOWN:
                self._take(order.this, oids.FLOAT8)
            interval = sorted_by == oids.INTERVAL
            return sorted_by if name == "percentile_disc" or interval else oids.FLOAT8
        for argument in arguments:
            self.type_of(argument)
        return sorted_by if name == "mode" else None

    def _call(self, name: str, arguments: Sequence[exp.Expr], node: exp.Expr) -> Type:
        if name == "row":
            for part in arguments:
                self._decided(part, self.type_of(part))
            return None
        if any(isinstance(part, exp.Kwarg) for part in arguments):
            return self._named_call(name, arguments)
        if name == "count":
            for part in arguments:
                if not part.is_star:
                    self.type_of(part)
            return oids.INT8
        types = [oids.UNKNOWN if isinstance(part, exp.Var) else self.type_of(part) for part in arguments]
        if name in ("regexp_replace",) and len(arguments) == 4 and types[3] == oids.UNKNOWN:
            types[3] = oids.TEXT
            self._take(arguments[3], oids.TEXT)
        known = [oid for oid in types if oid is not None]
        if len(known) < len(types):
            return None
        chosen = self._chosen(signatures.function, name, known, arguments)
        if chosen is None:
            return None
        for part, oid in zip(arguments, chosen.arguments, strict=True):
            self._take(part, oid)
        return chosen.result

    def _named_call(self, name: str, arguments: Sequence[exp.Expr]) -> Type:
        """``f(a, name => b)``"""
        given = [(part.this.name.lower(), part.expression) if isinstance(part, exp.Kwarg) else ("", part)
                 for part in arguments]  # fmt: skip
        for each in signatures.named_arguments(name):
            places = [each.names.index(label) if label in each.names else at if not label else None
                      for at, (label, _) in enumerate(given)]  # fmt: skip
            if None not in places and all(at is not None and at < len(each.arguments) for at in places):
                for at, (_, part) in zip(places, given, strict=True):
                    self._coerced(part, each.arguments[at or 0])
                return each.result
        return None


_BY_KIND: Sequence[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], Callable[[_Inference, exp.Expr], Type]]] = (
    (exp.Column, lambda found, node: found._column(node) if isinstance(node, exp.Column) else None),
    ((exp.Literal, exp.Null, exp.Boolean, exp.Interval), _Inference._constant),
    (exp.Cast, _Inference._cast),
    ((exp.Alias, exp.Collate), lambda found, node: found.type_of(node.this)),
    ((exp.And, exp.Or, exp.Xor, exp.Not), _Inference._logical),
    (exp.Between, _Inference._between),
    (exp.In, _Inference._in),
    (exp.Case, _Inference._case),
    ((exp.Coalesce, exp.Greatest, exp.Least, exp.Array), _Inference._alike),
    (exp.Nullif, _Inference._nullif),
    (exp.Is, _Inference._is),
    (exp.Neg, _Inference._negative),
    (exp.Bracket, _Inference._subscript),
    (exp.Exists, _Inference._exists),
    ((exp.Subquery, exp.Query), _Inference._scalar),
    ((exp.CurrentTimestamp, exp.CurrentDate, exp.Localtimestamp), _Inference._clock),
    (exp.Window, _Inference._window),
    (exp.Filter, _Inference._filter),
    (exp.WithinGroup, _Inference._within),
    (exp.Escape, lambda found, node: found.type_of(node.this)),
    (exp.Ordered, lambda found, node: found.type_of(node.this)),
)


# --- parts of the tree ------------------------------------------------------------------------------------------------
def _nodes(value: object) -> list[exp.Expr]:
    if isinstance(value, list):
        return value
    if isinstance(value, exp.Order | exp.Group | exp.Tuple):
        return list(value.expressions)
    return [value] if isinstance(value, exp.Expr) else []


def _row(node: exp.Expr) -> list[exp.Expr] | None:
    bare = node.unnest()
    if isinstance(bare, exp.Tuple) or (isinstance(bare, exp.Anonymous) and bare.name.lower() == "row"):
        return list(bare.expressions)
    return None


def _folded(node: exp.Expr) -> str:
    quoted = isinstance(node, exp.Identifier) and bool(node.quoted)
    return str(node.name) if quoted else str(node.name).lower()


def _ordinality(node: exp.Expr) -> Columns:
    """The column of WITH ORDINALITY."""
    if isinstance(node, exp.Unnest) and isinstance(node.args.get("offset"), exp.Identifier):
        return [(_folded(node.args["offset"]), oids.INT8)]
    return [("ordinality", oids.INT8)] if node.args.get("ordinality") else []


def _renamed(columns: Columns | None, alias: exp.Expr | None) -> Columns | None:
    """With the names of ``AS alias (names)``."""
    names = [_folded(name) for name in alias.args.get("columns") or ()] if alias is not None else []
    if columns is None or not names:
        return columns
    return [
        (name if name is not None else column[0], column[1])
        for column, name in zip_longest(columns, names[: len(columns)])
        if column is not None
    ]
