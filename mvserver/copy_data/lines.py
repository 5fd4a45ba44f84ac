"""COPY data cut into lines, in PostgreSQL's text and CSV forms, however it was cut into messages.

A line is a row: one that ends in the middle of a quoted CSV value, or behind a backslash in the text form, goes on.
What ends a line (LF, CR or both) is learnt from the first one and must stay so. Each byte is looked at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mvserver import limits, sqlstates
from mvserver.errors import SqlError

_LF, _CR, _CRLF = b"\n", b"\r", b"\r\n"
_BACKSLASH = ord("\\")
_END_OF_DATA = b"\\."
_END_INSIDE = re.compile(rb"(?:[^\\]|\\[^.])*+\\\.", re.DOTALL)


def bad_file(message: str, *, hint: str | None = None) -> SqlError:
    return SqlError(sqlstates.BAD_COPY_FILE_FORMAT, message, hint=hint)


class LineCutter:
    """``feed`` gives the lines that are whole. ``number`` is that of the last one begun, counted as an editor does."""

    def __init__(self, quote: bytes | None = None, escape: bytes | None = None) -> None:
        """``quote`` and ``escape`` for CSV, None for the text form."""
        self.number = 0
        self.ended = False  # by \. on a line of its own
        self._quote, self._escape = quote, escape
        self._special: re.Pattern[bytes] | None = None  # what counts where the escape is not the quote itself
        if quote is not None and escape is not None and escape != quote:
            self._special = re.compile(b"[" + re.escape(quote + escape) + b"]")
        self._buffer = bytearray()
        self._start = 0  # of the present line
        self._seen = 0  # how far it has been looked at
        self._in_quotes = False
        self._escaped = False  # the byte at _seen stands behind an escape
        self._end: bytes | None = None  # what ends a line

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self.ended:
            return  # what stands behind the end mark is nobody's
        self._buffer += data
        yield from self._cut(last=False)
        del self._buffer[: self._start]
        self._seen -= self._start
        self._start = 0
        if len(self._buffer) > limits.COPY_LINE_BYTES_MAX:
            self.number += 1
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED,
                "a row of the COPY data is too long",
                detail=f"It has more than {limits.COPY_LINE_BYTES_MAX} bytes.",
            )

    def finish(self) -> Iterator[bytes]:
        """The last line may lack its end."""
        if self.ended:
            return
        yield from self._cut(last=True)
        if not self.ended and self._start < len(self._buffer):
            self.number += 1
            yield from self._line(len(self._buffer), len(self._buffer))

    def _cut(self, *, last: bool) -> Iterator[bytes]:
        while not self.ended:
            at = self._next_end(last)
            if at is None:
                return
            self.number += 1
            size = self._check_end(at)
            yield from self._line(at, at + size)

    def _line(self, end: int, following: int) -> Iterator[bytes]:
        line = bytes(memoryview(self._buffer)[self._start : end])
        self._start = self._seen = following
        if line == _END_OF_DATA:
            self.ended = True
            return
        if self._quote is None and _END_OF_DATA in line and _END_INSIDE.match(line):
            raise bad_file("end-of-copy marker is not alone on its line")
        yield line

    # --- where a line ends ------------------------------------------------------------------------------------------
    def _next_end(self, last: bool) -> int | None:
        """The first LF or CR that counts; None where more data must come."""
        while True:
            at = self._candidate()
            if at is None:
                self._pass_over(len(self._buffer))
                return None
            self._pass_over(at)
            if self._in_quotes or self._escaped:
                if self._in_quotes and self._buffer[at] == (_LF if self._end == _LF else _CR)[0]:
                    self.number += 1  # what a line's end is may not be known yet: PostgreSQL's guess
                self._escaped = False
                self._seen = at + 1
                continue
            if self._buffer[at] == _CR[0] and at + 1 == len(self._buffer) and not last:
                return None  # an LF may follow
            return at

    def _candidate(self) -> int | None:
        line_feed = self._buffer.find(_LF, self._seen)
        carriage_return = self._buffer.find(_CR, self._seen, len(self._buffer) if line_feed < 0 else line_feed)
        at = carriage_return if carriage_return >= 0 else line_feed
        return None if at < 0 else at

    def _pass_over(self, at: int) -> None:
        """Keeps count of quotes, or of backslashes, up to ``at``."""
        if self._quote is None:
            run = at
            while run > self._seen and self._buffer[run - 1] == _BACKSLASH:
                run -= 1
            odd = (at - run) % 2 == 1
            # a run of backslashes that began before what is looked at now goes on
            self._escaped = odd != (self._escaped if run == self._seen else False)
        elif self._special is None:
            self._in_quotes ^= self._buffer.count(self._quote, self._seen, at) % 2 == 1
        else:
            self._pass_over_escapes(at)
        self._seen = at

    def _pass_over_escapes(self, at: int) -> None:
        """CSV whose escape is another character than its quote: it counts inside quotes alone."""
        assert self._special is not None and self._escape is not None  # noqa: S101, PT018 - _pass_over has looked
        escape, behind = self._escape[0], self._seen - 1 if self._escaped else -2
        for match in self._special.finditer(self._buffer, self._seen, at):
            here, escaped = match.start(), behind == match.start() - 1
            if self._buffer[here] == escape:
                behind = here if self._in_quotes and not escaped else -2
            elif not escaped:
                self._in_quotes = not self._in_quotes
        self._escaped = behind == at - 1

    def _check_end(self, at: int) -> int:
        """How long the end is; 22P04 where it is of another kind than the first one."""
        buffer = self._buffer
        carriage_return = buffer[at] == _CR[0]
        found = _LF if not carriage_return else _CRLF if buffer[at + 1 : at + 2] == _LF else _CR
        if self._end is None:
            self._end = found
        if found == self._end:
            return len(found)
        if self._end == _CR and found == _CRLF:
            return 1  # the LF begins the next line, and is refused there
        name, letter = ("carriage return", "r") if carriage_return else ("newline", "n")
        if self._quote is not None:
            raise bad_file(f"unquoted {name} found in data", hint=f"Use quoted CSV field to represent {name}.")
        raise bad_file(f"literal {name} found in data", hint=f'Use "\\{letter}" to represent {name}.')
