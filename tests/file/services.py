"""Services for objects under test: stores of type FILE in each, and what another program has there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import boto3
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient
from moto.server import ThreadedMotoServer

from spark_sinks.file.objects.azure import AzureObjects
from spark_sinks.file.objects.base import ObjectStore
from spark_sinks.file.objects.options import ObjectOptions, object_options, service_of
from spark_sinks.file.objects.s3 import S3Objects
from tests.services import azure

SERVICES = ("s3", "azure")
TIMEOUT_S = 20.0


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
        kind = S3Objects if self.service.name == "s3" else AzureObjects
        return kind("s", self.options, TIMEOUT_S)

    # --- another program's view of it -------------------------------------------------------------------------------
    def _s3(self) -> Any:
        return boto3.client(
            "s3", endpoint_url=self.service.address, aws_access_key_id="a", aws_secret_access_key="b",
            region_name="us-east-1",
        )  # fmt: skip

    def _azure(self) -> Any:
        credential: Any = {"account_name": azure.ACCOUNT, "account_key": azure.KEY}
        return ContainerClient(self.service.address, self.name, credential=credential)

    def make(self) -> None:
        if self.service.name == "s3":
            self._s3().create_bucket(Bucket=self.name)
        else:
            self._azure().create_container()

    def put(self, key: str, content: bytes) -> None:
        if self.service.name == "s3":
            self._s3().put_object(Bucket=self.name, Key=key, Body=content)
        else:
            self._azure().upload_blob(key, content, overwrite=True)

    def delete(self, key: str) -> None:
        if self.service.name == "s3":
            self._s3().delete_object(Bucket=self.name, Key=key)
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
        found, container = {}, self._azure()
        for blob in container.list_blobs(name_starts_with=prefix):
            with suppress(ResourceNotFoundError):
                found[blob.name] = container.download_blob(blob.name).readall()
        return found


@contextmanager
def serving(name: str) -> Iterator[Service]:
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
