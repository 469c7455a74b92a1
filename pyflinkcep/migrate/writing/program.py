# SPDX-License-Identifier: Apache-2.0
"""A program of Java as modules of Python: what is followed, in which order, and what came of it."""

from __future__ import annotations

import re

from pyflinkcep.migrate.chains.expressions import STAGES
from pyflinkcep.migrate.chains.flow import STATEMENTS, share_types
from pyflinkcep.migrate.chains.values import CHANGES, Call, Code, Const, Link, Scope
from pyflinkcep.migrate.chains.walker import Walker
from pyflinkcep.migrate.check.flink import Checked, Site, Written
from pyflinkcep.migrate.java.constants import literal_of
from pyflinkcep.migrate.java.declarations import JavaClass, Method
from pyflinkcep.migrate.java.project import Project, columns_of
from pyflinkcep.migrate.java.source import (
    Node,
    Source,
    called_in,
    children,
    declared_type,
    enclosing,
    inside,
    javadoc,
    line_of,
    simple_name,
    snake,
    text_of,
)
from pyflinkcep.migrate.meaning.translated import PART, Note, gathered
from pyflinkcep.migrate.writing.jobs import JobWriter
from pyflinkcep.migrate.writing.module import Module, docstring
from pyflinkcep.migrate.writing.patterns import PatternWriter
from pyflinkcep.migrate.writing.tables import is_match
from pyflinkcep.migrate.writing.translation import Translation

_BEGIN = re.compile(r"\bPattern\s*\.\s*(?:<[^;(]*>)?\s*begin\s*\(")
_APPLY = re.compile(r"\bCEP\s*\.\s*pattern\s*\(")


def has_patterns(text: str) -> bool:
    """Whether the text of a file may build a pattern or apply one."""
    return _BEGIN.search(text) is not None or _APPLY.search(text) is not None or is_match(text)


def translate_file(source: Source, project: Project, module_name: str) -> Written:
    """Return the module of a file, with what to look at."""
    first = Translation(project)
    found = _translated(source, project, module_name, first)
    if not any(first.columns.values()):
        return found
    # the columns of JSON are what the whole file reads, and the schema stands before the rest
    return _translated(source, project, module_name, Translation(project, columns=first.columns))


def _translated(
    source: Source, project: Project, module_name: str, translation: Translation
) -> Written:
    written = Written(source.file)
    for line, text in source.errors[:5]:
        written.errors.append(Note(source.file, line, f"not Java: {text!r}"))
    classes = project.of_file(source)
    name = source.file.rsplit("/", 1)[-1]
    more = javadoc(classes[0].node) if classes else ""
    module = Module(docstring(f"The job of {name}, translated by pyflinkcep.migrate", more))
    patterns = PatternWriter(module, translation)
    used: set[int] = set()
    jobs = 0
    begun: dict[int, list[Link]] = {}
    lost: list[Method] = []
    idle: list[Code] = []
    for owner, method in _entries(project, source):
        if method is not None and _covered(method, used):
            continue
        walker = Walker(project)
        returned = None
        if method is not None:
            returned = walker.run(method, owner)
        else:
            for name, field in owner.fields.items():
                if field.value is not None and has_patterns(text_of(field.value)):
                    walker.field(name, Scope(owner.source, owner))
        if isinstance(returned, Link) and returned not in walker.links:
            walker.links.append(returned)
        is_pattern = method is not None and method.type.name in _PATTERNS and not method.type.dims
        if method is not None and is_pattern and not isinstance(returned, Link):
            lost.append(method)
        idle += walker.idle
        used |= {line.begun.node.start_byte for line in walker.links if line.begun.source is source}
        used |= {
            s.call.code.node.start_byte for s in walker.streams if s.call.code.source is source
        }
        share_types(walker.streams, project)
        applied = [s for s in walker.streams if s.call.method == "pattern"]
        statements = [s for s in walker.streams if s.call.method in STATEMENTS]
        if applied or statements:
            app = _app(walker.settings, owner)
            writer = JobWriter(module, translation, patterns, walker.streams, walker.settings, app)
            writer.gaps = walker.gaps
            jobs += writer.write()
            written.statements += writer.statements
            written.checked += writer.checked
        for link in _loose(walker, [s.pattern for s in applied if s.pattern is not None]):
            begun.setdefault(link.begun.node.start_byte, []).append(link)
        written.notes += walker.notes
    for start, links in begun.items():
        if start not in patterns.written_starts:
            name, parameters = patterns.write(links[-1])
            site = _site(links[-1], source)
            if site is not None and not parameters:
                kind = links[-1].event_type
                schema = translation.schema(kind, links[-1].begun)
                times = (n for n, type_ in columns_of(schema or "").items() if type_ == "bigint")
                time = next((name for name in times if name.lower() in _LIKELY_TIMES), None)
                written.checked.append(Checked(name, site, kind, time=time, schema=schema))
    for method in lost:
        name = f"{snake(method.name).removesuffix('_pattern')}_pattern"
        patterns.missed(Code(method.node, source, Scope(source)), name)
    _write_missed(project, source, patterns, idle, used)
    written.notes += _missed_statements(source, module.text(), written.statements)
    written.notes += module.notes
    written.patterns = [name for name, _ in patterns.written.values()]
    if written.patterns or jobs or patterns.marked:
        written.module, written.text = module_name, module.text()
    _count(written, translation)
    written.notes = gathered(written.notes)
    return written


