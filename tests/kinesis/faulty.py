"""A client of boto3 whose answers a test changes on their way, as the service would give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from spark_sinks.kinesis.api import Service
from spark_sinks.kinesis.options import KinesisOptions
from tests.services.kinesis import KEY, REGION, SECRET, KinesisEmulator


def options(emulator: KinesisEmulator) -> KinesisOptions:
    return KinesisOptions.from_properties(
        {
            "uris": emulator.endpoint,
            "access.region": REGION,
            "kinesis.access_key_id": KEY,
            "kinesis.secret_access_key": SECRET,
        }
    )


def refusal(code: str, operation: str = "GetRecords") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": f"{code} by the test"}}, operation)


class Faulty:
    """``faults`` are functions of (the true operation, its arguments), by the operation's name."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.faults: dict[str, Callable[..., Any]] = {}
        self.calls: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        true = getattr(self._client, name)
        if name == "close":
            return true

        def called(**arguments: Any) -> Any:
            self.calls[name] = self.calls.get(name, 0) + 1
            fault = self.faults.get(name)
            return true(**arguments) if fault is None else fault(true, arguments)

        return called


def made_faulty(service: Service) -> Faulty:
    faulty = Faulty(service._connected())
    service._client = faulty
    return faulty
