"""Logs that can be read by people and by programs: one line an event, the session's number on it, no secrets in it.

A line is ``time level logger [session=N] message``; values that hold blanks or quotes are JSON strings, and line breaks
are escaped, so that one event is always one line.
"""

from __future__ import annotations

import contextvars
import json
import logging
import sys
import time
import traceback
from typing import TextIO

from mvserver import limits
from mvserver.errors import words_of
from mvserver.masking import mask_secrets

_log = logging.getLogger(__name__)

session_id_var: contextvars.ContextVar[str | None] = contextvars.ContextVar("mvserver_session_id", default=None)


def announce(line: str) -> None:
    """Tells whoever started the server. Nobody need hear it: a full disk is no reason not to serve."""
    try:
        print(line, flush=True)  # noqa: T201 - the lines that are promised
    except OSError as error:
        _log.warning("standard output cannot be written: %s", error)


def loggable_sql(text: str) -> str:
    """SQL as it may stand in a log: secrets masked, and cut at a bound that says so."""
    bound = limits.LOGGED_TEXT_CHARACTERS_MAX
    cut = len(text) - bound
    # what is cut goes first: masking costs by the length, and half a secret at the end is still masked
    masked = mask_secrets(text[:bound])
    return f"{masked}... ({cut} more characters)" if cut > 0 else masked


class LineFormatter(logging.Formatter):
    """One line per event; a trace is folded into it as a JSON string."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        parts = [f"{moment}.{int(record.msecs):03d}Z", record.levelname, record.name]
        session = session_id_var.get()
        if session is not None:
            parts.append(f"session={session}")
        parts.append(_one_line(_message(record)))
        if record.exc_info:
            trace = "".join(traceback.format_exception(*record.exc_info))
            parts.append(f"trace={json.dumps(mask_secrets(trace), ensure_ascii=False)}")
        return " ".join(parts)


def _message(record: logging.LogRecord) -> str:
    """With the words of errors that raise where they are asked for their text; else the line would be lost."""
    if not isinstance(record.args, tuple):
        return record.getMessage()
    given = tuple(words_of(each) if isinstance(each, BaseException) else each for each in record.args)
    return str(record.msg) % given if given else str(record.msg)


def _one_line(text: str) -> str:
    return (
        text.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n") if "\n" in text or "\r" in text else text
    )


def _of_our_choice(record: logging.LogRecord) -> bool:
    """py4j logs each call that fails because the JVM has ended to the root logger, with its stack. What that means is
    logged in one line by whoever made the call."""
    return "py4j" not in record.pathname


_NOISY = {
    "py4j": logging.WARNING,
    "sqlglot": logging.ERROR,  # it warns of clients' patterns that it writes down as they are
    "botocore": logging.WARNING,
    "urllib3": logging.WARNING,
}


def set_up_logging(level: str = "INFO", stream: TextIO | None = None) -> logging.Handler:
    """Sends all logs as lines to ``stream`` (stderr by default); replaces what an earlier call set up."""
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f"unknown log level {level!r}: use DEBUG, INFO, WARNING, ERROR or CRITICAL")
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler.formatter, LineFormatter):
            root.removeHandler(handler)
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(LineFormatter())
    root.addHandler(handler)
    root.setLevel(number)
    root.addFilter(_of_our_choice)
    for noisy, least in _NOISY.items():
        logging.getLogger(noisy).setLevel(max(number, least))
    return handler
