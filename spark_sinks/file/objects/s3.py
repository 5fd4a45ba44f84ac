"""S3, and services that speak its protocol and honour its conditional writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from spark_sinks.file.objects.base import OtherVersion, StoredObject, not_understood, refused, unreachable
from spark_sinks.file.objects.options import ObjectOptions

_CHUNK_BYTES = 1024 * 1024
_OTHER = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "404", "412", "409")
_GONE = ("NoSuchKey", "404")
_NO_UPLOAD = ("NoSuchUpload", "404")
_PART_BYTES = 64 * 1024 * 1024
_UNKNOWN = frozenset(
    {
        "InvalidAccessKeyId", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "ExpiredToken", "InvalidToken",
        "TokenRefreshRequired", "AuthorizationHeaderMalformed", "401",
    }
)  # fmt: skip
_NOT_ALLOWED = frozenset({"AccessDenied", "AllAccessDisabled", "AccountProblem", "403"})
_ATTEMPTS = 3


class S3Objects:
    """A :class:`spark_sinks.file.objects.base.ObjectStore` of one bucket."""

    def __init__(self, store: str, options: ObjectOptions, timeout_s: float) -> None:
        self._store = store
        self._options = options
        self._timeout_s = timeout_s
        self._place = options.place
        self._bucket = options.container
        self._client = self._connected(_ATTEMPTS)

    def _connected(self, attempts: int) -> Any:
        import boto3
        from botocore.config import Config

        options, timeout_s = self._options, self._timeout_s
        client: Any = boto3.client(
            "s3",
            region_name=options.region,
            endpoint_url=options.endpoint,
            aws_access_key_id=options.key,
            aws_secret_access_key=options.secret,
            aws_session_token=options.token,
            config=Config(connect_timeout=timeout_s, read_timeout=timeout_s, retries={"total_max_attempts": attempts}),
        )
        client.meta.events.register("before-call.s3.HeadBucket", _sent_elsewhere)
        return client

    def check(self, prefix: str) -> None:
        with self._reported(), closing(self._connected(attempts=1)) as once:
            found = once.list_objects_v2(Bucket=self._bucket, Prefix=_below(prefix), MaxKeys=1)
        if "Name" not in found:  # any page that is read as XML lists nothing
            raise not_understood(self._store, self._place, ValueError("It is no list of a bucket"))

    def list(self, prefix: str) -> Iterator[StoredObject]:
        with self._reported():
            for page in self._pages(prefix):
                for item in page.get("Contents", ()):
                    mtime_ns = int(item["LastModified"].timestamp() * 1000) * 1_000_000
                    yield StoredObject(item["Key"], item["Size"], mtime_ns, item["ETag"])

    def folders(self, prefix: str) -> Iterator[str]:
        with self._reported():
            for page in self._pages(prefix, Delimiter="/"):
                for item in page.get("CommonPrefixes", ()):
                    yield item["Prefix"].removeprefix(_below(prefix)).rstrip("/")

    def _pages(self, prefix: str, **more: str) -> Any:
        return self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=_below(prefix), **more
        )

    def download(self, key: str, version: str, target: Path, stopped: Callable[[], bool]) -> None:
        with self._reported(other=_OTHER):
            answer = self._client.get_object(Bucket=self._bucket, Key=key, IfMatch=version)
            with closing(answer["Body"]) as body, target.open("xb") as file:
                for chunk in body.iter_chunks(_CHUNK_BYTES):
                    if stopped():
                        return
                    file.write(chunk)

    def read(self, key: str) -> tuple[bytes, str] | None:
        try:
            with self._reported(other=_GONE):
                answer = self._client.get_object(Bucket=self._bucket, Key=key)
                with closing(answer["Body"]) as body:
                    return body.read(), answer["ETag"]
        except OtherVersion:
            return None

    def put(self, key: str, content: bytes, replacing: str | None) -> str:
        condition = {"IfNoneMatch": "*"} if replacing is None else {"IfMatch": replacing}
        with self._reported(other=_OTHER):
            return str(self._client.put_object(Bucket=self._bucket, Key=key, Body=content, **condition)["ETag"])

    def put_file(self, key: str, path: Path) -> None:
        size = path.stat().st_size
        with self._reported(other=_OTHER), path.open("rb") as file:
            if size <= _PART_BYTES:
                self._client.put_object(Bucket=self._bucket, Key=key, Body=file, IfNoneMatch="*")
                return
            upload = self._client.create_multipart_upload(Bucket=self._bucket, Key=key)["UploadId"]
            named = {"Bucket": self._bucket, "Key": key, "UploadId": upload}
            try:
                parts: list[dict[str, Any]] = []
                while content := file.read(_PART_BYTES):
                    number = len(parts) + 1
                    parts.append({"PartNumber": number, "ETag": self._part(named, number, content)})
                self._client.complete_multipart_upload(**named, MultipartUpload={"Parts": parts}, IfNoneMatch="*")
            except BaseException:
                self._client.abort_multipart_upload(**named)
                raise

    def _part(self, named: dict[str, str], number: int, content: bytes) -> str:
        return str(self._client.upload_part(**named, PartNumber=number, Body=content)["ETag"])

    def delete(self, key: str) -> None:
        with self._reported():
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def begin(self, key: str, content: bytes) -> str:
        """An upload in parts, whose end is still to come."""
        with self._reported():
            upload = self._client.create_multipart_upload(Bucket=self._bucket, Key=key)["UploadId"]
            named = {"Bucket": self._bucket, "Key": key, "UploadId": upload}
            for number, begin in enumerate(range(0, len(content), _PART_BYTES), start=1):
                self._part(named, number, content[begin : begin + _PART_BYTES])
            return str(upload)

    def finish(self, key: str, begun: str) -> None:
        named = {"Bucket": self._bucket, "Key": key, "UploadId": begun}
        try:
            with self._reported(other=_NO_UPLOAD):  # an upload that has ended is not there
                pages = self._client.get_paginator("list_parts").paginate(**named)
                parts = [
                    {"PartNumber": part["PartNumber"], "ETag": part["ETag"]}
                    for page in pages
                    for part in page.get("Parts", ())
                ]
                self._client.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})
        except OtherVersion:
            return

    def abandon(self, prefix: str, names: str) -> None:
        with self._reported(other=_NO_UPLOAD):
            pages = self._client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self._bucket, Prefix=_below(prefix)
            )
            uploads = [upload for page in pages for upload in page.get("Uploads", ())]
            for upload in uploads:
                key, begun = upload["Key"], upload["UploadId"]
                if key.rpartition("/")[2].startswith(names):
                    self._client.abort_multipart_upload(Bucket=self._bucket, Key=key, UploadId=begun)

    def close(self) -> None:
        self._client.close()

    @contextmanager
    def _reported(self, other: tuple[str, ...] = ()) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code")
            if code in other:
                raise OtherVersion from error
            if code in _UNKNOWN or code in _NOT_ALLOWED:
                raise refused(self._store, self._place, error, credentials=code in _UNKNOWN) from error
            raise unreachable(self._store, self._place, error) from error
        except NoCredentialsError as error:
            raise refused(self._store, self._place, error, credentials=True) from error
        except BotoCoreError as error:
            raise unreachable(self._store, self._place, error) from error


def _sent_elsewhere(**request: Any) -> None:
    """The client asks so for the region of a bucket, where the service sends it elsewhere and does not say where to. It
    would ask without end."""
    from botocore.exceptions import HTTPClientError

    raise HTTPClientError(error="it sends requests elsewhere, and does not say where to")


def _below(prefix: str) -> str:
    return f"{prefix}/" if prefix else ""
