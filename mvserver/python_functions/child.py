"""The process that runs one function: it gives up what it does not need, then answers batches until its pipe ends.

    python -c "... main(counter, parent)"    a frame with the function's document on its standard input
    <- a frame: {"confinement": ...} or {"error": ...}
    -> a frame of Arrow with the arguments    <- a frame of Arrow: value, error

The number of the row that is under way stands in memory that the parent sees, so that it can tell a call that takes
too long, and which row ended the process.
"""

from __future__ import annotations

import importlib
import json
import mmap
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]  # pyarrow does without it, and starts in half the time
import pyarrow as pa  # noqa: E402

from mvserver.python_functions.aggregates import bounded, groups  # noqa: E402
from mvserver.python_functions.answers import AnswerError, arrow_type, checker  # noqa: E402
from mvserver.python_functions.arguments import values_of  # noqa: E402
from mvserver.python_functions.body import compiled, file_name, imported  # noqa: E402
from mvserver.python_functions.confinement import confine, end_with_parent  # noqa: E402
from mvserver.python_functions.frames import ARROW, BROKEN, MEMORY, SIZE, read_frame, write_frame  # noqa: E402

# Modules that others import only when they are used; there are no files to import them from then.
_LATE = (
    "_strptime", "encodings.ascii", "encodings.idna", "encodings.latin_1", "encodings.cp1252", "encodings.utf_16",
    "encodings.utf_16_le", "encodings.utf_16_be", "encodings.utf_8_sig", "encodings.hex_codec", "encodings.punycode",
    "encodings.raw_unicode_escape", "encodings.unicode_escape", "linecache", "traceback", "unicodedata",
)  # fmt: skip
_WORDS_MAX = 500


def main(counter: int, parent: int) -> None:
    end_with_parent(parent)
    requests, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nowhere, each)
    os.close(nowhere)
    progress = mmap.mmap(counter, SIZE)
    os.close(counter)
    opened = read_frame(requests)
    if opened is None:
        return
    document = json.loads(opened[1])
    try:
        evaluate = _evaluation(document, progress)
        confinement = asdict(confine(document["memory_bytes"]))
    except Exception as error:  # noqa: BLE001 - said to the parent, whatever it is
        write_frame(replies, ARROW, json.dumps({"error": _words(error)}).encode())
        return
    write_frame(replies, ARROW, json.dumps({"confinement": confinement}).encode())
    while (request := read_frame(requests)) is not None:
        try:
            answer = evaluate(request[1])
        except MemoryError:
            write_frame(replies, MEMORY, b"")
        except Exception as error:  # noqa: BLE001 - the function has changed what the process stands on
            write_frame(replies, BROKEN, _words(error).encode())
        else:
            write_frame(replies, ARROW, answer)


def _evaluation(document: Mapping[str, Any], progress: mmap.mmap) -> Callable[[bytes], bytes]:
    for name in (*_LATE, *imported(document["body"])):
        importlib.import_module(name)
    function = compiled(document["name"], document["parameters"], document["body"])
    most = document.get("aggregate_values_max")
    if most is not None:
        function = bounded(function, most)
    type_ = arrow_type(document["result"])
    check = checker(document["result"], document["characters_max"])
    name, strict = document["name"], bool(document["strict"])
    kinds = document["kinds"]
    rows_of = _rows if most is None else groups

    def evaluate(request: bytes) -> bytes:
        table = pa.ipc.open_stream(request).read_all()
        values, errors = _called(
            function, rows_of(table, kinds, strict=strict), check, progress, name=name, strict=strict
        )
        made = pa.table({"value": pa.array(values, type_), "error": pa.array(errors, pa.string())})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, made.schema) as writer:
            writer.write_table(made)
        found: bytes = sink.getvalue().to_pybytes()
        return found

    return evaluate


def _rows(table: pa.Table, kinds: Sequence[str], *, strict: bool) -> list[tuple[Any, ...]]:
    if not kinds:
        return [()] * table.num_rows
    columns = (values_of(column, kind) for column, kind in zip(table.columns, kinds, strict=True))
    return list(zip(*columns, strict=True))


def _called(
    function: Callable[..., Any],
    rows: Sequence[tuple[Any, ...]],
    check: Callable[[Any], Any],
    progress: mmap.mmap,
    *,
    name: str,
    strict: bool,
) -> tuple[list[Any], list[str | None]]:
    """The answers, and in place of one the error that it raised: whether that counts, the query decides."""
    values: list[Any] = []
    errors: list[str | None] = []
    for number, row in enumerate(rows, 1):
        value, error = None, None
        if not (strict and None in row):
            progress[:SIZE] = number.to_bytes(SIZE, "little")
            try:
                value = function(*row)
                if value is not None:
                    value = check(value)
            except MemoryError:
                raise
            except AnswerError as wrong:
                value, error = None, f"{wrong.sqlstate}:function {name}: {wrong.message}"
            except BaseException as raised:  # noqa: BLE001 - sys.exit() is an error of the function, too
                value, error = None, f"38000:function {name}: {_words(raised, file_name(name))}"
        values.append(value)
        errors.append(error)
    progress[:SIZE] = bytes(SIZE)
    return values, errors


def _words(error: BaseException, file: str | None = None) -> str:
    """Its type, text and line, in one line."""
    try:
        text = " ".join(str(error).split())[:_WORDS_MAX]
    except Exception:  # noqa: BLE001 - a user's own class
        text = ""
    line, at = None, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == file:
            line = at.tb_lineno
        at = at.tb_next
    return f"{type(error).__name__}{f': {text}' if text else ''}{f' (line {line})' if line is not None else ''}"
