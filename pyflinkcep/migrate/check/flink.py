# SPDX-License-Identifier: Apache-2.0
"""Runs patterns of a program of Java on a real Flink, with events given as JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs

from pyflinkcep.errors import InputError
from pyflinkcep.migrate.check.slices import Jars, Rows, Site, Sliced, binary_name, sliced
from pyflinkcep.migrate.java.declarations import written_type
from pyflinkcep.migrate.java.project import Project, discriminator
from pyflinkcep.migrate.java.source import Node, Source
from pyflinkcep.migrate.meaning.translated import PART, Note

Event = dict[str, Any]


@attrs.frozen(eq=False)
class Selected:
    """What a program makes of matches, as ``select`` is called in Java and in Python."""

    node: Node  # The call in Java
    source: Source  # Its file
    kind: str  # ``select``, ``flatSelect`` or ``process``
    # The names in Python of the functions and of the tag for timeouts.
    function: str
    timeout: str = ""
    tag: str = ""
    columns: tuple[str, ...] = ()  # The columns of the rows
    tags: tuple[str, ...] = ()  # The names of the side outputs
    problem: str = ""  # Why the rows cannot be compared; empty if they can


class CompileError(InputError):
    """If what a pattern needs does not compile against the jars."""


@attrs.frozen(eq=False)
class Checked:
    """A pattern that was translated, and what is needed to run the original."""

    name: str  # The function of Python that returns it
    site: Site  # Where Java makes it
    event_type: str | None  # The class of its events
    keys: tuple[str, ...] = ()  # The columns of the key
    # The column with the time of an event; None for the order in which they are given.
    time: str | None = None
    schema: str | None = None  # The columns of the events as DDL
    problem: str = ""  # Why it cannot be compared; empty if it can
    selected: Selected | None = None  # What the program makes of matches
    scale: int = 1  # How many milliseconds one of the column `time` is


@attrs.define(eq=False)
class Written:
    """What became of a file."""

    file: str  # The file of Java
    module: str | None = None  # The name of the Python module; None if there was nothing to write
    text: str = ""  # The module
    patterns: list[str] = attrs.field(factory=list)  # The functions of its patterns
    statements: int = 0  # How many statements with MATCH_RECOGNIZE there are
    # How many conditions, and functions of matches, there are.
    conditions: int = 0
    functions: int = 0
    sql: int = 0  # How many conditions became SQL
    stubs: int = 0  # How many of both remain to be written
    # What is needed to compare its patterns with the originals.
    checked: list[Checked] = attrs.field(factory=list)
    notes: list[Note] = attrs.field(factory=list)  # What to look at
    errors: list[Note] = attrs.field(factory=list)  # What is wrong with the file

    @property
    def number(self) -> int:
        """How many patterns, and statements with a clause, there are."""
        return len(self.patterns) + self.statements

    @property
    def remaining(self) -> int:
        """How many places of the module remain to be written."""
        parts = ("what becomes of the matches", PART)
        noted = sum(any(part in note.what for part in parts) for note in self.notes)
        return self.text.count("TODO") + self.text.count("raise not_translated(") + noted


@attrs.frozen
class Answer:
    """What Flink answered for one pattern."""

    events: list[Event] = attrs.field(factory=list)  # The events as the program holds them
    # Rows with ``match``, stages with their events; of timeouts also ``timestamp``.
    matches: list[dict[str, Any]] = attrs.field(factory=list)
    timeouts: list[dict[str, Any]] = attrs.field(factory=list)
    error: str | None = None  # What went wrong, in one line
    # The ``row`` of each match or timeout, with the ``tag`` of a side output; None without any.
    rows: list[dict[str, Any]] | None = None
    no_rows: str = ""  # Why there are none


def run_on_flink(
    project: Project, patterns: Sequence[Checked], events: Mapping[str, Sequence[Event]], jars: Path
) -> dict[str, Answer]:
    """Return Flink's answers for the patterns of a file, by their names."""
    for tool in ("javac", "java"):
        if shutil.which(tool) is None:
            raise InputError(f"--check needs {tool}", "install a JDK and put its bin on PATH")
    if not any(jars.glob("flink-cep*.jar")):
        raise InputError(f"no flink-cep*.jar in {jars}", "pass the folder of Flink's jars")
    sites = [_with_rows(one) for one in patterns]
    classpath = ":".join(str(jar.resolve()) for jar in sorted(jars.glob("*.jar")))
    with TemporaryDirectory() as folder:
        here = Path(folder)
        made, reason = _compiled(here, project, sites, Jars.of(jars), classpath)
        plan = {
            "patterns": [
                _planned(project, one, made, number) for number, one in enumerate(patterns)
            ],
            "events": {name: list(rows) for name, rows in events.items()},
        }
        (here / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        answers = _run(here, classpath)
    return {
        name: attrs.evolve(answer, no_rows=answer.no_rows or reason)
        for name, answer in answers.items()
    }


def _with_rows(one: Checked) -> Site:
    """Return where a pattern is made, and what is made of its matches if that can be compared."""
    chosen = one.selected
    if chosen is None or chosen.problem:
        return one.site
    return attrs.evolve(one.site, rows=Rows(chosen.node, chosen.source, one.event_type or "Object"))


def _compiled(
    folder: Path, project: Project, sites: Sequence[Site], jars: Jars, classpath: str
) -> tuple[Sliced, str]:
    """Compile the program's parts; without the rows, and with the reason, if those do not."""
    made = sliced(project, sites, jars)
    try:
        _compile(folder, made.files, classpath)
    except CompileError as error:
        if not any(made.rows):
            raise
        made = sliced(project, [attrs.evolve(site, rows=None) for site in sites], jars)
        _compile(folder, made.files, classpath)
        return made, error.message
    return made, ""


def _compile(folder: Path, files: Mapping[str, str], classpath: str) -> None:
    own = Path(__file__).parent
    sources = dict(files)
    for name in ("Runner.java", "Time.java"):
        sources[f"pyflinkcep/check/{name}"] = (own / name).read_text(encoding="utf-8")
    for name, text in sources.items():
        path = folder / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    paths = [str(folder / "src" / name) for name in sources]
    command = ["javac", "-nowarn", "-encoding", "UTF-8", "-d", str(folder / "classes")]
    done = subprocess.run(
        [*command, "-cp", classpath, *paths], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error:" in line]
        first = (lines or done.stderr.splitlines() or ["javac failed"])[0]
        raise CompileError(
            f"what the pattern needs does not compile: {first.replace(str(folder / 'src'), '')}",
            "pass the jars of the Flink that it is written for, and of the other libraries it uses",
        )


_PLAIN = frozenset(
    f"java.lang.{name}"
    for name in ("String", "Integer", "Long", "Double", "Float", "Boolean", "Short", "Byte")
)
"""What the fields of a tuple may be."""


def _planned(project: Project, one: Checked, made: Sliced, number: int) -> dict[str, Any]:
    call, rows = made.calls[number], made.rows[number]
    kinds: dict[str, str] = {}
    event, column = "java.lang.Object", ""
    declared = None
    type_ = written_type(one.event_type or "?")
    arguments = [f"java.lang.{given.name}" for given in type_.args]
    if one.event_type is not None:
        declared = project.find(one.event_type, one.site.source)
        if one.event_type in ("String", "Long", "Double", "Integer"):
            event = f"java.lang.{one.event_type}"
        elif type_.name.startswith("Tuple") and set(arguments) <= _PLAIN:
            event = f"org.apache.flink.api.java.tuple.{type_.name}"
        elif type_.name == "Row":
            event = "org.apache.flink.types.Row"
        elif type_.name in ("JsonNode", "ObjectNode"):
            event = one.site.source.imports.get(type_.name, event)
    if declared is not None:
        event = binary_name(declared)
        below = project.subclasses(declared)
        if below:
            column = discriminator(declared, project)
            kinds = {kind.name: binary_name(kind) for kind in [declared, *below]}
    return {
        "name": one.name,
        "owner": call[0],
        "method": call[1],
        "given": one.site.given,
        "rows": None if rows is None else {"owner": rows[0], "method": rows[1]},
        "tags": [] if one.selected is None else list(one.selected.tags),
        "event": event,
        "arguments": arguments if "tuple" in event else [],
        "kinds": kinds,
        "discriminator": column,
        "keys": list(one.keys),
        "time": one.time or "",
        "scale": one.scale,
    }


def _run(folder: Path, classpath: str) -> dict[str, Answer]:
    opened = [
        f"--add-opens=java.base/java.{package}=ALL-UNNAMED"
        for package in ("lang", "util", "util.concurrent", "time", "io", "net", "math", "text")
    ]
    command = ["java", *opened, "-Xmx1g", "-Dlog4j2.level=OFF", "-Dlog4j2.disableJmx=true"]
    done = subprocess.run(
        [*command, "-cp", f"{classpath}:{folder / 'classes'}", "pyflinkcep.check.Runner",
         str(folder / "plan.json")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            name, no_rows = row.pop("name"), row.pop("noRows", "")
            found[name] = Answer(**row, no_rows=no_rows)
    if not found:
        first = (done.stderr.strip().splitlines() or ["no output"])[0]
        raise InputError(f"Flink did not run: {first}", "check the jars given by --flink-jars")
    return found
