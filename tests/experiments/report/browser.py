"""Headless Chromium, controlled through chromedriver and the WebDriver protocol."""

import base64
import json
import shutil
import socket
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
BROWSER_MARKS = [
    pytest.mark.long,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None,
        reason="needs chromium and chromedriver (Debian: chromium chromium-driver)",
    ),
]
PAPER_WIDTH = 700
"""Width in pixels between the margins of a printed page of A4 or Letter, rounded down."""
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """A browser session; use as a context manager."""

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.process = subprocess.Popen([DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}/session"
        try:
            self._await_driver(port)
            arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage"]
            options = {
                "goog:chromeOptions": {"binary": CHROMIUM, "args": arguments},
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            }
            # On a busy machine, axe needs more than the default time of 30 s.
            options["timeouts"] = {"script": 100_000}
            found = self._call("POST", "", {"capabilities": {"alwaysMatch": options}})
        except BaseException:
            self._stop()
            raise
        self.base += f"/{found['sessionId']}"
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", "")
        finally:
            self._stop()

    def _stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)

    def _await_driver(self, port):
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=5).close()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(error.read().decode()) from None

    def open(self, page: Path) -> None:
        self._call("POST", "/url", {"url": page.as_uri()})

    def run(self, script: str, *arguments):
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def click(self, selector: str) -> None:
        """Scroll to an element at once, as pages scroll smoothly, and click it."""
        self.run(
            "document.querySelector(arguments[0])"
            ".scrollIntoView({behavior: 'instant', block: 'center'})",
            selector,
        )
        self._call("POST", f"/element/{self._find(selector)}/click", {})

    def press(self, selector: str, key: str) -> None:
        self._call("POST", f"/element/{self._find(selector)}/value", {"text": key})

    def _find(self, selector: str) -> str:
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        return found[_ELEMENT]

    def width(self, pixels: int) -> None:
        metrics = {"width": pixels, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        body = {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics}
        self._call("POST", "/goog/cdp/execute", body)

    def medium(self, name: str) -> None:
        """Show pages as on paper (``print``), or as the device does (empty name)."""
        body = {"cmd": "Emulation.setEmulatedMedia", "params": {"media": name}}
        self._call("POST", "/goog/cdp/execute", body)

    def colour_scheme(self, name: str) -> None:
        """Prefer ``light`` or ``dark`` pages."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        body = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}}
        self._call("POST", "/goog/cdp/execute", body)

    def pdf(self) -> bytes:
        return base64.b64decode(self._call("POST", "/print", {}))

    def log(self, kind: str) -> list[dict]:
        return self._call("POST", "/se/log", {"type": kind})

    def requests(self) -> list[str]:
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]


def axe_violations(browser: Browser, folder: Path) -> list[str]:
    """Return the violations that axe-core finds; skip the test if npm does not provide it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm")
    command = [npm, "pack", "axe-core@4.10.3", "--silent"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    except subprocess.SubprocessError:
        pytest.skip("the npm registry has no axe-core")
    (archive,) = folder.glob("axe-core-*.tgz")
    with tarfile.open(archive) as files:
        browser.run(files.extractfile("package/axe.min.js").read().decode())
    return browser.run(
        "const done = await axe.run(document, {resultTypes: ['violations']});"
        "return done.violations.map(one => one.id + ': ' + one.nodes[0].html.slice(0, 120));"
    )
