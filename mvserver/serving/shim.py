"""PostgreSQL's dialect in DuckDB's words: functions, casts, identifiers and operators that sqlglot leaves different.

Works on the tree in place, after names are resolved. What DuckDB already does like PostgreSQL is not touched; what it
lacks is either a macro (``pgcatalog.macros``) or rewritten here.
"""

from __future__ import annotations

import re

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgcatalog.session_functions import REG_TYPES, SessionFacts, replace_function, replace_reg_cast
from mvserver.serving.guard import function_name

_TEXT_TYPES = frozenset({"text", "name", "varchar", "char", "bpchar", "cstring", '"char"', "citext"})
_TYPE_ALIASES: dict[str, str] = {
    "oid": "UINTEGER", "xid": "UINTEGER", "cid": "UINTEGER", "name": "TEXT", "cstring": "TEXT", "text": "TEXT",
    "varchar": "TEXT", "char": "TEXT", "bpchar": "TEXT", "int2": "SMALLINT", "int4": "INT", "int8": "BIGINT",
    "bool": "BOOLEAN", "float4": "FLOAT", "float8": "DOUBLE", "numeric": "DECIMAL(38, 10)", "jsonb": "JSON",
    "json": "JSON", "bytea": "BLOB", "date": "DATE", "time": "TIME", "timestamp": "TIMESTAMP", "interval": "INTERVAL",
    "timestamptz": "TIMESTAMPTZ", "uuid": "UUID", "inet": "TEXT", "cidr": "TEXT", "macaddr": "TEXT", "xml": "TEXT",
    "aclitem": "TEXT", "pg_node_tree": "TEXT", "int2vector": "SMALLINT[]", "oidvector": "UINTEGER[]", "money":
    "DECIMAL(38, 2)", "unknown": "TEXT", "tid": "TEXT", "pg_lsn": "TEXT", "anyarray": "TEXT", "integer": "INT",
    "sql_identifier": "TEXT", "character_data": "TEXT", "cardinal_number": "INT", "yes_or_no": "TEXT",
}  # fmt: skip
_DEFAULT_COLLATIONS = frozenset({"default", "c", "posix", "ucs_basic"})
_RENAMED: dict[str, str] = {
    "json_build_object": "json_object", "jsonb_build_object": "json_object", "json_build_array": "json_array",
    "jsonb_build_array": "json_array", "json_agg": "json_group_array", "jsonb_agg": "json_group_array",
    "json_object_agg": "json_group_object", "jsonb_object_agg": "json_group_object", "jsonb_typeof": "json_typeof",
    "json_extract_path_text": "json_extract_string", "jsonb_extract_path_text": "json_extract_string",
    "jsonb_array_length": "json_array_length", "jsonb_array_elements": "json_array_elements",
    "row_to_json": "to_json", "string_to_array": "string_split", "every": "bool_and",     "array_length": "array_length",
    "gen_random_uuid": "uuid", "uuid_generate_v4": "uuid", "pg_typeof": "typeof", "date_part": "date_part",
}  # fmt: skip
_ARRAY_TEXT = re.compile(r"^\{.*\}$", re.S)


def adapt(tree: exp.Expr, facts: SessionFacts, *, catalog: bool) -> exp.Expr:
    """``catalog``: the query reads catalog relations, where text like ``'{0}'`` may mean an array."""
    if catalog:
        _vectors_as_text(tree)
    root = exp.Paren(this=tree)  # so that the root itself may be replaced
    for node in list(root.walk(bfs=False)):
        if node is root or _detached(node, root):
            continue
        replacement = _adapt_node(node, facts, catalog=catalog)
        if replacement is not None and replacement is not node:
            node.replace(replacement)
    for cast in _inner_first(root, exp.Cast):
        replacement = _adapt_cast(cast, facts)
        if replacement is not cast:
            cast.replace(replacement)
    for function in _inner_first(root, exp.Func):
        replacement = _adapt_function(function, facts)
        if replacement is not None:
            function.replace(replacement)
    for identifier in root.find_all(exp.Identifier):
        if not identifier.quoted:
            identifier.set("this", str(identifier.this).lower())
            identifier.set("quoted", True)
    result: exp.Expr = root.this.pop()
    return result


_VECTORS = frozenset({"indkey", "indoption", "indclass", "indcollation", "proargtypes", "tgattr", "partattrs"})


