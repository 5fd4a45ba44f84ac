"""PostgreSQL's operators of JSON documents that DuckDB spells otherwise or has not: ``#>``, ``#>>``, ``?``, ``?|``,
``?&``, and ``@>`` with a constant document on its right.

DuckDB's json_contains looks at every depth and so is not ``@>``; here the constant is taken apart into the tests that
PostgreSQL's meaning asks for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect.functions.arrays import split_array
from mvserver.dialect.functions.checked_functions import is_null
from mvserver.errors import SqlError

OF_JSONB = "of_jsonb"
"""In the metadata of a ``->>``: the document is of type jsonb."""

TEXTS = frozenset({"_json_text", "_jsonb_text"})
"""Macros that give what ``->>`` shows."""


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def pointer(keys: list[str]) -> str:
    """A JSON pointer: a step of it is an object's key or an array's index, whichever there is."""
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)


def _constant_keys(node: exp.Expr, operator: str) -> list[str]:
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    keys: list[str | None] | None = None
    if isinstance(node, exp.Literal) and node.is_string and node.name.startswith("{"):
        keys = split_array(node.name)
    elif isinstance(node, exp.Array) and all(isinstance(item, exp.Literal) for item in node.expressions):
        keys = [item.name for item in node.expressions]
    if keys is None or None in keys:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED, f"the operator {operator} is supported with a constant array only"
        )
    return [key for key in keys if key is not None]


def adapt_operator(node: exp.Expr) -> exp.Expr | None:
    """What stands for the operator; None where it is none of these."""
    if isinstance(node, exp.JSONBExtract):
        return _at(node, _constant_keys(node.expression, "#>"), as_text=False)
    if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar) and _has_empty_key(node.expression):
        name = "json_extract" if isinstance(node, exp.JSONExtract) else "json_extract_string"
        return _call(name, document(node.this), _text("/"))
    if isinstance(node, exp.JSONExtractScalar):
        return _text_of(node)
    if isinstance(node, exp.JSONBExtractScalar):
        return _at(node, _constant_keys(node.expression, "#>>"), as_text=True)
    if isinstance(node, exp.JSONBContainsTopKey):
        return _has_key(node.this, node.expression)
    if isinstance(node, exp.JSONBContainsAnyTopKeys | exp.JSONBContainsAllTopKeys):
        every = isinstance(node, exp.JSONBContainsAllTopKeys)
        keys = _constant_keys(node.expression, "?&" if every else "?|")
        tests = [_has_key(node.this, _text(key)) for key in keys]
        return exp.Paren(this=exp.and_(*tests) if every else exp.or_(*tests)) if tests else exp.Boolean(this=every)
    if isinstance(node, exp.DPipe) and _joins_documents(node):
        return _call("_json_joined", document(node.left), document(node.right))
    return None


def _joins_documents(node: exp.DPipe) -> bool:
    """As the text says. Of constants DuckDB would otherwise join the texts, and read them, while it plans."""
    sides = (node.left.unnest(), node.right.unnest())
    known = [
        (isinstance(side, exp.Cast) and side.to.is_type(exp.DType.JSON, exp.DType.JSONB))
        or (isinstance(side, exp.Anonymous) and side.name == "_json_joined")
        for side in sides
    ]
    constants = [isinstance(side, exp.Literal) and side.is_string for side in sides]
    return any(known) and all(is_known or is_text for is_known, is_text in zip(known, constants, strict=True))


def _at(node: exp.Expr, keys: Sequence[str], *, as_text: bool) -> exp.Expr:
    if any(map(_FROM_THE_END.fullmatch, keys)):
        return at_path("jsonb_extract_path_text" if as_text else "jsonb_extract_path", [node.this, *map(_text, keys)])
    return _call("json_extract_string" if as_text else "json_extract", document(node.this), _text(pointer(list(keys))))


JSON_PATHS = frozenset({
    "json_extract_path", "json_extract_path_text", "jsonb_extract_path", "jsonb_extract_path_text",
})  # fmt: skip
_FROM_THE_END = re.compile(r"-\d+")


def at_path(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    """``json_extract_path(document, key, ...)``: a key is a member's name or an item's place. Constant keys are one
    pointer; NULL among them leads to NULL."""
    whole, *keys = arguments
    as_text = name.endswith("_text")
    if any(is_null(key) for key in keys):
        return exp.cast(exp.null(), "TEXT" if as_text else "JSON", dialect="duckdb")
    texts = [key.name for key in keys if isinstance(key, exp.Literal) and key.is_string]
    if len(texts) == len(keys) and not any(map(_FROM_THE_END.fullmatch, texts)):
        place = _text(pointer(texts))
        if not as_text:
            return _call("json_extract", document(whole), place)
        return _call("_jsonb_text" if name.startswith("jsonb") else "_json_text", document(whole), place, place.copy())
    found = document(whole)
    for key in keys:
        found = _call("_json_at", found, exp.cast(key.copy(), "TEXT", dialect="duckdb"))
    return _call("json_extract_string", found, _text("")) if as_text else found


def _has_empty_key(path: exp.Expr | None) -> bool:
    """DuckDB's paths have no such key; its pointers have."""
    return isinstance(path, exp.JSONPath) and any(
        isinstance(step, exp.JSONPathKey) and step.this == "" for step in path.expressions
    )


