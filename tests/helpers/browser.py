"""A real browser for tests of pages, driven through the DevTools protocol."""

import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal

import aiohttp
import axe_core_python  # type: ignore[import-untyped]

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER: Final = next((path for name in NAMES if (path := shutil.which(name))), None)
# The rules of accessibility, in a package that comes with the extra `dev`.
AXE: Final = Path(axe_core_python.__file__).with_name("axe.min.js")
TIMEOUT_S: Final = 60
# Widths and colour schemes in which axe, which takes seconds, looks at a page.
LOOKS: Final[tuple[tuple[int, Literal["light", "dark"]], ...]] = ((360, "light"), (1280, "dark"))
OPTIONS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-port=0", "about:blank",
)  # fmt: skip

# Resolves to the value of an expression once that is truthy, checking every frame.
WHEN: Final = """new Promise((done) => {
  const check = () => { const value = (() => %s)(); value ? done(value) : requestAnimationFrame(check); };
  check();
})"""


class PageLeft(Exception):
    """The browser left the page while a script was running in it."""


class Tab:
    """A tab of the browser: loads pages, runs scripts, and records errors and network requests."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.complaints: list[str] = []

    async def ask(self, method: str, **params: Any) -> Any:
        """Sends a command of the DevTools protocol; its result."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json(timeout=TIMEOUT_S)
            if message.get("id") == self._number:
                if "error" in message:
                    raise PageLeft(message)
                return message["result"]
            self._record(message)

    def _record(self, message: Any) -> None:
        method, params = message["method"], message["params"]
        if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(json.dumps(params))
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(
            ("file:", "data:", "about:")
        ):
            self.complaints.append(params["request"]["url"])

    async def run(self, expression: str) -> Any:
        """The value of a JavaScript expression, or of the promise that it returns."""
        answer = await self.ask(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def when(self, expression: str) -> Any:
        """The value of an expression once that is truthy."""
        while True:
            with suppress(PageLeft):
                return await self.run(WHEN % expression)

    async def press(self, key: str, *, shift: bool = False) -> None:
        """Presses a key, by its DOM name: ``Tab``, ``Enter``, ``ArrowDown`` or a character."""
        code = {"Tab": 9, "Enter": 13, " ": 32, "ArrowDown": 40, "End": 35}.get(key, ord(key[0]))
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        modifiers = 8 if shift else 0
        event = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        await self.ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **event)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", **event)

    async def prefer(self, scheme: Literal["light", "dark"]) -> None:
        """Sets the colour scheme that the user prefers."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.ask("Emulation.setEmulatedMedia", features=features)

    async def findings(self) -> list[str]:
        """What axe finds on the page, except what is minor: the rule and an element."""
        await self.run(f"{AXE.read_text(encoding='utf-8')}; 0")
        found = await self.run(
            "axe.run(document, {resultTypes: ['violations']}).then((one) => one.violations)"
        )
        return [
            f"{one['id']} ({one['impact']}): {node['html'][:120]}"
            for one in found
            if one["impact"] != "minor"
            for node in one["nodes"]
        ]

    async def load(self, path: Path, width: int = 1280) -> None:
        """Opens a file at a width."""
        await self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        await self.ask("Page.navigate", url=path.as_uri())
        await self.when(
            f"location.href === {json.dumps(path.as_uri())} && document.readyState === 'complete'"
        )


@asynccontextmanager
async def tab_of(profile: Path) -> AsyncIterator[Tab]:
    """A tab of a new browser with an empty profile."""
    assert BROWSER is not None
    command = [BROWSER, f"--user-data-dir={profile}", *OPTIONS]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ
    ) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, b"")
            address = next(line.split()[-1].decode() for line in lines if b"DevTools listening on" in line)
            root = address.replace("ws://", "http://").partition("/devtools")[0]
            async with aiohttp.ClientSession() as session:
                async with session.get(f"{root}/json/list") as answer:
                    targets = await answer.json()
                page = next(target for target in targets if target["type"] == "page")
                async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    tab = Tab(socket)
                    for domain in ("Page", "Runtime", "Log", "Network"):
                        await tab.ask(f"{domain}.enable")
                    yield tab
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=TIMEOUT_S)
            process.kill()