def _vectors_as_text(tree: exp.Expr) -> None:
    """int2vector and oidvector are lists here; clients read them as ``1 2``."""
    if not isinstance(tree, exp.Select):
        return
    for item in tree.expressions:
        column = item.unalias()
        if isinstance(column, exp.Column) and column.name.lower() in _VECTORS:
            text = exp.Anonymous(this="array_to_string", expressions=[column.copy(), exp.Literal.string(" ")])
            item.replace(exp.alias_(text, item.alias_or_name, quoted=True))


def _detached(node: exp.Expr, root: exp.Expr) -> bool:
    while node.parent is not None:
        node = node.parent
    return node is not root


def _inner_first(root: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    return [node for node in reversed(list(root.walk(bfs=True))) if isinstance(node, kind)]


def _adapt_node(node: exp.Expr, facts: SessionFacts, *, catalog: bool) -> exp.Expr | None:
    if isinstance(node, exp.Column):
        node.set("db", None)
        node.set("catalog", None)
        return _bare_session_name(node, facts)
    if isinstance(node, exp.Dot) and isinstance(node.this, exp.Identifier) and isinstance(node.expression, exp.Func):
        return node.expression  # pg_catalog.f(x), information_schema._pg_expandarray(x)
    if isinstance(node, exp.Operator):
        return _operator(node)
    if isinstance(node, exp.Collate):
        name = node.expression.name.lower()
        if name in _DEFAULT_COLLATIONS:
            return node.this
    if isinstance(node, exp.Any | exp.All):
        inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
        array = _array_literal(inner)
        if array is not None:
            node.set("this", exp.Paren(this=array))
    if catalog and isinstance(node, exp.EQ | exp.NEQ | exp.Coalesce):
        for part in list(node.iter_expressions()):
            if isinstance(part, exp.Literal) and part.is_string and part.name in ("{}", "{0}"):
                part.set("this", part.name.replace("{", "[").replace("}", "]"))
    return None


def _bare_session_name(node: exp.Column, facts: SessionFacts) -> exp.Expr | None:
    """``current_catalog``, ``session_user`` and the like are written without brackets."""
    if node.table or not isinstance(node.this, exp.Identifier) or node.this.quoted:
        return None
    name = node.name.lower()
    if name in ("current_catalog", "current_user", "session_user", "current_role", "current_schema", "user"):
        return replace_function(name, [], facts)
    return None


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


def _array_literal(node: exp.Expr | None) -> exp.Expr | None:
    """``'{a,b}'`` as an array, where its place says that it is one."""
    if not (isinstance(node, exp.Literal) and node.is_string and _ARRAY_TEXT.match(node.name)):
        return None
    items = [exp.Literal.string(item) for item in split_array(node.name) if item is not None]
    return exp.Array(expressions=items)


def split_array(text: str) -> list[str | None]:
    """The elements of a one-dimensional array in PostgreSQL's text form."""
    inner = text[1:-1]
    if not inner.strip():
        return []
    items: list[str | None] = []
    for match in re.finditer(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,]*))\s*(?:,|$)', inner):
        if match.start() == len(inner) and inner[-1:] != ",":
            break
        if match[1] is not None:
            items.append(re.sub(r"\\(.)", r"\1", match[1]))
        else:
            plain = match[2].strip()
            items.append(None if plain.upper() == "NULL" else plain)
    return items


# --- casts ----------------------------------------------------------------------------------------------------------
def _target(cast: exp.Cast) -> tuple[str, bool]:
    """The target's lower-case name without its schema, and whether it is an array of it."""
    to = cast.to
    if isinstance(to, exp.DataType):
        if to.this == exp.DataType.Type.ARRAY and to.expressions:
            inner = to.expressions[0]
            return _type_text(inner), True
        text = _type_text(to)
        return (text[:-2], True) if text.endswith("[]") else (text, False)
    return str(to.name or to.this).lower(), False


def _type_text(to: exp.Expr) -> str:
    if isinstance(to, exp.DataType):
        if to.this == exp.DataType.Type.USERDEFINED:
            kind = to.args.get("kind")
            shown = kind.sql() if isinstance(kind, exp.Expr) else str(kind)
            return shown.rpartition(".")[2].strip('"').lower()
        return str(to.this.value if hasattr(to.this, "value") else to.this).lower()
    return str(to.name or to.this).lower()


