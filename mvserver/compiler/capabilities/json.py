"""JSON in text columns. Text that is not JSON gives NULL, as Flink's functions do by default."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.compiler.capabilities import bounded, json_paths
from mvserver.compiler.capabilities.build import INTEGER_CONSTANT, TEXT, TEXT_CONSTANT, capability, example, fails, on
from mvserver.compiler.capabilities.model import Capability, Lowered, Lowering
from mvserver.compiler.capabilities.spark_text import string
from mvserver.errors import SqlError
from mvserver.limits import GROWN_TEXT_CHARACTERS_MAX
from mvserver.sql import types as t
from mvserver.sql.types import SqlType

_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[\s*(\d+)\s*\]|\['([^']*)'\]|\[\"([^\"]*)\"\]|\.\"([^\"]*)\"")


def _key(key: str) -> str:
    if "'" in key or "*" in key or not key:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'JSON key "{key}" is not supported',
            hint="Keys have neither a quote nor a star.",
        )
    return f"['{key}']"


def path(text: str) -> str:
    """An SQL/JSON path of member and element steps, as Spark reads it."""
    given = text.strip()
    given = given[4:].strip() if given[:4].lower() == "lax " else given
    if not given.startswith("$"):
        raise _unsupported(text)
    out, at = ["$"], 1
    while at < len(given):
        step = _STEP.match(given, at)
        if step is None:
            raise _unsupported(text)
        name, index, single, double, quoted = step.groups()
        out.append(f"[{int(index)}]" if index is not None else _key(name or single or double or quoted or ""))
        at = step.end()
    return "".join(out)


def _unsupported(text: str) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f'JSON path "{text}" is not supported',
        hint="Paths are made of $, .member, ['member'] and [element], as in $.items[0].name.",
    )


def _at(a: Sequence[Lowered]) -> str:
    return string(path(str(a[1].constant())))


def _text_at(text: Lowered, place: str) -> str:
    """No client can be sent a NUL."""
    return f"replace(get_json_object({text}, {place}), char(0), '\\uFFFD')"


def _value(a: Sequence[Lowered], result: SqlType) -> str:
    """A scalar's text; an object or array gives NULL. Only what looks like one is looked at twice."""
    found = _text_at(a[0], _at(a))
    kind = f"schema_of_variant(try_variant_get(try_parse_json({a[0]}), {_at(a)}, 'variant'))"
    nested = f"{kind} LIKE 'OBJECT%' OR {kind} LIKE 'ARRAY%'"
    return f"IF(left({found}, 1) IN ('{{', '['), IF({nested}, NULL, {found}), {found})"


def _query(a: Sequence[Lowered], result: SqlType) -> str:
    found = f"get_json_object({a[0]}, {_at(a)})"
    kind = f"schema_of_variant(try_variant_get(try_parse_json({a[0]}), {_at(a)}, 'variant'))"
    return f"IF({kind} LIKE 'OBJECT%' OR {kind} LIKE 'ARRAY%', {found}, NULL)"


def _exists(a: Sequence[Lowered], result: SqlType) -> str:
    return f"IF({a[0]} IS NULL, NULL, try_variant_get(try_parse_json({a[0]}), {_at(a)}, 'variant') IS NOT NULL)"


def _keys(a: Sequence[Lowered], result: SqlType) -> str:
    steps = []
    for argument in a[1:]:
        key = str(argument.constant())
        steps.append(f"[{key}]" if key.isdigit() else _key(key))
    return _text_at(a[0], string("$" + "".join(steps)))


def _arrow_path(a: Sequence[Lowered]) -> str:
    key = a[1].constant()
    if isinstance(key, int):
        if key < 0:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "JSON elements are counted from the start only",
                hint="The first one is 0.",
            )
        return string(f"$[{key}]")
    return string("$" + _key(str(key)))


def _as_json(place: str, text: Lowered) -> str:
    return f"to_json(try_variant_get(try_parse_json({text}), {place}, 'variant'))"


def _member_text(a: Sequence[Lowered], result: SqlType) -> str:
    return _text_at(a[0], _arrow_path(a))


def _member(a: Sequence[Lowered], result: SqlType) -> str:
    return _as_json(_arrow_path(a), a[0])


def _walked(function: str) -> Lowering:
    return lambda a, _: (
        f"{function}({a[0]}, {string(json_paths.steps(str(a[1].constant())))}, {GROWN_TEXT_CHARACTERS_MAX})"
    )


_PATHS = (
    "paths are of RFC 9535, constant; text that is not JSON gives NULL; a result of more than "
    f"{GROWN_TEXT_CHARACTERS_MAX} characters is an error (54000)"
)
_NOTE = (
    "the operand is text; text that is not JSON gives NULL; a number with a fraction or an exponent is written as a "
    "double: `1.50` is `1.5`, `1e3` is `1000.0`"
)
_ARROWS = [
    on((TEXT, TEXT_CONSTANT), t.VARCHAR, _member_text),
    on((TEXT, INTEGER_CONSTANT), t.VARCHAR, _member_text),
]

CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "json_value", "the scalar at a path of JSON text, as text; NULL when there is none or it is not a scalar",
        [on((TEXT, TEXT_CONSTANT), t.VARCHAR, _value)],
        [
            example("""json_value('{"a":{"b":1}}', '$.a.b')""", "1", postgres=False),
            example("""json_value('{"a":{"b":1}}', '$.a')""", None, postgres=False),
            example("""json_value('{"a":["x","{y"]}', '$.a[1]')""", "{y", postgres=False),
            example("""json_value('not json', '$.a')""", None, postgres=False),
            example("""json_value('{"a b":true}', '$[''a b'']')""", "true", postgres=False),
            fails("""json_value('{}', '$..a')""", "0A000", postgres=False),
        ],
        note=_NOTE,
    ),
    capability(
        "json_query", "the object or array at a path of JSON text, as JSON text; NULL when there is none",
        [on((TEXT, TEXT_CONSTANT), t.VARCHAR, _query)],
        [
            example("""json_query('{"a":{"b":1}}', '$.a')""", '{"b":1}', postgres=False),
            example("""json_query('{"a":[1,2]}', '$.a')""", "[1,2]", postgres=False),
            example("""json_query('{"a":5}', '$.a')""", None, postgres=False),
        ],
        note=_NOTE,
    ),
    capability(
        "json_exists", "is there something at a path of JSON text", [on((TEXT, TEXT_CONSTANT), t.BOOLEAN, _exists)],
        [
            example("""json_exists('{"a":{"b":1}}', '$.a.b')""", "true", postgres=False),
            example("""json_exists('{"a":{"b":1}}', '$.c')""", "false", postgres=False),
            example("""json_exists('{"a":null}', '$.a')""", "true", postgres=False),
        ],
        note="the operand is text; of text that is not JSON it is false",
    ),
    capability(
        "json_path_first", "the first of what lies at a path of JSON text, as JSON text; NULL when nothing does",
        [on((TEXT, TEXT_CONSTANT), t.VARCHAR, _walked(bounded.JSON_FIRST))],
        [
            example("""json_path_first('{"a":{"b":1.50}}', '$.a.b')""", "1.50", postgres=False),
            example("""json_path_first('{"a":["x"]}', '$.a[-1]')""", '"x"', postgres=False),
            example(
                """json_path_first('{"p":[{"id":"i3","x":1},{"id":"i4","x":2}]}', '$.p[?(@[''id'']==''i4'')].x')""",
                "2", postgres=False,
            ),
            example("""json_path_first('{"a":1}', '$.b')""", None, postgres=False),
            example("""json_path_first('no json', '$.a')""", None, postgres=False),
            fails("""json_path_first('{}', '$.a[')""", "22023", postgres=False),
        ],
        note=_PATHS,
    ),
    capability(
        "json_path_all", "all that lies at a path of JSON text, in its order, each as JSON text",
        [on((TEXT, TEXT_CONSTANT), t.array(t.VARCHAR), _walked(bounded.JSON_ALL))],
        [
            example("""array_to_string(json_path_all('{"h":1,"m":17,"a":"x"}', '$.*'), ' ')""", '1 17 "x"',
                    postgres=False),
            example("""array_to_string(json_path_all('{"a":[{"b":1},{"b":2}]}', '$..b'), ' ')""", "1 2",
                    postgres=False),
            example("""array_to_string(json_path_all('[1,5,9,3]', '$[?(@ > 1 && @ < 9)]'), ' ')""", "5 3",
                    postgres=False),
            example("""array_to_string(json_path_all('[0,1,2,3,4]', '$[1:4:2,0]'), ' ')""", "1 3 0", postgres=False),
            example("""cardinality(json_path_all('{"a":1}', '$.b'))""", "0", postgres=False),
        ],
        note=_PATHS,
    ),
    capability(
        "json_extract_path_text", "what lies at a chain of keys of JSON text, as text",
        [on((TEXT, TEXT_CONSTANT), t.VARCHAR, _keys, variadic=True)],
        [
            example("""json_extract_path_text('{"a":{"b":"x"}}', 'a', 'b')""", "x"),
            example("""json_extract_path_text('{"a":[1,2]}', 'a', '1')""", "2"),
            example("""json_extract_path_text('{"a":null}', 'a')""", None),
        ],
        note=_NOTE,
    ),
    capability(
        "->>", "the value of a key, or the element at an index from 0, of JSON text, as text", _ARROWS,
        [
            example("""'{"a":{"b":1},"c":"x"}' ->> 'c'""", "x", postgres=False),
            example("""'[10,20]' ->> 1""", "20", postgres=False),
            example("""'{"a":1}' ->> 'z'""", None, postgres=False),
        ],
        operator=True, note=_NOTE,
    ),
    capability(
        "->", "the value of a key, or the element at an index from 0, of JSON text, as JSON text",
        [
            on((TEXT, TEXT_CONSTANT), t.VARCHAR, _member),
            on((TEXT, INTEGER_CONSTANT), t.VARCHAR, _member),
        ],
        [
            example("""'{"a":{"b":1}}' -> 'a'""", '{"b":1}', postgres=False),
            example("""'{"a":"x"}' -> 'a'""", '"x"', postgres=False),
            example("""'{"a":{"b":1}}' -> 'a' ->> 'b'""", "1", postgres=False),
        ],
        operator=True, note=_NOTE,
    ),
    capability(
        "json_array_length", "how many elements an array of JSON text has",
        [on((TEXT,), t.INTEGER, "json_array_length({0})")],
        [example("json_array_length('[1,2,3]')", "3"), example("json_array_length('[]')", "0")],
        note="text that is not an array gives NULL where PostgreSQL gives an error",
    ),
)  # fmt: skip
