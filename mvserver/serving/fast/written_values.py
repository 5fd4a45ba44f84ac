"""The plan of one text of a template: that of all its texts, with the values in the places of the parameters.

Drivers prepare a text that they send again and again (psycopg the fifth time), which has no parameters then. Its plan
is made of texts alone, where planning it anew takes a hundred times as long, and is proved to be short already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mvserver import quoting
from mvserver.serving.api import Comparison, Further, KeyRead, Members, PullPlan
from mvserver.serving.fast.templates import Constant
from mvserver.sql.written_parameters import with_constants


def with_values(of_all: PullPlan, values: Sequence[Constant]) -> PullPlan | None:
    """None where a parameter is more than a value that is compared."""
    if of_all.places or of_all.constants:
        return None
    texts = {number: _text(value) for number, value in enumerate(values, start=1)}
    return replace(
        of_all,
        sql=with_constants(of_all.sql, texts),
        direct=None if of_all.direct is None else with_constants(of_all.direct, texts),
        parameter_oids=(),
        flat=(),
        together=None,
        key_read=None if of_all.key_read is None else _key_read(of_all.key_read, values),
    )


def _text(value: Constant) -> str:
    """As DuckDB reads it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, str):
        return quoting.constant(value)
    return f"({value})" if value < 0 else str(value)


def _key_read(read: KeyRead, values: Sequence[Constant]) -> KeyRead | None:
    compared: tuple[Comparison | Further, ...] = (*read.comparisons, *read.further)
    written: list[Comparison | Further] = []
    for each in compared:
        value = values[each.parameter - 1] if each.parameter else each.constant
        if isinstance(value, tuple):
            return None
        written.append(replace(each, constant=value, parameter=0))
    return replace(
        read,
        comparisons=tuple(each for each in written if isinstance(each, Comparison)),
        members=tuple(_members(each, values) for each in read.members),
        further=tuple(each for each in written if isinstance(each, Further)),
    )


def _members(members: Members, values: Sequence[Constant]) -> Members:
    given = [values[number - 1] for number in members.parameters]
    listed = values[members.array - 1] if members.array else ()
    assert isinstance(listed, tuple)  # noqa: S101 - an array's
    return Members(members.column, (*members.constants, *(v for v in given if not isinstance(v, tuple)), *listed))
