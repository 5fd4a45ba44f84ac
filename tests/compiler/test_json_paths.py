"""JSON paths as lists of steps, and what is no path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mvserver.compiler.capabilities.json_paths import steps
from mvserver.errors import SqlError


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("$", []),
        (" $.a.b_2 ", [["key", "a"], ["key", "b_2"]]),
        ("$['a b'][\"c'd\"]['e\\'f']", [["key", "a b"], ["key", "c'd"], ["key", "e'f"]]),
        ("$[0][-1]", [["index", 0], ["index", -1]]),
        ("$.*[*]", [["all"], ["all"]]),
        ("$..a..*..[0]", [["below"], ["key", "a"], ["below"], ["all"], ["below"], ["index", 0]]),
        ("$[1:3][:-1][::2][4::-1]",
         [["slice", 1, 3, None], ["slice", None, -1, None], ["slice", None, None, 2], ["slice", 4, None, -1]]),
        ("$[0, 'a', *]", [["any of", ["index", 0], ["key", "a"], ["all"]]]),
        ("$[?(@.x)]", [["where", ["is there", [["key", "x"]]]]]),
        ("$[?@ == false]", [["where", ["compare", "==", ["at", []], ["value", False]]]]),
        ("$[?(@['y'] >= 3.5 && !@.z || 'q' != @[0])]",
         [["where", ["or",
                     ["and", ["compare", ">=", ["at", [["key", "y"]]], ["value", 3.5]],
                      ["not", ["is there", [["key", "z"]]]]],
                     ["compare", "!=", ["value", "q"], ["at", [["index", 0]]]]]]]),
    ],
)  # fmt: skip
def test_paths(path: str, wanted: list[Any]) -> None:
    assert json.loads(steps(path)) == wanted


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("a.b", 'JSON path "a.b" is not valid at "a.b": a path begins with "$"'),
        ("$.", 'JSON path "$." is not valid at "": a name is expected'),
        ("$a", 'JSON path "$a" is not valid at "a": a step is expected'),
        ("$[", 'JSON path "$[" is not valid at "": a name in quotes, a number, * or ?(...) is expected'),
        ("$['a", 'JSON path "$[\'a" is not valid at "\'a": the text has no end'),
        ("$[0", 'JSON path "$[0" is not valid at "": "]" is expected'),
        ("$[?(@.a = 1)]", 'JSON path "$[?(@.a = 1)]" is not valid at "= 1)]": ")" is expected'),
        ("$[?(1)]", 'JSON path "$[?(1)]" is not valid at ")]": a comparison is expected'),
        ("$[?(@ > x)]", 'JSON path "$[?(@ > x)]" is not valid at ")]": @, a text, a number, true, false or null is '),
        ("$[?" + "(" * 30 + "@" + ")" * 30 + "]", 'JSON path "$[?((((((((((((((((((((((((((((((@))))))))'),
    ],
)
def test_what_is_no_path(path: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        steps(path)
    assert (caught.value.sqlstate, caught.value.message[: len(message)]) == ("22023", message)
