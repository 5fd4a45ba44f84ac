"""Services for objects under test: stores of type FILE in each, and what another program has there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import boto3
import requests
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient
from moto.server import ThreadedMotoServer

from spark_sinks.file.objects.azure import AzureObjects
from spark_sinks.file.objects.base import ObjectStore
from spark_sinks.file.objects.google import GoogleObjects
from spark_sinks.file.objects.options import AZURE, GOOGLE, S3, ObjectOptions, object_options, service_of
from spark_sinks.file.objects.s3 import S3Objects
from tests.services import azure, google

SERVICES = ("s3", "azure", "google")
_STORES: dict[str, type[S3Objects | AzureObjects | GoogleObjects]] = {
    S3.name: S3Objects, AZURE.name: AzureObjects, GOOGLE.name: GoogleObjects,
}  # fmt: skip
TIMEOUT_S = 20.0


def store_of(options: ObjectOptions, timeout_s: float) -> ObjectStore:
    return _STORES[options.service.name]("s", options, timeout_s)


@dataclass
class Service:
    """A service with its address; each :meth:`place` is a bucket of its own."""

    name: str
    address: str

    def place(self) -> Bucket:
        bucket = f"b{uuid.uuid4().hex[:16]}"
        if self.name == "s3":
            properties = {
                "uris": f"s3://{bucket}/lake/in", "aws.access_key_id": "a", "aws.secret_access_key": "b",
                "s3.endpoint": self.address, "access.region": "us-east-1",
            }  # fmt: skip
        elif self.name == "google":
            properties = {"uris": f"gs://{bucket}/lake/in", "gcs.token": google.TOKEN, "gcs.endpoint": self.address}
        else:
            properties = {
                "uris": f"abfss://{bucket}@{azure.ACCOUNT}.dfs.core.windows.net/lake/in",
                "azure.account_key": azure.KEY, "azure.endpoint": self.address,
            }  # fmt: skip
        made = Bucket(self, bucket, properties)
        made.make()
        return made


@dataclass
class Bucket:
    service: Service
    name: str
    properties: dict[str, str]

    @property
    def statement(self) -> str:
        return "'type' = FILE, " + ", ".join(f"'{key}' = '{value}'" for key, value in self.properties.items())

    @property
    def options(self) -> ObjectOptions:
        service = service_of(self.properties["uris"])
        assert service is not None
        return object_options(service, self.properties)

    def store(self) -> ObjectStore:
        return store_of(self.options, TIMEOUT_S)

    # --- another program's view of it -------------------------------------------------------------------------------
    def _s3(self) -> Any:
        return boto3.client(
            "s3", endpoint_url=self.service.address, aws_access_key_id="a", aws_secret_access_key="b",
            region_name="us-east-1",
        )  # fmt: skip

    def _azure(self) -> Any:
        credential: Any = {"account_name": azure.ACCOUNT, "account_key": azure.KEY}
        return ContainerClient(self.service.address, self.name, credential=credential)

    def _google(self, method: str, path: str, **more: Any) -> requests.Response:
        answer = requests.request(method, f"{self.service.address}{path}", timeout=TIMEOUT_S, **more)
        if answer.status_code != 404:
            answer.raise_for_status()
        return answer

    def _google_object(self, key: str) -> str:
        return f"/storage/v1/b/{self.name}/o/{quote(key, safe='')}"

    def make(self) -> None:
        if self.service.name == "s3":
            self._s3().create_bucket(Bucket=self.name)
        elif self.service.name == "google":
            self._google("POST", "/storage/v1/b", json={"name": self.name})
        else:
            self._azure().create_container()

    def put(self, key: str, content: bytes) -> None:
        if self.service.name == "s3":
            self._s3().put_object(Bucket=self.name, Key=key, Body=content)
        elif self.service.name == "google":
            named = {"uploadType": "media", "name": key}
            self._google("POST", f"/upload/storage/v1/b/{self.name}/o", params=named, data=content)
        else:
            self._azure().upload_blob(key, content, overwrite=True)

    def delete(self, key: str) -> None:
        if self.service.name == "s3":
            self._s3().delete_object(Bucket=self.name, Key=key)
        elif self.service.name == "google":
            self._google("DELETE", self._google_object(key))
        else:
            self._azure().delete_blob(key)

    def contents(self, prefix: str = "") -> dict[str, bytes]:
        if self.service.name == "s3":
            client = self._s3()
            keys = [
                item["Key"]
                for page in client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
                for item in page.get("Contents", ())
            ]
            found = {}
            for key in keys:
                with suppress(client.exceptions.NoSuchKey):  # gone since it was listed
                    found[key] = client.get_object(Bucket=self.name, Key=key)["Body"].read()
            return found
        if self.service.name == "google":
            return self._google_contents(prefix)
        found, container = {}, self._azure()
        for blob in container.list_blobs(name_starts_with=prefix):
            with suppress(ResourceNotFoundError):
                found[blob.name] = container.download_blob(blob.name).readall()
        return found

    def _google_contents(self, prefix: str) -> dict[str, bytes]:
        found, token = {}, ""
        while True:
            asked = {"prefix": prefix, "pageToken": token}
            page = self._google("GET", f"/storage/v1/b/{self.name}/o", params=asked).json()
            for item in page.get("items", ()):
                answer = self._google("GET", self._google_object(item["name"]), params={"alt": "media"})
                if answer.status_code != 404:  # gone since it was listed
                    found[item["name"]] = answer.content
            if not (token := page.get("nextPageToken", "")):
                return found


@contextmanager
def serving(name: str) -> Iterator[Service]:
    if name == "google":
        with google.fake_gcs_server() as address:
            yield Service(name, address)
        return
    if name == "azure":
        with azure.azurite() as address:
            yield Service(name, address)
        return
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield Service(name, f"http://{host}:{port}")
    finally:
        server.stop()
