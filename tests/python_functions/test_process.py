"""The process of a function, without Spark: values, bounds, and what it is denied."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import threading
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from mvserver import limits
from mvserver.python_functions import process
from mvserver.python_functions.body import BodyError, check
from mvserver.python_functions.definition import PythonFunction, is_supported
from mvserver.python_functions.process import FunctionFailed, FunctionProcess, RunnableFunction, run
from mvserver.sql.types import parse_type

MEMORY = 64 << 20


def function(
    body: str,
    parameters: str = "n BIGINT",
    result: str = "BIGINT",
    *,
    strict: bool = False,
    timeout_ms: int = 2000,
    aggregate: bool = False,
) -> RunnableFunction:
    pairs = [each.split(" ", 1) for each in parameters.split("; ")] if parameters else []
    made = PythonFunction(
        "id", "f", tuple((name, parse_type(type_)) for name, type_ in pairs), parse_type(result), body, strict,
        timeout_ms, MEMORY, aggregate=aggregate,
    )  # fmt: skip
    return RunnableFunction.of(made)


def called(body: str, *values: Any, type_: pa.DataType | None = None, **options: Any) -> list[Any]:
    """The answers, an error as its text."""
    column = pa.array(values, type_ or pa.int64())
    found = run(function(body, **options), [column], len(values))
    return [
        value if error is None else error
        for value, error in zip(found["value"].to_pylist(), found["error"].to_pylist(), strict=True)
    ]


def test_each_row_has_its_answer_or_its_error() -> None:
    assert called("return 10 // n", 1, 0, 5, None) == [
        10,
        "38000:function f: ZeroDivisionError: integer division or modulo by zero (line 1)",
        2,
        "38000:function f: TypeError: unsupported operand type(s) for //: 'int' and 'NoneType' (line 1)",
    ]
    assert called("\n\n  x = n\n  return x // 0", 1)[0].endswith("(line 4)")
    assert called("return n", 1, None, strict=True) == [1, None]
    assert called("return n", True, type_=pa.bool_(), result="BOOLEAN", parameters="n BOOLEAN") == [True]


@pytest.mark.parametrize(
    ("result", "body", "answer"),
    [
        ("DECIMAL(5, 2)", "import decimal\nreturn decimal.Decimal('1.235')", Decimal("1.24")),
        ("DECIMAL(5, 2)", "return 999", Decimal("999.00")),
        ("DECIMAL(5, 2)", "return 1000", "22003:function f: its answer is out of range for type DECIMAL(5, 2)"),
        ("DECIMAL(5, 2)", "return 1.5", "22000:function f: it answered with float where Decimal or int is wanted"),
        ("TINYINT", "return 127", 127),
        ("TINYINT", "return -129", "22003:function f: its answer is out of range for type TINYINT"),
        ("BIGINT", "return True", "22000:function f: it answered with bool where int is wanted"),
        ("DOUBLE", "return 10 ** 400", "22003:function f: its answer is out of range for type DOUBLE"),
        ("FLOAT", "return 1e300", "22003:function f: its answer is out of range for type FLOAT"),
        ("VARCHAR", "return b'x'", "22000:function f: it answered with bytes where str is wanted"),
        ("VARCHAR", "return 'a\\0b'", "22021:function f: its answer has the character 0x00"),
        ("VARBINARY", "return b'\\x00'", b"\x00"),
        ("DATE", "import datetime\nreturn datetime.date(2020, 2, 29)", dt.date(2020, 2, 29)),
        ("DATE", "import datetime\nreturn datetime.datetime(2020, 2, 29)",
         "22000:function f: it answered with datetime where datetime.date is wanted"),
        ("TIMESTAMP_LTZ", "import datetime\nreturn datetime.datetime(2020, 1, 1)",
         "22000:function f: it answered with datetime where datetime.datetime with a zone is wanted"),
        ("ARRAY<INTEGER>", "return [n, None]", [1, None]),
        ("ARRAY<INTEGER>", "return (n,)", "22000:function f: it answered with tuple where list is wanted"),
        ("VARCHAR", "return None", None),
    ],
)  # fmt: skip
def test_an_answer_is_of_its_type_or_refused(result: str, body: str, answer: Any) -> None:
    assert called(body, 1, result=result) == [answer]


NUMBERS = pa.list_(pa.int64())


def test_an_aggregate_has_the_list_of_a_group() -> None:
    body = "return sum(n or 0 for n in n) if n else -1"
    assert called(body, [1, None, 2], [], None, type_=NUMBERS, aggregate=True) == [3, -1, -1]
    assert called("return len(n)", [1, 2], None, type_=NUMBERS, aggregate=True, strict=True) == [2, None]
    assert called("return n[0] // 0", [1], type_=NUMBERS, aggregate=True) == [
        "38000:function f: ZeroDivisionError: integer division or modulo by zero (line 1)"
    ]


def test_an_aggregate_of_several_arguments_has_values_of_a_record_at_one_place() -> None:
    kinds = "a BIGINT; b DOUBLE; c FLOAT; d DECIMAL(10, 2); e VARCHAR; f VARBINARY; g DATE; h TIME; i TIMESTAMP; "
    kinds += "j TIMESTAMP_LTZ; k BOOLEAN"
    names = [each.split()[0] for each in kinds.split("; ")]
    texts = [
        "-9223372036854775808", "-0.0", "1.1", "1.20", 'say "ü"\n', "\\x00ff", "2020-02-29", "23:59:59.5",
        "2020-01-01 00:00:00.123456", "1969-12-31 23:59:59.9+00", "true",
    ]  # fmt: skip
    body = f"import datetime, math\nreturn repr([{', '.join(f'{name}[0]' for name in names)}] + [k[1]])"
    packed = [json.dumps(texts), json.dumps([None] * len(texts))]
    found = called(body, packed, type_=pa.list_(pa.string()), parameters=kinds, result="VARCHAR", aggregate=True)
    assert found == [
        repr(
            [
                -(2**63), -0.0, 1.100000023841858, Decimal("1.20"), 'say "ü"\n', b"\x00\xff", dt.date(2020, 2, 29),
                dt.time(23, 59, 59, 500000), dt.datetime(2020, 1, 1, 0, 0, 0, 123456),
                dt.datetime(1969, 12, 31, 23, 59, 59, 900000, dt.UTC), True, None,
            ]
        )
    ]  # fmt: skip


def test_a_group_has_so_many_values_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AGGREGATE_VALUES_MAX", 3)
    found = called("return len(n)", [1] * 3, [1] * 4, type_=NUMBERS, aggregate=True)
    assert found == [3, "54000:function f: a group has more than 3 values"]


@pytest.mark.parametrize(
    "body",
    [
        "return open('/etc/passwd').read()",
        "open('/tmp/x', 'w')",
        "return len(__import__('os').listdir('/'))",
        "__import__('_socket').socket()",
        "__import__('posix').fork()",
        "__import__('posix').execv('/bin/true', ['true'])",
        "__import__('posix').kill(1, 0)",
        "__import__('_thread').start_new_thread(print, ())",
        "__import__('posix').mkdir('/tmp/made-by-a-function')",
        "__import__('resource').setrlimit(9, (-1, -1))",
        "__import__('posix').stat('/')",
        "__import__('posix').pipe()",
    ],
)
def test_what_the_system_denies(body: str) -> None:
    (answer,) = called(body, 1)
    assert str(answer).startswith("38000:function f: "), answer


def test_the_confinement_is_whole_here() -> None:
    made = FunctionProcess(function("return n"))
    try:
        assert made.confinement.is_whole
    finally:
        made.close()


def test_a_machine_that_does_not_confine_runs_nothing_that_was_confined(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = {"files_and_network": False, "landlock": 0, "memory": True}
    monkeypatch.setattr(FunctionProcess, "_greeted", lambda self: lacking)
    with pytest.raises(FunctionFailed) as failed:
        called("return n + 41", 1)
    assert failed.value.message == "function f is not run: this machine does not confine its process"


def test_modules_that_compute_are_there() -> None:
    body = (
        "import hashlib, json, re, uuid, decimal, statistics\nfrom datetime import datetime\n"
        "from urllib.parse import urlsplit\n"
        "assert datetime.strptime('2020-01-02', '%Y-%m-%d').day == 2\n"
        "assert json.loads(json.dumps({'a': [1]})) == {'a': [1]}\n"
        "assert urlsplit('http://h/p').path == '/p' and re.sub('a+', 'b', 'caat') == 'cbt'\n"
        "assert 'é'.encode('latin-1') == b'\\xe9' and 'x'.encode('utf-16')\n"
        "return len(hashlib.sha256(str(n).encode()).hexdigest())"
    )
    assert called(body, 1) == [64]


def test_a_call_that_takes_too_long_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(FunctionFailed) as failed:
        called("while n == 2: pass\nreturn n", 1, 2, 3, timeout_ms=500)
    assert (failed.value.sqlstate, failed.value.message) == ("57014", "function f took longer than 0.5 s for a call")
    assert time.monotonic() - began < 20
    assert called("while n == 2: pass\nreturn n", 1, 3, timeout_ms=500) == [1, 3]


def test_many_short_calls_are_no_long_one() -> None:
    body = "for _ in range(20_000): pass\nreturn n"
    assert called(body, *range(3000), timeout_ms=500) == list(range(3000))


def test_memory_is_bounded_and_no_row_pays_for_another() -> None:
    with pytest.raises(FunctionFailed) as failed:
        called("return len(bytes(10 ** 9)) if n == 2 else n", 1, 2, 3)
    assert (failed.value.sqlstate, failed.value.message) == ("53200", "function f needs more than 64 MB of memory")
    answers = called("return 'x' * 1000000", *range(80), result="VARCHAR")  # together they would not fit
    assert [len(answer) for answer in answers] == [1_000_000] * 80


def test_a_process_that_ends_by_itself_is_tried_again_alone() -> None:
    with pytest.raises(FunctionFailed) as failed:
        called("if n == 2: __import__('os')._exit(7)\nreturn n", 1, 2, 3)
    assert (failed.value.sqlstate, failed.value.message) == ("38000", "function f ended its process: status 7")


def test_a_process_that_is_killed_from_outside_loses_nothing() -> None:
    body = "for _ in range(200_000): pass\nreturn n"
    made = function(body)
    assert called(body, 1) == [1]
    victim = process._processes[made.document]._process.pid
    killer = threading.Timer(0.3, lambda: os.kill(victim, signal.SIGKILL))
    killer.start()
    assert called(body, *range(400)) == list(range(400))
    killer.join()


def test_what_a_function_writes_into_the_pipe_is_no_answer() -> None:
    body = "for each in range(3, 8):\n  try: __import__('os').write(each, b'x' * 64)\n  except OSError: pass\n"
    with pytest.raises(FunctionFailed):
        called(f"{body}return 1", 1)


def test_a_forged_answer_of_another_type_is_refused() -> None:
    body = (
        "import struct\npa = __import__('pyarrow')\nt = pa.table({'value': ['x'], 'error': pa.nulls(1, pa.string())})\n"
        "sink = pa.BufferOutputStream()\nw = pa.ipc.new_stream(sink, t.schema)\nw.write_table(t)\nw.close()\n"
        "b = sink.getvalue().to_pybytes()\nb = struct.pack('=BQ', 1, len(b)) + b\n"
        "for each in range(3, 8):\n  try: __import__('os').write(each, b)\n  except OSError: pass\nreturn 1"
    )
    with pytest.raises(FunctionFailed) as failed:
        called(body, 1)
    assert failed.value.message == "function f spoiled what its process answers"


def test_instants_come_and_go_with_their_zone() -> None:
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 123456, dt.UTC)
    body = (
        "import datetime\nassert d.tzinfo is datetime.UTC\n"
        "return d.astimezone(datetime.timezone(datetime.timedelta(hours=2)))"
    )
    kind = pa.timestamp("us", tz="UTC")
    found = called(body, moment, type_=kind, parameters="d TIMESTAMP_LTZ", result="TIMESTAMP_LTZ")
    assert found == [moment.replace(tzinfo=None)]  # the zone is put to it in Spark's worker


def test_without_arguments_each_row_has_an_answer() -> None:
    found = run(function("return 7", ""), (), 3)
    assert found["value"].to_pylist() == [7, 7, 7]
    empty = run(function("return n"), [pa.array([], pa.int64())], 0)
    assert (empty.num_rows, empty.schema.field("value").type) == (0, pa.int64())


def test_the_end_of_the_parent_ends_the_process() -> None:
    """The worker is killed while the function goes round for ever: nothing is left."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        made = FunctionProcess(function("while True: pass", timeout_ms=60_000))
        os.write(writer, str(made._process.pid).encode())
        made.evaluate(pa.table({"a0": [1]}))
        os._exit(0)
    pid = int(os.read(reader, 20))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    deadline = time.monotonic() + 30
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("body", "message", "line", "column", "is_syntax"),
    [
        ("return n +", "invalid syntax", 1, 11, True),
        ("  x = 1\n  return (x", "'(' was never closed", 2, 10, True),
        ("", "the body is empty", 0, 0, True),
        ("  # nothing", "the body is empty", 0, 0, True),
        ("return 1\nimport os", 'a function cannot import "os"', 2, 1, False),
        ("\n  from socket import socket", 'a function cannot import "socket"', 2, 3, False),
        ("def g():\n  import subprocess", 'a function cannot import "subprocess"', 2, 3, False),
        ("yield n", "a function answers with return, not with yield or await", 1, 1, False),
        ("from math import *", "import * only allowed at module level", 1, 18, True),
        ("break", "'break' outside loop", 1, 1, True),
        ("global n\nreturn n", "name 'n' is parameter and global", 1, 1, True),
        ("return 1\0", "source code string cannot contain null bytes", 0, 0, True),
    ],
)
def test_a_wrong_body_is_refused_with_its_place(
    body: str, message: str, line: int, column: int, is_syntax: bool
) -> None:
    with pytest.raises(BodyError) as refused:
        check("f", ["n"], body)
    error = refused.value
    assert (error.message, error.line, error.column, error.is_syntax) == (message, line, column, is_syntax)


def test_types_that_a_function_knows() -> None:
    assert all(map(is_supported, map(parse_type, ("TIMESTAMP", "ARRAY<DECIMAL(3, 1)>", "VARCHAR(3)"))))
    assert not any(map(is_supported, map(parse_type, ("MAP<VARCHAR, INTEGER>", "STRUCT<a INTEGER>", "INTERVAL",
                                                      "ARRAY<ARRAY<INTEGER>>"))))  # fmt: skip
