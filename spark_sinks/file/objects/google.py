"""Google's Cloud Storage, by its JSON API: a bucket.

An object's version is its generation, which each request names that may not meet another content.
"""

from __future__ import annotations

import base64
import io
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, quote, urlsplit

from spark_sinks.file.objects.base import OtherVersion, StoredObject, not_understood, refused, unreachable
from spark_sinks.file.objects.options import ObjectOptions

ADDRESS = "https://storage.googleapis.com"
TOKEN_ADDRESS = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address; a key's own is not asked
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_TYPE = "application/octet-stream"
_CHUNK_BYTES = 1024 * 1024
_PART_BYTES = 64 * 1024 * 1024
_UNIT_BYTES = 256 * 1024
"""The service takes parts of an upload in multiples of this, but for the last one."""
_CONDITION, _GONE, _ENDED, _MORE_TO_COME = 412, 404, 410, 308
_UNKNOWN, _NOT_ALLOWED = 401, 403
_RETRIES, _RETRIED = 2, (429, 500, 502, 503, 504)


class GoogleObjects:
    """A :class:`spark_sinks.file.objects.base.ObjectStore` of one bucket."""

    def __init__(self, store: str, options: ObjectOptions, timeout_s: float, *, retries: int = _RETRIES) -> None:
        self._store = store
        self._options = options
        self._timeout_s = timeout_s
        self._retries = retries
        address, bucket = options.endpoint or ADDRESS, options.container
        self._objects = f"{address}/storage/v1/b/{bucket}/o"
        self._uploads = f"{address}/upload/storage/v1/b/{bucket}/o"
        self._lock = threading.Lock()
        self._opened: Any = None

    def check(self, prefix: str) -> None:
        with closing(GoogleObjects(self._store, self._options, self._timeout_s, retries=0)) as once:
            once._page(prefix, {"maxResults": 1})

    def list(self, prefix: str) -> Iterator[StoredObject]:
        for page in self._pages(prefix, fields="items(name,size,generation,updated),nextPageToken"):
            for item in page.get("items", ()):
                yield StoredObject(item["name"], int(item["size"]), _nanoseconds(item["updated"]), item["generation"])

    def folders(self, prefix: str) -> Iterator[str]:
        for page in self._pages(prefix, delimiter="/", fields="prefixes,nextPageToken"):
            for found in page.get("prefixes", ()):
                yield found.removeprefix(_below(prefix)).rstrip("/")

    def download(self, key: str, version: str, target: Path, stopped: Callable[[], bool]) -> None:
        with (
            self._answer("GET", self._of(key), (_GONE, _CONDITION), params=_content(version), stream=True) as answer,
            target.open("xb") as file,
        ):
            while chunk := answer.raw.read(_CHUNK_BYTES, decode_content=False):
                if stopped():
                    return
                file.write(chunk)

    def read(self, key: str) -> tuple[bytes, str] | None:
        try:
            with self._answer("GET", self._of(key), (_GONE,), params=_content(None), stream=True) as answer:
                return answer.raw.read(decode_content=False), answer.headers["x-goog-generation"]
        except OtherVersion:
            return None

    def put(self, key: str, content: bytes, replacing: str | None) -> str:
        with self._upload(key, io.BytesIO(content), len(content), replacing) as answer:
            return str(answer.json()["generation"])

    def put_file(self, key: str, path: Path) -> None:
        with path.open("rb") as file, self._upload(key, file, path.stat().st_size, None):
            return

    def _upload(self, key: str, content: BinaryIO, size: int, replacing: str | None) -> Any:
        body = _Body(content, size)
        params = {"uploadType": "multipart", "name": key, "ifGenerationMatch": replacing or "0"}
        headers = {"Content-Type": f"multipart/related; boundary={body.boundary}"}
        return self._answer("POST", self._uploads, (_CONDITION, _GONE), params=params, data=body, headers=headers)

    def delete(self, key: str) -> None:
        try:
            with self._answer("DELETE", self._of(key), (_GONE,)):
                return
        except OtherVersion:
            return

    def begin(self, key: str, content: bytes) -> str:
        """A resumable upload whose last part is still to come. That part is kept with what is returned."""
        params = {"uploadType": "resumable", "name": key, "ifGenerationMatch": "0"}
        with self._answer("POST", self._uploads, params=params, data=b"") as answer:
            (upload,) = parse_qs(urlsplit(answer.headers["location"]).query)["upload_id"]
        taken = len(content) // _UNIT_BYTES * _UNIT_BYTES
        for start in range(0, taken, _PART_BYTES):
            part = content[start : min(start + _PART_BYTES, taken)]
            self._send(key, upload, part, f"{start}-{start + len(part) - 1}/*")
        return json.dumps({"upload": upload, "at": taken, "rest": base64.b64encode(content[taken:]).decode()})

    def finish(self, key: str, begun: str) -> None:
        """An upload that has ended answers so, and later is not known any more."""
        left = json.loads(begun)
        rest, start = base64.b64decode(left["rest"]), left["at"]
        whole = start + len(rest)
        try:
            self._send(key, left["upload"], rest, f"{start}-{whole - 1}/{whole}" if rest else f"*/{whole}", ended=True)
        except OtherVersion:
            return

    def _send(self, key: str, upload: str, part: bytes, where: str, *, ended: bool = False) -> None:
        """The address is made anew, since a note could name any; the service's own has the same form."""
        params = {"uploadType": "resumable", "name": key, "upload_id": upload}
        other = (_GONE, _ENDED, _CONDITION) if ended else ()
        headers = {"Content-Range": f"bytes {where}"}
        with self._answer("PUT", self._uploads, other, params=params, data=part, headers=headers) as answer:
            if (answer.status_code == _MORE_TO_COME) == ended or not _has_taken(answer, where, ended=ended):
                raise unreachable(self._store, self._options.place, OSError("An upload has not taken a part of it."))

    def abandon(self, prefix: str, names: str) -> None:
        """The service forgets uploads that have not ended within a week."""

    def close(self) -> None:
        with self._lock:
            if self._opened is not None:
                self._opened.close()

    # --- requests ---------------------------------------------------------------------------------------------------
    def _of(self, key: str) -> str:
        return f"{self._objects}/{quote(key, safe='')}"

    def _page(self, prefix: str, params: dict[str, Any]) -> dict[str, Any]:
        with self._answer("GET", self._objects, params={"prefix": _below(prefix), **params}) as answer:
            found = answer.json()
        if not isinstance(found, dict):
            raise not_understood(self._store, self._options.place, ValueError("It is no list of a bucket"))
        return found

    def _pages(self, prefix: str, **params: str) -> Iterator[dict[str, Any]]:
        token: dict[str, str] = {}
        while True:
            page = self._page(prefix, {**params, **token})
            yield page
            if "nextPageToken" not in page:
                return
            token = {"pageToken": page["nextPageToken"]}

    @contextmanager
    def _answer(self, method: str, address: str, other: tuple[int, ...] = (), **more: Any) -> Iterator[Any]:
        """OtherVersion for a status of ``other``; 42501 where it refuses who asks, 08006 else."""
        from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, RefreshError
        from requests import RequestException
        from urllib3.exceptions import HTTPError

        headers = {"Accept-Encoding": "gzip", **more.pop("headers", {})}  # else what is compressed comes taken apart
        more.update(headers=headers, timeout=self._timeout_s, allow_redirects=False)
        try:
            with closing(self._session().request(method, address, **more)) as answer:
                if answer.status_code in other:
                    raise OtherVersion
                if answer.status_code in (_UNKNOWN, _NOT_ALLOWED):
                    unknown = answer.status_code == _UNKNOWN
                    raise refused(self._store, self._options.place, OSError(_words(answer)), credentials=unknown)
                if answer.status_code >= 400:
                    raise unreachable(self._store, self._options.place, OSError(_words(answer)))
                yield answer
        except (DefaultCredentialsError, RefreshError) as error:
            if error.retryable:
                raise unreachable(self._store, self._options.place, error) from error
            raise refused(self._store, self._options.place, error, credentials=True) from error
        except (GoogleAuthError, RequestException, HTTPError) as error:
            raise unreachable(self._store, self._options.place, error) from error

    def _session(self) -> Any:
        with self._lock:
            if self._opened is None:
                self._opened = _session(self._options, self._timeout_s, self._retries)
            return self._opened


