"""Chromium over its debugging pipe, for tests that must see what a reader sees."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conftest import Ran

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


def chromium() -> str | None:
    """Return the browser's program, or None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page in a browser of its own; ``events`` keeps everything it reported."""

    def __init__(self, profile: Path, program: str) -> None:
        commands_read, self._commands = os.pipe()
        self._answers, answers_write = os.pipe()
        self.events: list[dict[str, Any]] = []
        self._waiting = b""
        self._count = 0
        # The browser reads its descriptor 3 and writes its descriptor 4.
        shell = f'exec "$0" "$@" 3<&{commands_read} 4>&{answers_write}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", shell, program, *_FLAGS, f"--user-data-dir={profile}",
             "about:blank"],
            pass_fds=(commands_read, answers_write),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands_read)
        os.close(answers_write)
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    _session: str | None = None

    def send(self, method: str, **params: Any) -> Any:
        """Send one command and return its result."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self, within_s: float = 30.0) -> dict[str, Any]:
        until = time.monotonic() + within_s
        while b"\0" not in self._waiting:
            ready, _, _ = select.select([self._answers], [], [], max(0, until - time.monotonic()))
            chunk = os.read(self._answers, 1 << 20) if ready else b""
            if not chunk:
                raise RuntimeError("the browser does not answer")
            self._waiting += chunk
        raw, _, self._waiting = self._waiting.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, page: Path) -> None:
        """Open a file and wait until it is loaded."""
        seen = len(self.events)
        self.send("Page.navigate", url=page.as_uri())
        while not any(e["method"] == "Page.loadEventFired" for e in self.events[seen:]):
            self._next()

    def reset(self) -> None:
        """Forget every page and event, and what the screen was said to be."""
        self.send("Emulation.clearDeviceMetricsOverride")
        self.send("Emulation.setEmulatedMedia", media="", features=[])
        self.send("Emulation.setScriptExecutionDisabled", value=False)
        self.events.clear()
        self.send("Page.navigate", url="about:blank")
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self._next()
        self.events.clear()

    def value(self, expression: str) -> Any:
        """Return what a JavaScript expression is in the page."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["text"])
        return result["result"].get("value")

    def paper(self) -> bytes:
        """Return the page printed on A4, as PDF."""
        printed = self.send(
            "Page.printToPDF", paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=True
        )
        return base64.b64decode(printed["data"])

    def troubles(self) -> list[str]:
        """Return errors of the console, of scripts and of the security policy."""
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(event["params"]))
            entry = event["params"].get("entry", {})
            if event["method"] == "Log.entryAdded" and entry["level"] in {"error", "warning"}:
                found.append(entry["text"])
            if event["method"] == "Runtime.consoleAPICalled":
                found.append(json.dumps(event["params"]["args"]))
        return found

    def addresses(self) -> list[str]:
        """Return every address that was asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        os.close(self._commands)
        os.close(self._answers)


def opened(browser: Browser, planner: Callable[..., Ran], out: Path, *plans: Path) -> Path:
    """Write the report of *plans* to *out*, open it, and return where it is."""
    assert planner("report", *map(str, plans), "--out", str(out)).code == 0
    browser.open(out)
    return out