def _site(link: Link, source: Source) -> Site | None:
    """Return the method or field that holds a pattern that nothing applies."""
    if link.begun.source is not source:
        return None
    node = enclosing(link.begun.node, "method_declaration", "field_declaration")
    is_method = node is not None and node.type == "method_declaration"
    kind = text_of(node.child_by_field_name("type")) if node is not None and is_method else ""
    if node is None or not kind.startswith(("Pattern", "GroupPattern")):
        declared = enclosing(link.begun.node, "variable_declarator")
        return None if declared is None else Site(declared, source)
    return None if children(node.child_by_field_name("parameters")) else Site(node, source)


_LIKELY_TIMES = ("time", "timestamp", "ts", "at", "eventtime", "event_time", "millis")
"""Columns that are probably the time of an event, if a pattern is not applied."""


def _missed_statements(source: Source, written: str, count: int) -> list[Note]:
    """Return a note for each clause in a text of Java that no statement has which is written."""
    what = f"MATCH_RECOGNIZE in a text that could not be followed: {PART}"
    have = " ".join(written.split())
    texts = [
        literal
        for literal in inside(source.root, "string_literal")
        if "MATCH_RECOGNIZE" in text_of(literal).upper()
    ]
    if len(texts) <= count:
        return []
    return [
        Note(source.file, line_of(literal), what)
        for literal in texts
        if " ".join(str(getattr(literal_of(literal), "value", "")).split()) not in have
    ]


def _write_missed(
    project: Project, source: Source, patterns: PatternWriter, idle: list[Code], used: set[int]
) -> None:
    """Write the patterns that no method leads to, and what raises for calls that none has."""
    calls = [
        (text_of(call.child_by_field_name("name")), call)
        for call in inside(source.root, "method_invocation")
    ]
    for name, call in calls:
        if name != "begin" or not _is_flink(call) or call.start_byte in patterns.seen_starts:
            continue
        if _is_in(call, source, [*patterns.marked, *idle]):
            continue
        whole, owner = _whole(call), project.at(source, line_of(call))
        value = None
        if owner is not None:
            value = Walker(project).evaluate(whole, Scope(source, owner))
        if isinstance(value, Link):
            patterns.write(value)
            what = f"nothing that is followed leads to this pattern: {PART}"
            patterns.module.notes.append(Note(source.file, line_of(call), what))
        else:
            patterns.missed(Code(whole, source, Scope(source)))
    for name, call in calls:
        if name not in STAGES | CHANGES or (source.file, call.end_byte) in patterns.calls:
            continue
        known = _is_in(call, source, [*patterns.marked, *idle])
        if not known and _is_of_pattern(call) and not _is_used(call, source, project):
            patterns.missed(Code(_whole(call), source, Scope(source)), "missed_stage")
    for name, call in calls:
        is_job = name == "pattern" and _is_flink(call) and call.start_byte not in used
        if is_job and not _is_in(call, source, patterns.marked):
            what = f"a pattern is applied where it could not be followed: {PART}"
            patterns.module.notes.append(Note(source.file, line_of(call), what))