class _Body:
    """What is said of an object, which is nothing, and its content, as one request has them."""

    def __init__(self, content: BinaryIO, size: int) -> None:
        self.boundary = uuid.uuid4().hex
        said = "Content-Type: application/json\r\n\r\n{}"
        self._head = f"--{self.boundary}\r\n{said}\r\n--{self.boundary}\r\nContent-Type: {_TYPE}\r\n\r\n".encode()
        self._tail = f"\r\n--{self.boundary}--\r\n".encode()
        self._content, self._size = content, size

    def __len__(self) -> int:
        return len(self._head) + self._size + len(self._tail)

    def __iter__(self) -> Iterator[bytes]:
        yield self._head
        while chunk := self._content.read(_CHUNK_BYTES):
            yield chunk
        yield self._tail


def _session(options: ObjectOptions, timeout_s: float, retries: int) -> Any:
    from google.auth.transport.requests import AuthorizedSession, Request
    from requests import Session
    from requests.adapters import HTTPAdapter
    from urllib3 import Retry

    retry = Retry(
        retries, backoff_factor=1, status_forcelist=_RETRIED, allowed_methods=("GET", "DELETE"), raise_on_status=False,
    )  # fmt: skip
    asking = Session()  # for tokens
    session = AuthorizedSession(
        _credentials(options),
        refresh_status_codes=(401,) if options.token is None else (),  # a token that was given is not renewed
        auth_request=partial(Request(asking), timeout=timeout_s),
    )
    for each in (session, asking):
        for scheme in ("http://", "https://"):
            each.mount(scheme, HTTPAdapter(max_retries=retry))
    return session


def _credentials(options: ObjectOptions) -> Any:
    """Those of the statement, or else the server's own by the client's chain."""
    if options.token is not None:
        from google.oauth2.credentials import Credentials

        return Credentials(token=options.token)
    if options.secret is not None:
        from google.oauth2.service_account import Credentials as OfAccount

        key = {**json.loads(options.secret), "token_uri": TOKEN_ADDRESS}
        return OfAccount.from_service_account_info(key, scopes=[_SCOPE])
    import google.auth

    return google.auth.default(scopes=[_SCOPE])[0]


def _content(version: str | None) -> dict[str, str]:
    return {"alt": "media"} if version is None else {"alt": "media", "generation": version}


def _has_taken(answer: Any, where: str, *, ended: bool) -> bool:
    """Of a part that is not the last, whether all of it has arrived."""
    if ended:
        return True
    end = where.partition("-")[2].partition("/")[0]
    return str(answer.headers.get("range", "")).endswith(f"-{end}")


def _words(answer: Any) -> str:
    try:
        words = answer.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        words = ""
    return words or f"It answers {answer.status_code} {answer.reason}"


def _nanoseconds(updated: str) -> int:
    return int(datetime.fromisoformat(updated).timestamp() * 1000) * 1_000_000


def _below(prefix: str) -> str:
    return f"{prefix}/" if prefix else ""