def _adapt_cast(cast: exp.Expr, facts: SessionFacts) -> exp.Expr:
    assert isinstance(cast, exp.Cast)  # noqa: S101 - chosen by type
    name, is_array = _target(cast)
    if name in REG_TYPES and not is_array:
        outer = cast.parent
        while isinstance(outer, exp.Paren):
            outer = outer.parent
        shown = isinstance(outer, exp.Cast) and _target(outer)[0] in _TEXT_TYPES
        shown = shown or (isinstance(outer, exp.Select | exp.Alias) and cast.arg_key in ("expressions", "this"))
        shown = shown or isinstance(outer, exp.DPipe | exp.Concat)
        return replace_reg_cast(name, cast.this, facts, as_text=shown)
    if is_array:
        literal = _array_literal(cast.this)
        if literal is not None:
            cast.set("this", literal)
    if name in ("numeric", "decimal") and not is_array and not getattr(cast.to, "expressions", None):
        cast.set("to", exp.DataType.build(_plain_numeric(cast.this), dialect="duckdb"))
        return cast
    if name in ("boolean", "bool") and isinstance(cast.this, exp.Literal) and cast.this.is_string:
        cast.this.set("this", _BOOLEAN_TEXTS.get(cast.this.name.strip().lower(), cast.this.name))
    alias = _TYPE_ALIASES.get(name)
    target = cast.to.expressions[0] if is_array and cast.to.expressions else cast.to
    plain = isinstance(target, exp.DataType) and target.this != exp.DataType.Type.USERDEFINED
    if alias is not None and (
        not plain or name in ("jsonb", "name", "inet", "money", "xml", "char", "varchar", "bpchar")
    ):
        if plain and cast.to.expressions and name in ("char", "varchar", "bpchar"):
            return _bounded_text(cast)
        cast.set("to", exp.DataType.build(alias + ("[]" if is_array else ""), dialect="duckdb"))
    return cast


_BOOLEAN_TEXTS = {"on": "true", "off": "false", "yes": "true", "no": "false", "y": "true", "n": "false"}
_NUMERIC_SCALE = 10  # of numeric without a scale; PostgreSQL's has no bound, DuckDB's has 38 digits in all


def _plain_numeric(operand: exp.Expr) -> str:
    """``x::numeric``: a constant keeps its own digits."""
    if isinstance(operand, exp.Literal) and re.fullmatch(r"\s*[-+]?\d*\.?\d*\s*", operand.name):
        digits = operand.name.strip().partition(".")[2]
        return f"DECIMAL(38, {len(digits)})"
    return f"DECIMAL(38, {_NUMERIC_SCALE})"


def _bounded_text(cast: exp.Cast) -> exp.Expr:
    """An explicit cast to varchar(n) cuts, as in PostgreSQL; DuckDB ignores n."""
    size = cast.to.expressions[0]
    length = size.this if isinstance(size, exp.DataTypeParam) else size
    text = exp.cast(cast.this, "TEXT", dialect="duckdb")
    return exp.Anonymous(this="left", expressions=[text, length.copy()])


# --- functions ------------------------------------------------------------------------------------------------------
def _adapt_function(node: exp.Expr, facts: SessionFacts) -> exp.Expr | None:
    assert isinstance(node, exp.Func)  # noqa: S101 - chosen by type
    name = function_name(node)
    replaced = replace_function(name, _arguments(node), facts)
    if replaced is not None:
        return replaced
    if isinstance(node, exp.Anonymous):
        if name == "to_char" and len(node.expressions) == 2:
            return _to_char(node.expressions[0], node.expressions[1])
        if name == "array_position":
            return exp.Anonymous(this="list_position", expressions=node.expressions)
        if name in _RENAMED:
            node.set("this", _RENAMED[name])
        else:
            node.set("this", name)
    if isinstance(node, _INT4_FUNCTIONS):
        return exp.cast(node.copy(), "INT", dialect="duckdb") if not isinstance(node.parent, exp.Cast) else None
    if isinstance(node, exp.Extract):
        return _extract(node)
    if isinstance(node, exp.Encode | exp.Decode):
        return _encoding(node)
    if isinstance(node, exp.Hex):
        return exp.Anonymous(this="to_hex", expressions=[node.this.copy()])
    if isinstance(node, exp.Format):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED, "function format is not supported", hint="Use || or concat instead."
        )
    if isinstance(node, exp.StrToTime):
        return exp.Cast(this=node.copy(), to=exp.DataType.build("TIMESTAMPTZ", dialect="duckdb"))
    if isinstance(node, exp.CurrentTimestamp):
        return exp.Anonymous(this="now", expressions=[])
    if isinstance(node, exp.CurrentDate):
        return exp.cast(exp.Anonymous(this="now", expressions=[]), "DATE", dialect="duckdb")
    if isinstance(node, exp.ToChar | exp.TimeToStr):
        return _to_char(node.this, node.args.get("format"))
    return None


