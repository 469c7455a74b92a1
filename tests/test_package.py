# SPDX-License-Identifier: Apache-2.0
"""What a package index and a maintainer's workflows show and run."""

from __future__ import annotations

import re
from importlib.metadata import metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_an_indexs_page_has_links_that_lead_somewhere() -> None:
    """The README's links to files are whole there, where no files are."""
    description = str(metadata("pyflinkcep")["Description"] or metadata("pyflinkcep").get_payload())

    links = re.findall(r"\]\(([^)]*)\)", description)
    assert len(links) > 10
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_actions_are_pinned_and_may_do_little() -> None:
    """An action is named by its hash, and a job has the permissions that it lists."""
    assert WORKFLOWS
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        used = re.findall(r"uses: (\S+)", text)
        assert used
        assert [name for name in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []
        assert "\npermissions: {}\n" in text
        assert text.count("runs-on:") == text.count("    permissions: {")


def test_versions_agree() -> None:
    """The citation names the package's version."""
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)

    assert cited is not None
    assert cited[1] == metadata("pyflinkcep")["Version"]
