"""Azure's Blob Storage, which ADLS Gen2 is made of: an account's container."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spark_sinks.file.objects.base import OtherVersion, StoredObject, not_understood, refused, unreachable
from spark_sinks.file.objects.options import ObjectOptions

_BLOCK_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 4 * 1024 * 1024
_CONDITION, _CONFLICT, _GONE, _WRONG = 412, 409, 404, 400
_REFUSED, _UNKNOWN = (401, 403), ("AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation")


class AzureObjects:
    """A :class:`spark_sinks.file.objects.base.ObjectStore` of one container."""

    def __init__(self, store: str, options: ObjectOptions, timeout_s: float) -> None:
        from azure.storage.blob import ContainerClient, LinearRetry

        self._store = store
        self._place = options.place
        self._client: Any = ContainerClient(
            options.endpoint or f"https://{options.account}.blob.core.windows.net",
            options.container,
            credential=_credential(options),
            connection_timeout=timeout_s,
            read_timeout=timeout_s,
            retry_policy=LinearRetry(backoff=1, retry_total=2),
            max_chunk_get_size=_CHUNK_BYTES,
            max_single_get_size=_CHUNK_BYTES,
        )

    def check(self, prefix: str) -> None:
        with self._reported():
            found = self._client.list_blobs(name_starts_with=_below(prefix), results_per_page=1, retry_total=0)
            next(iter(found), None)

    def list(self, prefix: str) -> Iterator[StoredObject]:
        with self._reported():
            for blob in self._client.list_blobs(name_starts_with=_below(prefix), include=["metadata"]):
                if (blob.metadata or {}).get("hdi_isfolder") != "true":  # a folder of an account with names of its own
                    mtime_ns = int(blob.last_modified.timestamp() * 1000) * 1_000_000
                    yield StoredObject(blob.name, blob.size, mtime_ns, blob.etag)

    def folders(self, prefix: str) -> Iterator[str]:
        from azure.storage.blob import BlobPrefix

        with self._reported():
            for found in self._client.walk_blobs(name_starts_with=_below(prefix), delimiter="/"):
                if isinstance(found, BlobPrefix):
                    yield found.name.removeprefix(_below(prefix)).rstrip("/")

    def download(self, key: str, version: str, target: Path, stopped: Callable[[], bool]) -> None:
        with self._reported(_CONDITION, _GONE):
            chunks = self._client.download_blob(key, etag=version, match_condition=_same()).chunks()
            with target.open("xb") as file:
                for chunk in chunks:
                    if stopped():
                        return
                    file.write(chunk)

    def read(self, key: str) -> tuple[bytes, str] | None:
        try:
            with self._reported(_GONE):
                found = self._client.download_blob(key)
                return found.readall(), found.properties.etag
        except OtherVersion:
            return None

    def put(self, key: str, content: bytes, replacing: str | None) -> str:
        condition: dict[str, Any] = {"overwrite": False}
        if replacing is not None:
            condition = {"overwrite": True, "etag": replacing, "match_condition": _same()}
        with self._reported(_CONDITION, _CONFLICT, _GONE):
            return str(self._client.get_blob_client(key).upload_blob(content, **condition)["etag"])

    def put_file(self, key: str, path: Path) -> None:
        with self._reported(_CONDITION, _CONFLICT), path.open("rb") as file:
            self._client.upload_blob(key, file, overwrite=False)

    def delete(self, key: str) -> None:
        try:
            with self._reported(_GONE):
                self._client.delete_blob(key)
        except OtherVersion:
            return

    def begin(self, key: str, content: bytes) -> str:
        """Blocks that no list of blocks has yet."""
        begun = uuid.uuid4().hex
        blob = self._client.get_blob_client(key)
        count = 0
        with self._reported():
            for begin in range(0, len(content), _BLOCK_BYTES):
                blob.stage_block(_block(begun, count), content[begin : begin + _BLOCK_BYTES])
                count += 1
        return f"{begun}:{count}"

    def finish(self, key: str, begun: str) -> None:
        """The service takes a list only of blocks that it has: those of a blob that was taken away are gone with it."""
        from azure.storage.blob import BlobBlock

        name, count = begun.split(":")
        blocks = [BlobBlock(_block(name, at)) for at in range(int(count))]
        try:
            with self._reported(_CONDITION, _CONFLICT, _WRONG):
                self._client.get_blob_client(key).commit_block_list(
                    blocks, match_condition=_absent(), validate_content=False
                )
        except OtherVersion:
            return

    def abandon(self, prefix: str, names: str) -> None:
        """The service forgets blocks of no list within a week."""

    def close(self) -> None:
        self._client.close()

    @contextmanager
    def _reported(self, *other: int) -> Iterator[None]:
        from azure.core.exceptions import AzureError, HttpResponseError

        try:
            yield
        except HttpResponseError as error:
            if error.status_code in other:
                raise OtherVersion from error
            if error.status_code in _REFUSED:
                unknown = error.status_code == _REFUSED[0] or getattr(error, "error_code", None) in _UNKNOWN
                raise refused(self._store, self._place, error, credentials=unknown) from error
            raise unreachable(self._store, self._place, error) from error
        except AzureError as error:
            raise unreachable(self._store, self._place, error) from error
        except (ValueError, TypeError, AttributeError) as error:  # of the client, for an odd answer
            raise not_understood(self._store, self._place, error) from error


def _credential(options: ObjectOptions) -> Any:
    if options.secret is not None:
        return {"account_name": options.account, "account_key": options.secret}
    return options.token


def _same() -> Any:
    from azure.core import MatchConditions

    return MatchConditions.IfNotModified


def _absent() -> Any:
    from azure.core import MatchConditions

    return MatchConditions.IfMissing


def _block(begun: str, at: int) -> str:
    return base64.b64encode(f"{begun}-{at:06d}".encode()).decode()


def _below(prefix: str) -> str:
    return f"{prefix}/" if prefix else ""