_INT4_FUNCTIONS = (exp.Length, exp.StrPosition, exp.ArraySize, exp.BitLength)


def _extract(node: exp.Extract) -> exp.Expr:
    """PostgreSQL's extract is numeric with the fraction of the second; date_part is double. Both become numeric."""
    part = node.this.name.lower()
    if part in ("epoch", "second", "seconds"):
        whole = "epoch" if part == "epoch" else "second"
        value: exp.Expr = exp.Anonymous(this=f"_extract_{whole}", expressions=[node.expression.copy()])
        return exp.cast(value, "DECIMAL(38, 6)", dialect="duckdb")
    return exp.cast(node.copy(), "DECIMAL(38, 0)", dialect="duckdb") if not isinstance(node.parent, exp.Cast) else node


def _encoding(node: exp.Encode | exp.Decode) -> exp.Expr:
    """encode(bytea, 'hex' | 'base64') and decode(text, ...), which sqlglot takes for character sets."""
    charset = node.args.get("charset")
    form = charset.name.lower() if isinstance(charset, exp.Expr) else ""
    names = {
        (True, "hex"): "_encode_hex", (True, "base64"): "to_base64", (False, "hex"): "unhex",
        (False, "base64"): "from_base64",
    }  # fmt: skip
    name = names.get((isinstance(node, exp.Encode), form))
    if name is None:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'unrecognized encoding: "{form}"')
    return exp.Anonymous(this=name, expressions=[node.this.copy()])


def _arguments(node: exp.Func) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [part for part in node.iter_expressions() if isinstance(part, exp.Expr)]


_SQLGLOT_TIME = {
    "%-d": "FMDD", "%-j": "FMDDD", "%-I": "FMHH12", "%-H": "FMHH24", "%-M": "FMMI", "%-m": "FMMM", "%-S": "FMSS",
    "%u": "D", "%d": "DD", "%j": "DDD", "%I": "HH12", "%H": "HH24", "%M": "MI", "%m": "MM", "%z": "OF", "%S": "SS",
    "%A": "TMDay", "%a": "TMDy", "%b": "TMMon", "%B": "TMMonth", "%Z": "TZ", "%f": "US", "%U": "WW", "%y": "YY",
    "%Y": "YYYY",
}  # fmt: skip
"""What sqlglot makes of a pattern, which is wrong for ``Month`` and ``Day``, back to what was written."""

_TO_CHAR = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d", "HH24": "%H", "HH12": "%I", "HH": "%I", "MI": "%M", "SS": "%S",
    "MS": "%g", "US": "%f", "MONTH": "%B", "MON": "%b", "DAY": "%A", "DY": "%a", "DDD": "%j", "AM": "%p", "PM": "%p",
    "IW": "%V", "IYYY": "%G", "ID": "%u", "TZ": "%Z", "D": "%w",
}  # fmt: skip
_TO_CHAR_TOKENS = re.compile("|".join(sorted(_TO_CHAR, key=len, reverse=True)) + r'|"[^"]*"', re.I)


def _to_char(value: exp.Expr, pattern: exp.Expr | None) -> exp.Expr:
    """to_char of times by strftime. Patterns of numbers (9, 0) are not supported."""
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "to_char is supported with a constant pattern only",
        )
    text = pattern.name
    for code, token in _SQLGLOT_TIME.items():
        text = text.replace(code, token)
    if re.search(r"[90]", text) and not re.search(r"[YMDHS]", text, re.I):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "to_char of numbers is not supported",
            hint="Use round(x, n)::text, or format the number in the client.",
        )

    def one(match: re.Match[str]) -> str:
        token = match[0]
        return token[1:-1].replace("%", "%%") if token.startswith('"') else _TO_CHAR[token.upper()]

    converted = _TO_CHAR_TOKENS.sub(one, text.replace("FM", "").replace("TM", ""))
    return exp.Anonymous(this="_to_char", expressions=[value.copy(), exp.Literal.string(converted)])
