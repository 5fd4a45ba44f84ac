"""Statements on processors, and LENSES $$ program $$. The program is read where it is run."""

from __future__ import annotations

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.names import if_exists, object_name
from mvserver.sql.statements.base import ObjectName, Statement
from mvserver.sql.statements.processors import (
    CreateProcessor,
    DescribeProcessor,
    DropProcessor,
    Lenses,
    ListProcessors,
    ScaleProcessor,
    StartProcessor,
    StopProcessor,
)

_SUFFIX_BYTES = 12  # of the names that a processor gives to what it declares


def _run(cursor: Cursor) -> Statement:
    return Lenses(*_program(cursor))


def _create(cursor: Cursor) -> Statement:
    name = object_name(cursor)
    if len(name.parts) > 1:
        raise SqlError(
            sqlstates.SYNTAX_ERROR,
            f'the name of a processor has one part, and "{name}" has {len(name.parts)}',
            hint="A processor is made in the session's schema: USE SCHEMA name.",
            position=name.position,
        )
    if len(name.parts[0].encode()) > limits.IDENTIFIER_BYTES_MAX - _SUFFIX_BYTES:
        raise SqlError(
            sqlstates.INVALID_NAME,
            f'the name of processor "{name}" is too long',
            detail=f"It has at most {limits.IDENTIFIER_BYTES_MAX - _SUFFIX_BYTES} bytes.",
            position=name.position,
        )
    cursor.expect_word("as")
    return CreateProcessor(name, *_program(cursor))


def _program(cursor: Cursor) -> tuple[str, int]:
    """The text, and where it begins."""
    token = cursor.current
    raw = cursor.raw(token)
    text = cursor.expect_string()
    opening = raw.index("$", 1) + 1 if raw.startswith("$") else raw.find("'") + 1
    return text, token.start + opening


def _name(cursor: Cursor) -> ObjectName:
    return object_name(cursor)


def _start(cursor: Cursor) -> Statement:
    return StartProcessor(_name(cursor))


def _stop(cursor: Cursor) -> Statement:
    return StopProcessor(_name(cursor))


def _scale(cursor: Cursor) -> Statement:
    name = _name(cursor)
    cursor.accept_word("to")
    position = cursor.current.position
    runners = cursor.expect_integer()
    cursor.accept_word("runners")
    return ScaleProcessor(name, runners, position)


def _drop(cursor: Cursor) -> Statement:
    guarded = if_exists(cursor)
    return DropProcessor(_name(cursor), guarded)


def _list(_: Cursor) -> Statement:
    return ListProcessors()


def _describe(cursor: Cursor) -> Statement:
    return DescribeProcessor(_name(cursor))


HEADS: Heads = {
    ("lenses",): _run,
    ("create", "processor"): _create,
    ("start", "processor"): _start,
    ("stop", "processor"): _stop,
    ("scale", "processor"): _scale,
    ("drop", "processor"): _drop,
    ("list", "processors"): _list,
    ("show", "processors"): _list,
    ("describe", "processor"): _describe,
}
