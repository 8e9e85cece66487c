"""A headless Chromium, driven by the W3C WebDriver protocol of chromedriver: JSON over HTTP, no library needed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
STARTED = "was started successfully on port "
PATIENCE = 60
"""Seconds for one command; a browser that starts on a busy machine takes some."""

_KEYS = {"ArrowRight": "\ue014", "ArrowLeft": "\ue012", "Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004"}


class BrowserRefused(Exception):
    """The browser could not do what it was told."""


class Browser:
    """One page in a browser."""

    def __init__(self, url: str, size: tuple[int, int], folder: Path) -> None:
        self._http = build_opener(ProxyHandler({}))
        self._url = url
        chromium = shutil.which("chromium")
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": {
                "binary": chromium,
                "args": [*FLAGS, f"--window-size={size[0]},{size[1]}", f"--user-data-dir={folder}"],
            },
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        session = self._send("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self._url += f"/session/{session['sessionId']}"

    def open(self, page: Path) -> None:
        """Load a file and wait until its program has drawn for the first time."""
        self._send("POST", "/url", {"url": page.as_uri()})
        try:
            self.wait("document.documentElement.dataset.ready === 'true'")
        except BrowserRefused:
            pytest.fail(f"{page.name} does not get ready: {self.console()}")

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript in the page and return what it returns."""
        return self._send("POST", "/execute/sync", {"script": script, "args": arguments})

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression is true in the page."""
        script = (
            "const done = arguments[arguments.length - 1];"
            f"const look = () => ({condition}) ? done(true) : requestAnimationFrame(look); look();"
        )
        self._send("POST", "/execute/async", {"script": script, "args": []})

    def settle(self) -> None:
        """Wait until what was asked for has been drawn."""
        script = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(true)));"
        self._send("POST", "/execute/async", {"script": script, "args": []})

    def draw_millis(self) -> float:
        """Return how many milliseconds the page takes to draw its lanes anew, at best of three times."""
        script = """
            const done = arguments[0], times = [], canvas = document.getElementById("marks");
            const once = () => {
              const began = performance.now();
              canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: 1, bubbles: true, cancelable: true }));
              requestAnimationFrame(() => {
                times.push(performance.now() - began);
                if (times.length === 3) done(Math.min(...times)); else requestAnimationFrame(once);
              });
            };
            requestAnimationFrame(once);
        """
        return float(self._send("POST", "/execute/async", {"script": script, "args": []}))

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def click(self, selector: str) -> None:
        """Click an element, as a person would."""
        self._send("POST", f"/element/{self._find(selector)}/click", {})
        self.settle()

    def type(self, selector: str, text: str) -> None:
        """Type a text into an element."""
        self._send("POST", f"/element/{self._find(selector)}/value", {"text": text})
        self.settle()

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, wherever the focus is."""
        actions = [{"type": kind, "value": _KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self._act({"type": "key", "id": "keyboard", "actions": actions})

    def point(self, x: float, y: float, *, click: bool = False) -> None:
        """Move the pointer to a place in the window, and click there if asked to."""
        actions: list[dict[str, Any]] = [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}]
        if click:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self._act({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions})

    def drag(self, x: float, y: float, dx: float) -> None:
        """Drag from a place in the window to one beside it."""
        actions = [
            {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "duration": 0, "x": round(x + dx / 2), "y": round(y)},
            {"type": "pointerMove", "duration": 0, "x": round(x + dx), "y": round(y)},
            {"type": "pointerUp", "button": 0},
        ]
        self._act({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions})

    def wheel(self, x: float, y: float, by: int) -> None:
        """Turn the wheel at a place in the window; a positive number is away from the content's top."""
        turn = {"type": "scroll", "duration": 0, "x": round(x), "y": round(y), "deltaX": 0, "deltaY": by}
        self._act({"type": "wheel", "id": "wheel", "actions": [turn]})

    def prefer(self, scheme: str) -> None:
        """Have the system prefer `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        command = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}}
        self._send("POST", "/goog/cdp/execute", command)

    def resize(self, width: int, height: int, scale: float) -> None:
        """Give the window's content a size, in CSS pixels, and so many real pixels for each."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self._send("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": size})

    def picture(self, file: Path) -> None:
        """Write what is in the window to a PNG file."""
        file.write_bytes(base64.b64decode(self._send("GET", "/screenshot")))

    def console(self) -> list[str]:
        """Return what the page has complained of since it was last asked."""
        return [entry["message"] for entry in self._send("POST", "/se/log", {"type": "browser"})]

    def requests(self) -> list[str]:
        """Return the URLs that the page has asked for since it was last asked."""
        entries = [
            json.loads(one["message"])["message"] for one in self._send("POST", "/se/log", {"type": "performance"})
        ]
        return [one["params"]["request"]["url"] for one in entries if one["method"] == "Network.requestWillBeSent"]

    def close(self) -> None:
        """End the browser."""
        self._send("DELETE", "")

    def _find(self, selector: str) -> str:
        return str(self._send("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT])

    def _act(self, *sources: Mapping[str, Any]) -> None:
        self._send("POST", "/actions", {"actions": sources})
        self.settle()

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self._url + path, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310
        try:
            with self._http.open(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except HTTPError as error:
            message = json.load(error)["value"]["message"]
            raise BrowserRefused(f"{method} {path}: {message}") from None


@contextmanager
def browser(folder: Path, size: tuple[int, int] = (1600, 1000)) -> Generator[Browser]:
    """Start a browser with a new, empty profile; skip the test where there is none, but never in CI."""
    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        reason = "pictures are tested in Debian's Chromium: apt-get install chromium chromium-driver"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with subprocess.Popen(
        [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if STARTED in line)
            port = line.split(STARTED)[1].strip().rstrip(".")
            made = Browser(f"http://127.0.0.1:{port}", size, folder)
            try:
                yield made
            finally:
                made.close()
        finally:
            process.terminate()