def _whole(call: Node) -> Node:
    """Return the last of the calls on a call."""
    while call.parent is not None and call.parent.type == "method_invocation":
        call = call.parent
    return call


def _is_in(node: Node, source: Source, codes: list[Code]) -> bool:
    """Whether code is part of other code of the same file."""
    return any(
        one.node is not None
        and one.source is source
        and one.node.start_byte <= node.start_byte
        and node.end_byte <= one.node.end_byte
        for one in codes
    )


def _is_of_pattern(call: Node) -> bool:
    """Whether a call is one on a pattern, as far as names and types of variables say."""
    names = set()
    root: Node | None = call
    while root is not None and root.type == "method_invocation":
        given = children(root.child_by_field_name("arguments"))
        name = text_of(root.child_by_field_name("name"))
        names.add(name if given or name not in ("next", "times") else "")
        root = root.child_by_field_name("object")
    type_ = "" if root is None else declared_type(root, text_of(root).removeprefix("this."))
    return bool(names & _ONLY_PATTERNS) or type_ in _PATTERNS


_PATTERNS = ("Pattern", "GroupPattern")
_ONLY_PATTERNS = STAGES | {"oneOrMore", "timesOrMore", "allowCombinations", "consecutive"}


def _is_used(call: Node, source: Source, project: Project) -> bool:
    """Whether a call is in a method that another file calls, which says what becomes of it."""
    method = enclosing(call, "method_declaration", "constructor_declaration")
    if method is None:
        return False
    name = text_of(method.child_by_field_name("name"))
    return any(name in called_in(one) for one in project.sources if one is not source)


def _count(written: Written, translation: Translation) -> None:
    conditions = [made for _, made in translation.conditions]
    functions = {(id(c.source), c.node.start_byte): made for c, made in translation.functions}
    written.conditions, written.functions = len(conditions), len(functions)
    written.sql = sum(made.sql is not None for made in conditions)
    written.stubs = sum(m.stub for m in [*conditions, *functions.values()])


def _entries(project: Project, source: Source) -> list[tuple[JavaClass, Method | None]]:
    """Return the methods to follow: ``main`` first, then those that others may not reach."""
    classes = list(project.all_of_file(source))
    methods = [(c, m) for c in classes for same in c.methods.values() for m in same]
    mains = [(c, m) for c, m in methods if m.name == "main"]
    others = [(c, m) for c, m in methods if m.name != "main" and m.body is not None]
    others = [(c, m) for c, m in others if has_patterns(text_of(m.body))]
    others.sort(key=lambda pair: _APPLY.search(text_of(pair[1].body)) is None)
    fields = [
        (c, None)
        for c in classes
        if any(f.value is not None and has_patterns(text_of(f.value)) for f in c.fields.values())
    ]
    return [*mains, *others, *fields]


def _covered(method: Method, used: set[int]) -> bool:
    """Whether all that matters in a method was followed from elsewhere."""
    if method.name == "main" or method.body is None:
        return False
    names = {"begin", "pattern", *STATEMENTS}
    starts = [
        call.start_byte
        for call in inside(method.body, "method_invocation")
        if text_of(call.child_by_field_name("name")) in names and _is_flink(call)
    ]
    return all(start in used for start in starts)


def _is_flink(call: Node) -> bool:
    owner = call.child_by_field_name("object")
    name = text_of(call.child_by_field_name("name"))
    if name in STATEMENTS:
        return "MATCH_RECOGNIZE" in text_of(call).upper()
    return owner is not None and simple_name(text_of(owner)) in ("Pattern", "CEP")


def _loose(walker: Walker, applied: list[Link]) -> list[Link]:
    """Return the patterns that nothing in the program goes on from or applies."""
    inner = {link for link in walker.links if link.is_group}
    inner |= {link.previous for link in walker.links if link.previous is not None}
    for link in [*walker.links, *applied]:
        for part in link.joined:
            inner |= set(part.ancestors())
    for link in applied:
        inner |= set(link.ancestors())
    return [link for link in walker.links if link not in inner]


def _app(settings: list[Call], owner: JavaClass) -> str:
    """Return the name of a job: that of ``env.execute``, or of the class."""
    named = (one.arguments[0] for one in settings if one.method == "execute" and one.arguments)
    return next((str(one.value) for one in named if isinstance(one, Const)), owner.name)
