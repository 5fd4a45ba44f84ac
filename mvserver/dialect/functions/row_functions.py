"""Functions of rows in FROM that DuckDB has not, or not with ordinals: they become queries.

``json_to_recordset(d) AS x(a int)`` is a query over the elements of the document. With ORDINALITY a second list is
unnested beside the first; ``unnest`` of several arrays is one such list for each.
"""

from __future__ import annotations

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.pull_parser import CALLED

LISTS = {
    "json_array_elements": "_json_list", "jsonb_array_elements": "_json_list",
    "json_array_elements_text": "_json_list", "jsonb_array_elements_text": "_json_list",
    "json_object_keys": "_json_names", "jsonb_object_keys": "_json_names",
    "json_each": "_json_names", "jsonb_each": "_json_names",
    "json_each_text": "_json_names", "jsonb_each_text": "_json_names",
    "regexp_split_to_table": "_regexp_split", "string_to_table": "_string_to_array",
    "regexp_matches": "_regexp_rows", "jsonb_path_query": "_json_path",
}  # fmt: skip
"""By function the macro of a list of its rows, or of one that is as long."""
RECORDS = frozenset({"json_to_record", "jsonb_to_record", "json_to_recordset", "jsonb_to_recordset"})
_VALUE = frozenset({
    "json_array_elements", "jsonb_array_elements", "json_array_elements_text", "jsonb_array_elements_text",
})  # fmt: skip
"""Their column is ``value``, whatever the alias is."""
_PAIRS = {"json_each": "->", "jsonb_each": "->", "json_each_text": "->>", "jsonb_each_text": "->>"}


def as_query(table: exp.Table | exp.Unnest, name: str) -> exp.Subquery | None:
    """What stands for the function in FROM; None where it stays."""
    if isinstance(table, exp.Unnest):
        return _unnested(table) if len(table.expressions) > 1 else None
    if isinstance(table.this, exp.ExplodingGenerateSeries):
        return _integers(table) if all(map(_is_integer, table.this.iter_expressions())) else None
    if name in RECORDS:
        return _records(table, name)
    if name == "unnest" and len(table.this.expressions) > 1:
        return _unnested(table)
    if name == "generate_subscripts":
        return _column(table, name, [exp.cast(table.this.copy(), exp.DType.INT)])
    if not table.args.get("ordinality") or name not in LISTS:
        return None
    argument = exp.column(exp.to_identifier("_argument", quoted=True))
    call, hoisted = table.this.copy(), _arguments(table.this)[0]
    _arguments(call)[0].replace(argument)
    items: list[exp.Expr] = [call]
    if name in _PAIRS:
        items = [
            exp.alias_(_call("_unnested", _call("_json_names", argument)), "key", quoted=True),
            exp.alias_(_values(argument, name), "value", quoted=True),
        ]
    ordinals = _call("_ordinals", _call(LISTS[name], *_arguments(call)))
    query = _column(table, "value" if name in _VALUE else name, items, ordinals)
    inner = exp.Select(expressions=[exp.alias_(_of_type(hoisted, name), "_argument", quoted=True)])
    source = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("_arguments", quoted=True)))
    query.set("this", query.this.from_(source, copy=False))
    return query


def _of_type(argument: exp.Expr, name: str) -> exp.Expr:
    """A constant or parameter with the type that the function has for it."""
    if not isinstance(argument.unnest(), exp.Literal | exp.Parameter | exp.Null):
        return argument.copy()
    kind = (
        exp.DType.JSONB if name.startswith("jsonb") else exp.DType.JSON if name.startswith("json") else exp.DType.TEXT
    )
    return exp.cast(argument.copy(), kind)


def _values(argument: exp.Expr, name: str) -> exp.Expr:
    if _PAIRS[name] == "->>":
        return _call("_unnested", _call("_json_texts", argument))
    kind = exp.DType.JSONB if name.startswith("jsonb") else exp.DType.JSON
    return exp.cast(_call("_unnested", _call("_json_values", argument)), kind)


def _arguments(call: exp.Expr) -> list[exp.Expr]:
    return list(call.expressions) if isinstance(call, exp.Anonymous) else list(call.iter_expressions())


def _column(table: exp.Table, name: str, items: list[exp.Expr], ordinals: exp.Expr | None = None) -> exp.Subquery:
    """The query, under the alias of the function. The alias of a function with one column is that column's name too."""
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    if len(items) == 1:
        shown = name if name == "value" else alias.name
        items = [exp.alias_(items[0], shown, quoted=True)]
    if ordinals is not None:
        items = [*items, exp.alias_(exp.cast(ordinals, exp.DType.BIGINT), "ordinality", quoted=True)]
    return exp.Subquery(this=exp.Select(expressions=items), alias=alias.copy())


_INTEGER_MAX = 2**31 - 1


def _is_integer(node: exp.Expr) -> bool:
    bare = node.unnest()
    bare = bare.this if isinstance(bare, exp.Neg) else bare
    return isinstance(bare, exp.Literal) and bare.name.isdigit() and int(bare.name) <= _INTEGER_MAX


