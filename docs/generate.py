"""Writes the parts of the documents that are tables of the code: `.venv/bin/python docs/generate.py`.

docs/sql/functions.md is made whole, from the capability table, as docs/sql/pull-functions.md is from the table of what
pull queries may call. The session's settings stand between two marks in docs/sql/session.md. tests/docs
compares what is committed with what this makes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from mvserver.compiler.capabilities import Capability, all_capabilities
from mvserver.compiler.capabilities.model import Nulls
from mvserver.compiler.type_names import postgres_name
from mvserver.session.settings.setting_table import SETTINGS, Change
from mvserver.sql import pull_functions
from mvserver.sql.pull_table.model import PullFunction
from mvserver.sql.types import SqlType
from mvserver.sql.worked_examples import Example

SQL = Path(__file__).resolve().parent / "sql"
FUNCTIONS = SQL / "functions.md"
PULL_FUNCTIONS = SQL / "pull-functions.md"
SESSION = SQL / "session.md"
_MARKED = re.compile(r"(<!-- session settings -->\n).*?(<!-- /session settings -->)", re.DOTALL)
_NO_EFFECT = "Accepted for compatibility; has no effect."

_TITLES = {
    "arithmetic": "Arithmetic",
    "comparison": "Comparison",
    "logic": "Conditions",
    "strings": "Text",
    "matching": "Patterns",
    "mathematics": "Mathematics",
    "datetimes": "Dates and times",
    "json": "JSON",
    "collections": "Arrays, maps and structs",
    "encoding": "Encoding and hashing",
    "obfuscation": "Obfuscation",
}

_HEAD = """\
# Functions of continuous queries

This page is made by `docs/generate.py` from the table that the compiler works with; do not edit it.

A continuous query (`CREATE MATERIALIZED VIEW`, `CREATE STREAM AS`, `INSERT INTO`) may call only the functions of this
page. An unknown name is 42883, a known one that is not supported 0A000. The `SELECT` that reads a view has other
functions: see [pull queries](pull.md).

A function of a NULL is NULL unless its entry says otherwise. Results are shown as PostgreSQL prints them.

No function takes memory or time without bound. Functions whose result can be much longer than the record measure it
first: `||`, `concat`, `repeat`, `replace`, `lpad` and others. A result of more than 1,048,576 characters that is longer
than the text that it is made of is an error (54000) of that view alone. The time of regular expressions and `LIKE`
grows with the text and the pattern, never with the ways in which they could match. Look-around and back-references are
refused (0A000).

