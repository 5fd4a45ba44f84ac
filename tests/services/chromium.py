"""A headless Chromium, driven by its own protocol. Debian's packages chromium and chromium-driver have it."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
)  # fmt: skip
START_S = 120.0


class Chromium:
    """One page of it. ``evaluate`` gives the value of a JavaScript expression there; a promise is waited for."""

    def __init__(self, program: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [program, *_FLAGS, f"--user-data-dir={self._folder.name}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._numbers = 0
        try:
            self._run(self._connect())
        except BaseException:
            self.close()
            raise

    async def _connect(self) -> None:
        deadline = time.monotonic() + START_S
        marker = Path(self._folder.name) / "DevToolsActivePort"
        self._http = aiohttp.ClientSession()
        while True:
            assert time.monotonic() < deadline, "Chromium did not start"
            assert self._process.poll() is None, "Chromium ended"
            try:
                port = marker.read_text().splitlines()[0]
                async with self._http.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    pages = [each for each in await answer.json() if each["type"] == "page"]
                self._socket = await self._http.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0)
            except (OSError, IndexError, aiohttp.ClientError):
                await asyncio.sleep(0.1)
            else:
                return

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_S)

    async def _ask(self, method: str, **parameters: Any) -> Any:
        self._numbers += 1
        await self._socket.send_str(json.dumps({"id": self._numbers, "method": method, "params": parameters}))
        while True:
            found = json.loads((await self._socket.receive()).data)
            if found.get("id") == self._numbers:
                assert "error" not in found, found
                return found["result"]

    def open(self, address: str) -> None:
        self._run(self._ask("Page.navigate", url=address))
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        found = self._run(self._ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True))
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, expression: str, seconds: float = START_S) -> None:
        deadline = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({expression})"):
            assert time.monotonic() < deadline, (
                f"{expression} did not come true: {self.evaluate('document.body.innerText')}"
            )
            time.sleep(0.05)

    def look(self, width: int, *, dark: bool = False, height: int = 900) -> None:
        """How wide the page is, and which colours its user prefers."""
        self._run(
            self._ask(
                "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
            )
        )
        self._run(self._ask("Emulation.setScrollbarsHidden", hidden=True))  # a page is as wide as it says
        colours = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._run(self._ask("Emulation.setEmulatedMedia", features=[colours]))

    def screenshot(self, path: Path) -> None:
        found = self._run(self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=True))
        path.write_bytes(base64.b64decode(found["data"]))

    def press(self, key: str, modifiers: int = 0) -> None:
        """A key as a person presses it; 2 among ``modifiers`` is Ctrl, 8 is Shift."""
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        text = {"Enter": "\r", " ": " "}.get(key, "") if not modifiers else ""
        given: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": codes[key], "modifiers": modifiers}
        self._run(self._ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **given))
        self._run(self._ask("Input.dispatchKeyEvent", type="keyUp", **given))

    def write(self, text: str) -> None:
        """Typed where the focus is."""
        self._run(self._ask("Input.insertText", text=text))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        if hasattr(self, "_http"):
            self._run(self._http.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._folder.cleanup()


@pytest.fixture
def chromium() -> Iterator[Chromium]:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    made = Chromium(program)
    yield made
    made.close()
