"""What a result looks like on its way: a JSON document, JSON lines or an Arrow stream, chosen by Accept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field, Notice
from mvserver.http.arrow_rows import ArrowWriter
from mvserver.http.json_values import Numbers, RowWriter
from mvserver.http.status import RequestError
from mvserver.types.oids import type_name

JSON = "application/json"
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
STREAM = "text/event-stream"
_WILDCARDS = {"*/*": JSON, "application/*": JSON}
_ALIASES = {"application/ndjson": NDJSON, "application/jsonl": NDJSON}
_ROWS = ("object", "array")


@dataclass(frozen=True)
class Format:
    """What the client asked for. ``bare``: the JSON document is the rows alone."""

    media_type: str
    numbers: Numbers = Numbers.SAFE
    as_arrays: bool = False
    bare: bool = False

    @property
    def content_type(self) -> str:
        return f"{self.media_type}; charset=utf-8" if self.media_type == JSON else self.media_type


@dataclass(frozen=True)
class _Offer:
    media_type: str
    parameters: Mapping[str, str]
    quality: float


def negotiate(accept: str | None, *, bare: bool = False) -> Format:
    """406 where nothing of what the client accepts can be had."""
    offers = _offers(accept)
    refused = {offer.media_type for offer in offers if not offer.quality > 0}
    for offer in sorted(offers, key=lambda each: -each.quality):
        wanted = _WILDCARDS.get(offer.media_type) or _ALIASES.get(offer.media_type) or offer.media_type
        if offer.quality > 0 and wanted in (JSON, NDJSON, ARROW) and wanted not in refused:
            return _format(wanted, offer.parameters, bare)
    raise RequestError(406, "nothing of what is accepted can be had", hint=f"Accept {JSON}, {NDJSON} or {ARROW}.")


def wants_events(accept: str | None) -> bool:
    """Whether events are wanted at least as much as a document; 406 where neither is."""
    offers = _offers(accept)

    def quality(*ranges: str) -> float:
        """By the most exact range that is named."""
        of = [[offer.quality for offer in offers if offer.media_type == each] for each in ranges]
        return next((max(found) for found in of if found), 0.0)

    events, document = quality(STREAM, "text/*"), quality(JSON, "application/*", "*/*")
    if not (events > 0 or document > 0):
        raise RequestError(406, "nothing of what is accepted can be had", hint=f"Accept {STREAM} or {JSON}.")
    return events > 0 and not events < document


def _offers(accept: str | None) -> list[_Offer]:
    return [_offer(part) for part in (accept or "*/*").split(",") if part.strip()]


def _offer(part: str) -> _Offer:
    media_type, *rest = (piece.strip() for piece in part.split(";"))
    pairs = (piece.partition("=") for piece in rest)
    parameters = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
    try:
        quality = float(parameters.pop("q", "1"))
    except ValueError:
        raise RequestError(400, f'malformed Accept header: "{part.strip()[:100]}"') from None
    return _Offer(media_type.lower(), parameters, quality)


def _format(media_type: str, parameters: Mapping[str, str], bare: bool) -> Format:
    known = {"numbers": tuple(each.value for each in Numbers), "rows": _ROWS, "charset": None, "version": None}
    for name, value in parameters.items():
        if name not in known or (known[name] is not None and value not in (known[name] or ())):
            raise RequestError(
                406,
                f'Accept has an unknown parameter "{name}={value}"'[:200],
                hint="Parameters are numbers=safe, exact or string, and rows=object or array.",
            )
    rows = parameters.get("rows", "object")
    return Format(media_type, Numbers(parameters.get("numbers", "safe")), rows == "array", bare)


class Writer(Protocol):
    """The body of a result, piece by piece."""

    def begin(self) -> bytes: ...

    def rows(self, batch: Any) -> bytes: ...

    def end(self, tag: str, notices: Sequence[Notice]) -> bytes: ...


def writer(form: Format, fields: Sequence[Field], zone: str) -> Writer:
    """42701 where rows as objects would lose a column."""
    if form.media_type == ARROW:
        return ArrowWriter(fields, zone)
    if not form.as_arrays:
        _refuse_doubled(fields)
    rows = RowWriter(fields, zone, form.numbers, as_arrays=form.as_arrays)
    return _Lines(rows) if form.media_type == NDJSON else _Document(rows, fields, form.bare)


def _refuse_doubled(fields: Sequence[Field]) -> None:
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            raise SqlError(
                sqlstates.DUPLICATE_COLUMN,
                f'column "{field.name}" is in the result more than once',
                hint="Name the columns apart with AS, or accept application/json; rows=array.",
            )
        seen.add(field.name)


class _Lines:
    def __init__(self, rows: RowWriter) -> None:
        self._rows = rows

    def begin(self) -> bytes:
        return b""

    def rows(self, batch: Any) -> bytes:
        return b"".join([row + b"\n" for row in self._rows.rows(batch)])

    def end(self, tag: str, notices: Sequence[Notice]) -> bytes:
        return b""


class _Document:
    def __init__(self, rows: RowWriter, fields: Sequence[Field], bare: bool) -> None:
        self._rows = rows
        self._fields = fields
        self._bare = bare
        self._separator = b"\n"

    def begin(self) -> bytes:
        if self._bare:
            return b"["
        columns = [{"name": field.name, "type": type_name(field.type_oid)} for field in self._fields]
        return b'{"columns":' + json.dumps(columns, ensure_ascii=False).encode("utf-8", "replace") + b',"rows":['

    def rows(self, batch: Any) -> bytes:
        found = self._rows.rows(batch)
        if not found:
            return b""
        written = self._separator + b",\n".join(found)
        self._separator = b",\n"
        return written

    def end(self, tag: str, notices: Sequence[Notice]) -> bytes:
        if self._bare:
            return b"]\n"
        return b"]," + outcome(tag, notices)[1:]


def outcome(tag: str, notices: Sequence[Notice]) -> bytes:
    """The document of a statement without rows, and the end of one with rows."""
    shown = {"command": tag, "notices": [_notice(each) for each in notices]}
    return json.dumps(shown, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _notice(notice: Notice) -> Mapping[str, str | None]:
    return {
        "severity": notice.severity,
        "code": notice.sqlstate,
        "message": notice.message,
        "detail": notice.detail,
        "hint": notice.hint,
    }
