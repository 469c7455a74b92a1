# SPDX-License-Identifier: Apache-2.0
"""The monitor's page in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import attrs
import pytest

from pyflinkcep.monitor import _Server
from pyflinkcep.show.live_page import History, Query
from tests.unit.monitor.support import BAD, progress, told

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium")


@attrs.define(eq=False)
class Awaited(History):
    """A history that tells when it is read for the second and the third time."""

    seen: list[threading.Event] = attrs.field(factory=lambda: [threading.Event() for _ in range(3)])

    def read(self) -> Iterator[Query]:
        next(event for event in [*self.seen, threading.Event()] if not event.is_set()).set()
        yield from super().read()


def test_the_page_is_live_and_runs_no_script_of_names(tmp_path: Path) -> None:
    """A micro-batch that ends while the page is open is on it, and names do nothing there."""
    pytest.importorskip("uvicorn")
    history = Awaited()
    history.started("run-1", f"logins {BAD}")
    for number in range(20):
        history.progressed(progress(number))
    server = _Server(history, "127.0.0.1", 0)
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000",
        f"--user-data-dir={tmp_path}", "--dump-dom", server.url,
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as browser:
        assert history.seen[1].wait(60)  # the page was made, and is connected
        history.progressed(progress(20))
        assert history.seen[2].wait(60)
        server.stop()  # a browser that only dumps a page waits for the end of its connections
        dumped, _ = browser.communicate(timeout=60)

    assert "21 micro-batches" in dumped
    assert "<title>Patterns</title>" in dumped
    assert f"logins {BAD}" in unescape(re.sub(r"<[^>]*>", "", dumped))
    assert dumped.count("<svg") == 10
    assert dumped.count("<script") == 1


def test_light_and_dark(tmp_path: Path) -> None:
    """The page follows what the reader prefers."""
    pytest.importorskip("uvicorn")
    server = _Server(told(), "127.0.0.1", 0)
    sizes = {}
    for scheme in (0, 1):
        file = tmp_path / f"{scheme}.png"
        subprocess.run(
            [
                str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--timeout=2000",
                f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={file}",
                f"--user-data-dir={tmp_path}", server.url,
            ],
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        sizes[scheme] = file.read_bytes()
    server.stop()

    assert sizes[0] != sizes[1]
