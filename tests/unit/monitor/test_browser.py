# SPDX-License-Identifier: Apache-2.0
"""The monitor's page in a real browser."""

from __future__ import annotations

import json
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
from pyflinkcep.show.live_page import SCRIPT, body, page
from pyflinkcep.show.query_history import History, Query
from tests.unit.monitor.support import BAD, progress, told

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs chromium"),
]


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


STEPS = """\
const told = [];
const said = () => [main.querySelector("[data-key='run-1'] > p.dim").textContent, status.textContent];
const next = () => new Promise((then) => setTimeout(then, 50));
const shown = (body) => {
  const made = document.createElement("main");
  made.innerHTML = JSON.parse(body);
  for (const open of main.querySelectorAll("[open]")) open.open = false;
  return main.isEqualNode(made);
};
(async () => {
  source.onmessage({ data: BODIES[0] });
  const summary = main.querySelector("[data-key='run-1'] figure:last-of-type summary");
  summary.focus();
  summary.parentNode.open = true;
  const table = summary.nextElementSibling;
  table.scrollTop = 30;
  for (const data of BODIES.slice(1, -1)) source.onmessage({ data });
  told.push(document.activeElement === summary, summary.parentNode.open, table.scrollTop);
  told.push(...said());
  getSelection().selectAllChildren(main.querySelector("h2"));
  source.onmessage({ data: BODIES.at(-1) });
  await next();
  told.push(...said(), getSelection().toString().length > 0);
  getSelection().removeAllRanges();
  await next();
  told.push(...said(), document.activeElement === summary, shown(BODIES.at(-1)));
  document.body.textContent = `told ${JSON.stringify(told)} end`;
})();
"""


def test_what_is_new_disturbs_nobody(tmp_path: Path) -> None:
    """Focus, open tables and what is scrolled stay; what is selected stays until it is not."""
    history = told()
    bodies = [body(history)]
    history.progressed(progress(20))
    bodies.append(body(history))
    history.started("run-2", "another, which is the first on the page")
    history.progressed({**progress(1), "runId": "run-2"})
    bodies.append(body(history))
    history.ended("run-1", "E: no disk")
    bodies.append(body(history))
    file = tmp_path / "page.html"
    stub = "class EventSource {}"
    given = json.dumps([json.dumps(each) for each in bodies]).replace("</", "<\\/")
    script = f"{stub}\n{SCRIPT.read_text('utf-8')}\nconst BODIES = {given};\n{STEPS}"
    shown = page(History()).replace('<script src="monitor.js">', f"<script>{script}")
    file.write_text(shown, "utf-8")
    dumped = subprocess.run(
        [
            str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
            "--virtual-time-budget=5000", f"--user-data-dir={tmp_path}", file.as_uri(),
        ],
        check=True, capture_output=True, timeout=60, text=True,
    ).stdout  # fmt: skip
    found = re.search(r"told (.*) end", unescape(dumped))
    assert found is not None

    before = "running · 21 micro-batches · 23,100 rows of input"
    focused, is_open, scrolled, *first = json.loads(found[1])
    assert (focused, is_open, scrolled) == (True, True, 30)
    assert first[:5] == [before, "live", before, "waits while text is selected", True]
    assert re.match("failed at .* · 21 micro-batches", first[5])
    assert first[6:] == ["live", True, True]


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