The present time and chance, as `now()` and `random()`, are for queries that write rows and keep none: see
[writing](writing.md#the-present-time-and-chance).

## Aggregates

| function | takes | result |
|---|---|---|
| `count(*)` | | bigint |
| `count(x)` | anything | bigint |
| `sum(x)` | numbers | bigint; of bigint numeric(38, 0); of numeric(p, s) numeric(38, s); of floats x's type |
| `min(x)`, `max(x)` | numbers, text, dates, times, timestamps | x's type; text without its length |
| `avg(x)` | numbers | numeric with 6 or s + 4 digits, rounded half away from zero; of floats double precision |
| `stddev(x)`, `stddev_samp`, `stddev_pop`, `variance`, `var_samp`, `var_pop` | numbers | double precision |
| `bool_and(x)`, `bool_or(x)`, `every(x)` | boolean | boolean |
| `first_value(x)`, `last_value(x)` | all but arrays, maps and structs | x's type |
| `percentile_cont(p) WITHIN GROUP (ORDER BY x [DESC])` | numbers | double precision |
| `percentile_disc(p) WITHIN GROUP (ORDER BY x [DESC])` | all but arrays, maps and structs | x's type |
| `mode() WITHIN GROUP (ORDER BY x [DESC])` | all but arrays, maps and structs | x's type |
| `string_agg(x, separator)`, `listagg(x [, separator])` | text | text |
| `array_agg(x [, k])` | all but arrays, maps and structs | an array of x's type, with NULLs; at most the first k |
| `topk(x, k)`, `topkdistinct(x, k)` | numbers, text, dates, times, timestamps | an array of the k greatest values |
| `bottomk(x, k)`, `bottomkdistinct(x, k)` | numbers, text, dates, times, timestamps | an array of the k least values |
| `most_frequent(x, k)`, `least_frequent(x, k)` | all but arrays, maps and structs | an array of the k values |
| `approx_count_distinct(x)` | all but arrays, maps and structs | bigint |
| `approx_percentile(x, p)`, `percentile_approx` | numbers | double precision |

Each may have `FILTER (WHERE condition)`. `count`, `sum`, `min`, `max`, `avg`, the deviations, the booleans,
`string_agg` and `array_agg` may have `DISTINCT`: `count(DISTINCT x)`. All but `array_agg` leave out NULLs. A sum that
does not fit its type fails the view with 22003.

`first_value`, `last_value`, `string_agg`, `listagg` and `array_agg` go by event time: the stream's or the query's
`timestamp`, else the record's own time. A record without event time is left out. Among values with equal times the
least is the first and the greatest the last. So the result does not depend on the order in which partitions and files
are read. The values of `string_agg(DISTINCT …)` and `array_agg(DISTINCT …)` are in their own order. A separator is a
constant; `listagg` has `,` without one.

`p` is a constant from 0 to 1. `percentile_cont` is computed between the two nearest values. `percentile_disc` is one of
the values. `mode` is the most frequent value; among equally frequent ones it is the first in the order given.
`most_frequent` has the values that came most often, and `least_frequent` those that came least often, the first of them
first, and of equally frequent ones the least. All are
exact. `approx_percentile` is within 1 % of the value that `percentile_disc` gives, and `approx_count_distinct` has a
standard error of 1.6 %. Their state does not grow with the number of values beyond some thousand rows a group.

`DISTINCT`, percentiles, the mode and `string_agg` need the values: those of each group are kept once in a table beside
the view's rows. A `DISTINCT` aggregate costs a reader of the view nothing more; the others are computed from the counts
of the values when the view is read. `string_agg` and `array_agg` keep every value with its time: they are meant for
groups that stay small.
"""


def functions_page() -> str:
    listed = [entry for entry in all_capabilities() if not entry.internal]
    parts = [_HEAD]
    for family, entries in groupby(listed, key=lambda entry: entry.family):
        parts.append(f"## {_TITLES[family]}\n\n{_table(list(entries))}")
    return "\n".join(parts)


def session_settings() -> str:
    own = [row for row in SETTINGS.values() if row.change is Change.USER and row.description != _NO_EFFECT]
    lines = ["| setting | default | what it does |", "|---|---|---|"]
    lines += [f"| `{row.name}` | {_code(row.default)} | {_cell(row.description)} |" for row in own]
    ignored = sorted(row.name for row in SETTINGS.values() if row.description == _NO_EFFECT)
    fixed = sorted(row.name for row in SETTINGS.values() if row.change is not Change.USER)
    lines += [
        "",
        f"Accepted, without effect: {_names(ignored)}.",
        "",
        f"To be read only (55P02 on `SET`): {_names(fixed)}.",
    ]
    return "\n".join(lines) + "\n"


def session_page(text: str) -> str:
    return _MARKED.sub(lambda match: match[1] + session_settings() + match[2], text)


def _table(entries: list[Capability]) -> str:
    lines = ["| function | meaning | examples |", "|---|---|---|"]
    lines += [f"| {_forms(entry)} | {_meaning(entry)} | {_examples(entry)} |" for entry in entries]
    return "\n".join(lines) + "\n"


def _forms(entry: Capability) -> str:
    forms = []
    for overload in entry.overloads:
        result = f" → {postgres_name(overload.result)}" if isinstance(overload.result, SqlType) else ""
        forms.append(f"`{_cell(overload.id)}{result}`")
    if entry.aliases:
        forms.append("also " + ", ".join(f"`{_cell(name)}`" for name in entry.aliases))
    return "<br>".join(dict.fromkeys(forms))


def _meaning(entry: Capability) -> str:
    text = entry.meaning
    if entry.nulls is Nulls.SKIPS:
        text += "; NULLs are left out"
    if entry.note:
        text += f". {entry.note[0].upper()}{entry.note[1:]}"
    return _cell(text)


def _examples(entry: Capability) -> str:
    return "<br>".join(_examples_of(entry.examples))


def _examples_of(examples: tuple[Example, ...]) -> Iterator[str]:
    for example in examples:
        if example.error is not None:
            yield f"`{_cell(example.sql)}` fails: {example.error}"
        elif example.expected is None:
            yield f"`{_cell(example.sql)}` is NULL"
        else:
            yield f"`{_cell(example.sql)}` = " + (
                f"`{_cell(example.expected)}`" if example.expected.strip() else "blank"
            )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _code(text: str) -> str:
    return f"`{_cell(text)}`" if text else ""


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_PULL_HEAD = """\
# Functions of pull queries

This page is made by `docs/generate.py` from the table that pull queries are checked against; do not edit it.

These are PostgreSQL's functions, with its meaning, as far as a [pull query](pull.md) may call them. Where one differs,
it says so under [differences](postgresql.md). Types in brackets are those of the arguments; `number` is any of the
numeric types, and `anyarray` any array. Results are shown as PostgreSQL prints them. Any other name or number
of arguments is 42883, or 0A000 where PostgreSQL has it. Functions, types and grammar that DuckDB alone has are refused
as well. The functions of continuous queries have [a page of their own](functions.md).
"""
_PULL_NOTES = {
    "Aggregates": "All may have `FILTER (WHERE condition)`, `DISTINCT`, `ORDER BY` among their arguments, and `OVER`. "
    "`mode`, `percentile_cont` and `percentile_disc` are written with `WITHIN GROUP (ORDER BY x)`.",
    "Windows": "They need `OVER`; aggregates may have it.",
    "Rows": "They stand in `FROM`, or in the select list.",
}


def pull_functions_page() -> str:
    parts = [_PULL_HEAD]
    for title, functions in pull_functions.GROUPS.items():
        lines = ["| function | meaning | examples |", "|---|---|---|"]
        lines += [_pull_function(each) for each in functions if each.shown]
        note = _PULL_NOTES.get(title)
        parts.append(
            f"\n## {title}\n\n" + (f"{textwrap.fill(note, 120)}\n\n" if note else "") + "\n".join(lines) + "\n"
        )
    return "".join(parts)


def _pull_function(function: PullFunction) -> str:
    names = [function.name if form.startswith("(") else f"{function.name} " for form in function.forms]
    forms = "<br>".join(f"`{_cell(name + form)}`" for name, form in zip(names, function.forms, strict=True))
    return f"| {forms} | {_cell(function.meaning)} | {'<br>'.join(_examples_of(function.examples))} |"


def main() -> None:
    PULL_FUNCTIONS.write_text(pull_functions_page(), encoding="utf-8")
    FUNCTIONS.write_text(functions_page(), encoding="utf-8")
    SESSION.write_text(session_page(SESSION.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
