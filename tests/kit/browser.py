"""A headless Chromium, by the commands of WebDriver (W3C, 2018) and by command line. Standard library only."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

# No page may reach anything, and the browser itself stays quiet.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def missing(*programs: str) -> str:
    """Why there is no browser here; empty where there is one."""
    absent = [program for program in programs if shutil.which(program) is None]
    return f"there is no {' and no '.join(absent)} (./dev setup --peers installs it)" if absent else ""


def chromium(page: Path, *flags: str) -> str:
    """Runs the browser on a page by command line; returns its standard output."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            ["chromium", *FLAGS, f"--user-data-dir={profile}", "--virtual-time-budget=20000", *flags, page.as_uri()],
            capture_output=True,
            text=True,
            timeout=120,
        )
    if done.returncode != 0:
        raise RuntimeError(f"chromium ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


# Resolves when the browser painted the frame that shows what the page's script has drawn.
PAINTED = """window.painted = new Promise((resolve) => {
  const watcher = new MutationObserver(() => {
    if (!document.getElementById('page')?.dataset.drawn) return;
    watcher.disconnect();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
  });
  watcher.observe(document, {subtree: true, childList: true, attributes: true, attributeFilter: ['data-drawn']});
});"""


class Browser:
    """A session of chromedriver. Use it in a `with`."""

    def __init__(self, width: int = 1400, height: int = 900) -> None:
        self.size = (width, height)

    def __enter__(self) -> Browser:
        self.profile = tempfile.TemporaryDirectory()
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            self.url = f"http://127.0.0.1:{self._port()}"
            arguments = [*FLAGS, f"--user-data-dir={self.profile.name}", "--window-size={},{}".format(*self.size)]
            options = {"binary": shutil.which("chromium"), "args": arguments}
            wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
            self.url += "/session/" + self._send("POST", "/session", wanted)["sessionId"]
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._send("DELETE", "", None)
        finally:
            self._stop()

    def _stop(self) -> None:
        self.driver.terminate()
        self.driver.wait(30)
        assert self.driver.stdout
        self.driver.stdout.close()
        for _ in range(50):  # the browser's last writes to its profile
            try:
                self.profile.cleanup()
                return
            except OSError:
                time.sleep(0.1)

    def _port(self) -> int:
        assert self.driver.stdout
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                return int(line.rstrip(".\n").rsplit(" ", 1)[1])
        raise RuntimeError("chromedriver did not start")

    def _send(self, method: str, path: str, body: object) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.read().decode()[:500]}") from None

    def open(self, page: Path) -> None:
        self._send("POST", "/url", {"url": page.as_uri()})

    def command(self, name: str, **parameters: object) -> Any:
        """A command of Chrome's DevTools protocol."""
        return self._send("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def time_paints(self, page: Path, rounds: int) -> list[tuple[float, float]]:
        """For each load of a page of ours: the seconds from its navigation until it was painted with its drawing, and
        those that the page's main thread had a processor for, until it was asked."""
        self.command("Page.addScriptToEvaluateOnNewDocument", source=PAINTED)
        self.command("Performance.enable", timeDomain="threadTicks")
        times = []
        for _ in range(rounds):
            self.open(page)
            painted = self.run("return window.painted") / 1e3
            metrics = {one["name"]: one["value"] for one in self.command("Performance.getMetrics")["metrics"]}
            times.append((painted, metrics["TaskDuration"]))
        return times

    def run(self, script: str, *arguments: object) -> Any:
        """Runs a function body in the page."""
        return self._send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector: str) -> str:
        """The path of the element's commands."""
        found = self._send("POST", "/element", {"using": "css selector", "value": selector})
        return "/element/" + next(iter(found.values()))

    def click(self, selector: str) -> None:
        self._send("POST", self.find(selector) + "/click", {})

    def double_click(self, selector: str) -> None:
        origin = {"element-6066-11e4-a52e-4f735466cecf": self.find(selector).rsplit("/", 1)[1]}
        press = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        move = {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": origin}
        actions = [{"type": "pointer", "id": "mouse", "actions": [move, *press, *press]}]
        self._send("POST", "/actions", {"actions": actions})

    def type(self, selector: str, text: str) -> None:
        self._send("POST", self.find(selector) + "/value", {"text": text})

    def text(self, selector: str) -> str:
        return self._send("GET", self.find(selector) + "/text", None)

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self._send("GET", "/screenshot", None)))

    def errors(self) -> list[str]:
        """The errors in the console of the page, violations of its security policy too."""
        log = self._send("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if entry["level"] == "SEVERE"]


def requested_urls(net_log: Path) -> set[str]:
    """The URLs that a page requested, of the file that --log-net-log names; not those that the browser itself wants."""
    text = net_log.read_text()
    try:
        log = json.loads(text)
    except json.JSONDecodeError:  # the browser was ended while it wrote
        log = json.loads(text.rstrip().rstrip(",") + "]}")
    kinds = {number: name for name, number in log["constants"]["logEventTypes"].items()}
    requests = [event.get("params", {}) for event in log["events"] if kinds[event["type"]] == "URL_REQUEST_START_JOB"]
    return {one["url"] for one in requests if "url" in one and one.get("initiator") != "not an origin"}
