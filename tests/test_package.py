# SPDX-License-Identifier: Apache-2.0
"""What a package index and a maintainer's workflows show and run."""

from __future__ import annotations

import re
from configparser import ConfigParser
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


def test_a_wheel_has_the_files_that_are_no_code() -> None:
    """What is read at run time, such as schemas and scripts, is in the package's data."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    known = {
        path
        for package, globs in config["options.package_data"].items()
        for glob in globs.replace(",", " ").split()
        for path in (ROOT / package.replace(".", "/")).glob(glob)
    }
    code = {".py", ".pyc", ".c", ".h", ".so", ".pyd"}
    files = {path for path in (ROOT / "pyflinkcep").rglob("*") if path.is_file()}

    assert {path for path in files if path.suffix not in code} == known
    assert {"schema.json", "live_page.js", "grafana.json"} <= {path.name for path in known}


def test_versions_agree() -> None:
    """The citation names the package's version."""
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)

    assert cited is not None
    assert cited[1] == metadata("pyflinkcep")["Version"]