def _integers(table: exp.Table) -> exp.Subquery:
    """A series of integers, where DuckDB has bigints only."""
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier("generate_series", quoted=True))
    number, place = exp.to_identifier("_number", quoted=True), exp.to_identifier("_place", quoted=True)
    inner = exp.Table(this=table.this.copy(), ordinality=table.args.get("ordinality"))
    names = [number, place] if inner.args.get("ordinality") else [number]
    inner.set("alias", exp.TableAlias(this=exp.to_identifier("_series", quoted=True), columns=names))
    items = [exp.alias_(exp.cast(exp.column(number.copy()), exp.DType.INT), alias.name, quoted=True)]
    if len(names) > 1:
        items.append(exp.alias_(exp.column(place.copy()), "ordinality", quoted=True))
    return exp.Subquery(this=exp.select(*items, copy=False).from_(inner, copy=False), alias=alias.copy())


def _unnested(table: exp.Table | exp.Unnest) -> exp.Subquery:
    arrays = table.expressions if isinstance(table, exp.Unnest) else table.this.expressions
    offset = table.args.get("offset") if isinstance(table, exp.Unnest) else table.args.get("ordinality")
    holder = table.parent if isinstance(table.parent, exp.Lateral) else table
    alias = holder.args.get("alias") or exp.TableAlias(this=exp.to_identifier("unnest", quoted=True))
    alias = alias.copy()
    names = [each.name for each in alias.args.get("columns") or ()]
    items: list[exp.Expr] = []
    for at, array in enumerate(arrays):
        items.append(
            exp.alias_(exp.Explode(this=array.copy()), names[at] if at < len(names) else "unnest", quoted=True)
        )
    if offset:
        longest = exp.Greatest(
            this=_call("len", arrays[0]), expressions=[_call("len", each) for each in arrays[1:]], ignore_nulls=True
        )
        shown = names[len(arrays)] if len(names) > len(arrays) else "ordinality"
        shown = offset.name if isinstance(offset, exp.Identifier) else shown
        count = _call("_ordinals_to", longest)
        items.append(exp.alias_(exp.cast(count, exp.DType.BIGINT), shown, quoted=True))
    alias.set("columns", [exp.to_identifier(item.alias, quoted=True) for item in items])
    query = exp.Subquery(this=exp.Select(expressions=items))
    (query if holder is table else holder).set("alias", alias)
    return query


def _records(table: exp.Table, name: str) -> exp.Subquery:
    alias = table.args.get("alias")
    columns = alias.args.get("columns") or [] if alias is not None else []
    if not columns or not all(isinstance(column, exp.ColumnDef) for column in columns):
        start = table.this.meta.get(CALLED, ("", 0, -1))[2]
        raise SqlError(
            sqlstates.SYNTAX_ERROR,
            'a column definition list is required for functions returning "record"',
            hint=f"Write {name}(...) AS x(a integer, b text).",
            position=start + 1 if start >= 0 else None,
        )
    row = exp.column(exp.to_identifier("_record", quoted=True))
    items = [exp.alias_(_field(row, column), column.this.copy()) for column in columns]
    (document,) = table.this.expressions
    kind = exp.DType.JSONB if name.startswith("jsonb") else exp.DType.JSON
    if name.endswith("set"):
        elements: exp.Expr = exp.Anonymous(this=f"{kind.value.lower()}_array_elements", expressions=[document.copy()])
    else:
        elements = exp.cast(_call("_json_record", _document(document)), kind)
    inner = exp.Select(expressions=[exp.alias_(elements, "_record", quoted=True)])
    rows = exp.select(*items, copy=False).from_(
        exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("_records", quoted=True))), copy=False
    )
    assert alias is not None  # noqa: S101 - it has columns
    shown = exp.TableAlias(this=(alias.this or exp.to_identifier(name, quoted=True)).copy())
    return exp.Subquery(this=rows, alias=shown)


def _document(node: exp.Expr) -> exp.Expr:
    constant = isinstance(node.unnest(), exp.Literal | exp.Parameter | exp.Null)
    return exp.cast(node.copy(), exp.DType.JSON) if constant else node.copy()


def _field(row: exp.Expr, column: exp.ColumnDef) -> exp.Expr:
    """The member of the column's name, as its type."""
    kind = column.args["kind"]
    key = column.this.name if column.this.quoted else column.this.name.lower()
    path = exp.JSONPath(expressions=[exp.JSONPathRoot(), exp.JSONPathKey(this=key)])
    if kind.is_type(exp.DType.JSON, exp.DType.JSONB):
        return exp.cast(exp.JSONExtract(this=row.copy(), expression=path, only_json_types=True), kind.copy())
    if kind.this == exp.DType.ARRAY:
        found = exp.JSONExtract(this=row.copy(), expression=path, only_json_types=True)
        return exp.cast(_call("_json_text_array", exp.Paren(this=found)), kind.copy())
    text = exp.JSONExtractScalar(this=row.copy(), expression=path, only_json_types=True)
    return exp.Cast(this=exp.Paren(this=text), to=kind.copy())


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[part.copy() for part in arguments])