def _text_of(node: exp.JSONExtractScalar) -> exp.Expr | None:
    """``d -> 'a' ->> 'b'`` by one path from the document, since each step takes numbers out of it as doubles. Where a
    step is no constant, all are left as they are. The document stands once in what is made, or nested operators would
    double it at each level."""
    steps: list[exp.Expr] = []
    whole: exp.Expr = node
    while isinstance(whole, exp.JSONExtract | exp.JSONExtractScalar):
        if whole is not node and isinstance(whole, exp.JSONExtractScalar):
            break
        path = whole.expression
        if not isinstance(path, exp.JSONPath) or not all(
            isinstance(step, exp.JSONPathRoot | exp.JSONPathKey | exp.JSONPathSubscript) for step in path.expressions
        ):
            return None
        steps[:0] = path.expressions[1:]
        inner = whole.this.unnest()
        whole = whole.this if isinstance(inner, exp.Query | exp.Values) else inner  # a sub-query keeps its brackets
    keys = [str(step.this) for step in steps]
    shown = "_jsonb_text" if node.meta.get(OF_JSONB) else "_json_text"
    path = exp.JSONPath(expressions=[exp.JSONPathRoot(), *(step.copy() for step in steps)])
    return _call(shown, document(whole), _text(pointer(keys)), path)


def document(node: exp.Expr) -> exp.Expr:
    """A constant text is a document here."""
    bare = node.unnest()
    constant = isinstance(bare, exp.Literal | exp.Parameter | exp.Null)
    return exp.cast(bare.copy(), "JSON", dialect="duckdb") if constant else node.copy()


def _has_key(whole: exp.Expr, key: exp.Expr) -> exp.Expr:
    """Keys of an object, texts of an array."""
    return _call("_json_has", document(whole), key.copy())


def equal_documents(left: exp.Expr, right: exp.Expr, node: exp.Expr) -> exp.Expr:
    """``left = right`` or ``<>``; DuckDB compares the texts of documents. A constant is taken apart into tests."""
    if is_null(left) or is_null(right):
        return exp.cast(exp.null(), "BOOLEAN", dialect="duckdb")
    constant = _constant_text(right)
    subject = left
    if constant is None:
        constant, subject = _constant_text(left), right
    if not isinstance(node, exp.EQ | exp.NEQ):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "documents can only be compared for equality",
            hint="Compare the fields with ->> instead.",
        )
    if constant is None:
        return _call("_json_same", document(left), document(right))
    subject = document(subject)
    return exp.Case(
        ifs=[exp.If(this=exp.Is(this=subject.copy(), expression=exp.Null()), true=exp.Null())],
        default=_call("coalesce", _same(subject, _parsed(constant)), exp.false()),
    )


def _same(document: exp.Expr, wanted: Any) -> exp.Expr:
    kind = _call("json_type", document.copy())
    if isinstance(wanted, dict):
        keys = exp.Array(expressions=[_text(key) for key in sorted(wanted)])
        found = _call("list_sort", _call("list_distinct", _call("json_keys", document.copy())))
        tests: list[exp.Expr] = [
            exp.EQ(this=kind, expression=_text("OBJECT")),
            exp.EQ(this=found, expression=exp.cast(keys, "TEXT[]", dialect="duckdb")),
        ]
        steps: list[tuple[str, Any]] = list(wanted.items())
    elif isinstance(wanted, list):
        length = _call("json_array_length", document.copy())
        tests = [
            exp.EQ(this=kind, expression=_text("ARRAY")),
            exp.EQ(this=length, expression=exp.Literal.number(len(wanted))),
        ]
        steps = [(str(at), value) for at, value in enumerate(wanted)]
    else:
        return _equal(document, kind, wanted)
    tests += [_same(_call("json_extract", document.copy(), _text(pointer([key]))), value) for key, value in steps]
    return exp.Paren(this=exp.and_(*tests))


