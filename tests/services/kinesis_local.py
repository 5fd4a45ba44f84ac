"""Another emulator of Kinesis, kinesis-local by npm: slower than the first one, with shards and ARNs as the service has
them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import botocore.exceptions
import pytest

from tests.services.installed import installed
from tests.services.kinesis import KinesisEmulator, npm_install

VERSION = "0.6.2"
ACCOUNT = "000000000000"
_START_TIMEOUT_S = 60.0
_DURATIONS = ("CREATE_STREAM", "DELETE_STREAM", "MERGE_SHARDS", "SPLIT_SHARD", "UPDATE_SHARD_COUNT")


def _install(folder: Path) -> None:
    npm_install(folder, f"kinesis-local@{VERSION}")


class KinesisLocal(KinesisEmulator):
    def start(self) -> KinesisLocal:
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed")
        program = installed(f"kinesis-local-{VERSION}", _install) / "node_modules" / "kinesis-local"
        with socket.socket() as probes, socket.socket() as others:
            for each in (probes, others):
                each.bind(("127.0.0.1", 0))
            self.port, unused = (each.getsockname()[1] for each in (probes, others))
        settings = {
            "KINESIS_MOCK_CERT_PATH": str(program / "server.json"),
            "KINESIS_MOCK_PLAIN_PORT": str(self.port),
            "KINESIS_MOCK_TLS_PORT": str(unused),
            "AWS_ACCOUNT_ID": ACCOUNT,
            "LOG_LEVEL": "ERROR",
            **{f"{name}_DURATION": "20ms" for name in _DURATIONS},
        }
        self._process = subprocess.Popen(
            ["node", str(program / "main.js")], stdout=subprocess.DEVNULL, text=True, env={**os.environ, **settings}
        )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._answers():
            assert self._process.poll() is None, "the emulator has ended"
            assert time.monotonic() < deadline, "the emulator does not answer"
            time.sleep(0.05)
        return self

    def _answers(self) -> bool:
        try:
            self.client().list_streams()
        except botocore.exceptions.BotoCoreError:
            return False
        return True