def _constant_text(node: exp.Expr) -> str | None:
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    return node.name if isinstance(node, exp.Literal) and node.is_string else None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json") from None


def contains(document: exp.Expr, constant: exp.Expr) -> exp.Expr:
    """``document @> constant``, both JSON."""
    text = _constant_text(constant)
    if text is None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "the operators @> and <@ of JSON are supported with a constant document only",
            hint="Compare the fields with ->> instead.",
        )
    found = _contains(document, _parsed(text), top=True)
    return exp.Case(
        ifs=[exp.If(this=exp.Is(this=document.copy(), expression=exp.Null()), true=exp.Null())],
        default=_call("coalesce", found, exp.false()),
    )


def _contains(document: exp.Expr, wanted: Any, *, top: bool = False, depth: int = 0) -> exp.Expr:
    kind = _call("json_type", document.copy())
    if isinstance(wanted, dict):
        tests: list[exp.Expr] = [exp.EQ(this=kind, expression=_text("OBJECT"))]
        tests += [
            _contains(_call("json_extract", document.copy(), _text(pointer([key]))), value, depth=depth)
            for key, value in wanted.items()
        ]
        return exp.Paren(this=exp.and_(*tests))
    if isinstance(wanted, list):
        tests = [exp.EQ(this=kind, expression=_text("ARRAY"))]
        tests += [
            _holding(document, item, depth) if isinstance(item, dict | list) else _element(document, item)
            for item in wanted
        ]
        return exp.Paren(this=exp.and_(*tests))
    equal = _equal(document, kind, wanted)
    if not top:
        return equal
    inside = exp.and_(exp.EQ(this=kind.copy(), expression=_text("ARRAY")), _element(document, wanted))
    return exp.Paren(this=exp.or_(equal, exp.Paren(this=inside)))


def _holding(document: exp.Expr, wanted: Any, depth: int) -> exp.Expr:
    """Whether an element of the array contains the object or array."""
    each = exp.to_identifier(f"_element{depth}", quoted=True)
    test = _call("coalesce", _contains(exp.Column(this=each.copy()), wanted, depth=depth + 1), exp.false())
    found = _call("list_filter", _call("_json_items", document.copy()), exp.Lambda(this=test, expressions=[each]))
    return exp.GT(this=_call("len", found), expression=exp.Literal.number(0))


_NUMBERS = ("BIGINT", "UBIGINT", "DOUBLE", "HUGEINT", "UHUGEINT")


def _equal(document: exp.Expr, kind: exp.Expr, wanted: Any) -> exp.Expr:
    if wanted is None:
        return exp.EQ(this=kind.copy(), expression=_text("NULL"))
    shown = _call("json_extract_string", document.copy(), _text(""))
    if isinstance(wanted, bool):
        test: exp.Expr = exp.EQ(this=shown, expression=_text("true" if wanted else "false"))
        kinds: tuple[str, ...] = ("BOOLEAN",)
    elif isinstance(wanted, str):
        test = exp.EQ(this=shown, expression=_text(wanted))
        kinds = ("VARCHAR",)
    else:
        number = exp.TryCast(this=shown, to=exp.DataType.build("DOUBLE", dialect="duckdb"))
        test = exp.EQ(this=number, expression=exp.cast(_text(json.dumps(wanted)), "DOUBLE", dialect="duckdb"))
        kinds = _NUMBERS
    return exp.Paren(this=exp.and_(exp.In(this=kind.copy(), expressions=[_text(name) for name in kinds]), test))


def _element(document: exp.Expr, wanted: Any) -> exp.Expr:
    """Whether a scalar is among the elements of the array."""
    if wanted is None or isinstance(wanted, bool):
        return _call("_json_has_token", document.copy(), _text(json.dumps(wanted)))
    if isinstance(wanted, str):
        return _call("_json_has_text", document.copy(), _text(wanted))
    return _call("_json_has_number", document.copy(), exp.cast(_text(json.dumps(wanted)), "DOUBLE", dialect="duckdb"))
