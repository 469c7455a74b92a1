# SPDX-License-Identifier: Apache-2.0
"""A pattern as a function of Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import attrs

from pyflinkcep.migrate.chains.expressions import CONDITIONS, STAGES
from pyflinkcep.migrate.chains.values import (
    Branch,
    Call,
    Code,
    Const,
    Gap,
    Item,
    Link,
    Loop,
    Skip,
    Symbol,
    Unknown,
    Value,
    code_of,
)
from pyflinkcep.migrate.java.source import Node, children, inside, simple_name, snake, text_of
from pyflinkcep.migrate.meaning.literals import constant as quoted
from pyflinkcep.migrate.meaning.statements import negated
from pyflinkcep.migrate.meaning.translated import PART, Translated
from pyflinkcep.migrate.writing.module import Module, chain, indented, python_type, raising, timed
from pyflinkcep.migrate.writing.translation import Translation, parameters

_MOST_CALLS = 400
Calls = list[tuple[str, list[str]]]


def stages_of(items: Sequence[Item]) -> Iterator[str]:
    """Yield the names of the stages that are known."""
    for item in items:
        if isinstance(item, Branch):
            yield from stages_of((*item.then, *item.otherwise))
        elif isinstance(item, Loop):
            yield from stages_of(item.body)
        elif isinstance(item, Call) and (item.method == "begin" or item.method in STAGES):
            first = item.arguments[0] if item.arguments else None
            if isinstance(first, Const):
                yield str(first.value)
            elif isinstance(first, Link):
                yield from stages_of(first.flat())


@attrs.define(eq=False)
class PatternWriter:
    """Writes patterns into a module."""

    module: Module
    translation: Translation
    written: dict[Link, tuple[str, tuple[tuple[str, str], ...]]] = attrs.field(factory=dict)
    written_starts: set[int] = attrs.field(factory=set)
    seen_starts: set[int] = attrs.field(factory=set)
    # The calls of Flink's API that were written: their files, and where they end.
    calls: set[tuple[str, int]] = attrs.field(factory=set)
    # The Java for which there is something that raises.
    marked: list[Code] = attrs.field(factory=list)
    _stages: tuple[str, ...] = ()
    _stage: str = "event"
    # Of what is written now: the class of its events, and how far it is indented.
    _event_type: str | None = None
    _indent: int = 4
    _parameters: dict[str, str] = attrs.field(factory=dict)
    _lines: list[str] = attrs.field(factory=list)

    def write(self, link: Link) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Write the function of a pattern, once; return its name and parameters."""
        if link in self.written:
            return self.written[link]
        items = link.flat()
        self._stages = tuple(dict.fromkeys(stages_of(items)))
        self._parameters, self._lines = {}, []
        wanted = snake(link.name or "pattern")
        wanted = wanted if wanted.endswith("pattern") else f"{wanted}_pattern"
        name = self.module.name(wanted)
        self._event_type, self._indent = link.event_type, 4
        self._whole(items, "return ")
        parameters = tuple(self._parameters.items())
        signature = ", ".join(f"{name}: {python_type(kind)}" for name, kind in parameters)
        named = f"the pattern {link.name}" if link.name else "the pattern"
        doc = f"Return {named} ({link.begun.place})"
        self.module.define(f"{name}({signature}) -> Pattern", doc, self._lines, link.documented)
        self.written[link] = (name, parameters)
        self.written_starts.add(link.begun.node.start_byte)
        return self.written[link]

    def missed(self, code: Code, name: str = "missed_pattern") -> None:
        """Write a function that raises, for a pattern that could not be followed."""
        self.marked.append(code)
        self.module.stub(name, "", "Pattern", f"build the pattern of {code.place}", code)
        self.module.note(code, "a pattern that could not be followed: write it")

    def left(self, code: Code) -> list[str]:
        """Return statements that raise, with the Java in whose place they are."""
        self.marked.append(code)
        return raising(code)

    # --- statements

    def _whole(self, items: Sequence[Item], target: str) -> None:
        """Write calls as one expression, or as statements, that a target gets in the end."""
        if all(isinstance(item, Call) for item in items):
            self._straight(items, target, "Pattern")
            return
        self._statements(items, begun=False)
        last = self._lines[-1]
        if target == "return " and last.startswith("pattern = "):
            self._lines[-1] = f"return {last.removeprefix('pattern = ')}"
        else:
            self._lines.append(f"{target}pattern")

    def _statements(self, items: Sequence[Item], *, begun: bool) -> bool:
        run: list[Item] = []
        for item in [*items, None]:
            if isinstance(item, Call):
                run.append(item)
                continue
            if run:
                start = "pattern" if begun else "Pattern"
                self._straight(run, "pattern = ", start)
                begun, run = True, []
            if isinstance(item, Gap):
                self._lines += [f"# TODO: do what {item.code.place} does", *self.left(item.code)]
                what = "a pattern is changed where it could not be followed: write that"
                self.module.note(item.code, what)
            elif isinstance(item, Branch):
                begun = self._branch(item, begun=begun)
            elif isinstance(item, Loop):
                self._need(item.header.over)
                counter, given = item.header.counter, set(self._parameters)
                header = f"for {counter} in {self.module.python_of(item.header.over)}:"
                self._nested(header, item.body, begun=begun)
                if counter not in given:  # it is a variable of the loop
                    self._parameters.pop(counter, None)
        return begun

    def _branch(self, item: Branch, *, begun: bool) -> bool:
        test, then, otherwise = item.condition, item.then, item.otherwise
        if not then:
            test = attrs.evolve(test, tree=negated(test.tree))
            then, otherwise = otherwise, ()
        after = self._nested(f"if {self._need(test)}:", then, begun=begun)
        if otherwise:
            after = self._nested("else:", otherwise, begun=begun)
        return after

    def _nested(self, header: str, items: Sequence[Item], *, begun: bool) -> bool:
        outer, self._lines = self._lines, []
        self._indent += 4
        after = self._statements(items, begun=begun)
        self._indent -= 4
        inner, self._lines = self._lines, outer
        self._lines.append(header)
        self._lines.append(indented("\n".join(inner or ["pass"])))
        return after

    def _straight(self, items: Sequence[Item], prefix: str, start: str) -> None:
        if len(items) > _MOST_CALLS:  # a longer expression is too deep for Python
            self._straight(items[:_MOST_CALLS], "pattern = ", start)
            self._straight(items[_MOST_CALLS:], prefix, "pattern")
            return
        calls: Calls = []
        kind = self._event_type
        for item in items:
            assert isinstance(item, Call)
            if item.method in STAGES:
                kind = self._event_type  # that of subtype() is the type of one stage
            made, kind = self._call(item, kind)
            if made is not None:
                calls.append(made)
        self._lines.append(chain(start, calls, prefix, self._indent))

    # --- calls

    def _call(
        self, call: Call, event_type: str | None
    ) -> tuple[tuple[str, list[str]] | None, str | None]:
        """Return a call as Python, and the class of the events of the calls after it."""
        self.calls.add((call.code.source.file, call.code.node.end_byte))
        if call.method in CONDITIONS:
            return self._condition(call, event_type), event_type
        if call.method == "begin":
            self.seen_starts.add(call.code.node.start_byte)
        if call.method == "begin" or call.method in STAGES:
            named = [a.value for a in call.arguments[:1] if isinstance(a, Const)]
            self._stage = next((one for one in named if isinstance(one, str)), "event")
        if call.method == "subtype":
            return self._subtype(call, event_type)
        arguments = [
            self._argument(call, value, place) for place, value in enumerate(call.arguments)
        ]
        return (call.method, arguments), event_type

    def _condition(self, call: Call, event_type: str | None) -> tuple[str, list[str]] | None:
        value = call.arguments[0] if call.arguments else None
        code = code_of(value) or call.code
        name = f"{'ends' if call.method == 'until' else 'is'}_{snake(self._stage).strip('_')}"
        made = self.translation.condition(code, event_type, self._stages, name)
        self.module.notes.extend(made.notes)
        method = "or_" if call.method == "or" else call.method
        if made.captured:
            return method, [self._template(code, made)]
        if made.sql is not None:
            return method, [quoted(made.sql)]
        return method, [self.module.translated(made)]

    def _template(self, code: Code, made: Translated) -> str:
        """Return a condition with parameters: a function that a function makes."""
        needed, read = parameters(code, made)
        self._parameters.update(needed)
        name = self.module.factory(made, read, "Callable[..., bool]")
        return f"{name}({', '.join(read)})"

    def _subtype(
        self, call: Call, event_type: str | None
    ) -> tuple[tuple[str, list[str]] | None, str | None]:
        written = text_of(call.code.node.child_by_field_name("arguments")).strip("()")
        kind = simple_name(written.removesuffix(".class"))
        events = self.translation.project.find(simple_name(event_type or "?"), call.code.source)
        if events is not None and self.translation.project.is_a(events, kind):
            self.module.note(call, f"subtype({kind}.class) holds for every event, and is left out")
            return None, kind
        names = [kind, *self.translation.subclasses(kind, call.code)]
        listed = ", ".join(f"'{name}'" for name in names)
        column = self.translation.discriminator(kind, call.code)
        sql = f"{column} = '{kind}'" if len(names) == 1 else f"{column} IN ({listed})"
        self.module.note(call, f"subtype({kind}.class) became a test of the column {column!r}")
        return ("where", [quoted(sql)]), kind

    def _argument(self, call: Call, value: Value, place: int) -> str:
        if isinstance(value, Const) and not isinstance(value.value, tuple):
            return self._constant(value.value)
        if isinstance(value, Symbol):
            return self._need(value)
        if isinstance(value, Skip):
            return self._skip(value)
        if isinstance(value, Link):
            return self._group(value)
        code = code_of(value)
        node = call.code.node if code is None else code.node
        written = text_of(node)
        if written.startswith("WithinType.") or written in _WITHIN:
            return f"WithinType.{written.rsplit('.', 1)[-1]}"
        lost = isinstance(value, Unknown) and value.lost
        return self._unknown(call, written, node, place, lost=lost)

    def _unknown(self, call: Call, written: str, node: Node, place: int, *, lost: bool) -> str:
        """Return a parameter for a value that the source does not say."""
        given = children(call.code.node.child_by_field_name("arguments"))[place : place + 1]
        if node.type in _MADE_HERE or any(any(inside(one, *_MADE_HERE)) for one in given):
            return self._not_read(call, given[0] if given else node)
        kind = "String" if call.method in (*STAGES, "begin") else "int"
        kind = "Duration" if call.method == "within" else kind
        kind = "AfterMatchSkipStrategy" if call.method == "begin" and place else kind
        name = snake(written.rsplit(".", 1)[-1].removesuffix("()").removeprefix("get"))
        name = name if name.isidentifier() and len(name) < 40 else snake(f"{call.method}_value")
        what = "not known before the program runs: it became a parameter"
        if lost:
            what = f"changed where it is not followed: {PART}"
            written = text_of(call.code.node.child_by_field_name("arguments"))
        self.module.note(call, f"{written} is {what}")
        self._parameters[name] = kind
        return name

    def _not_read(self, call: Call, node: Node) -> str:
        """Return a call of a function that raises, for what the program makes and is not read."""
        code = Code(node, call.code.source, call.code.scope)
        self.marked.append(code)
        what = f"return what {call.method}() is given ({code.place})"
        name = self.module.stub(f"{snake(call.method)}_argument", "", "Any", what, code)
        self.module.note(call, f"what {call.method}() is given is not understood: write {name}()")
        return f"{name}()"

    def _constant(self, value: object) -> str:
        return timed(value) if isinstance(value, timedelta) else quoted(value)

    def _skip(self, skip: Skip) -> str:
        stage = ""
        if isinstance(skip.stage, Const):
            stage = self._constant(skip.stage.value)
        elif isinstance(skip.stage, Symbol):
            stage = self._need(skip.stage)
        text = f"AfterMatchSkipStrategy.{skip.method}({stage})"
        return f"{text}.throwExceptionOnMiss()" if skip.throws else text

    def _group(self, link: Link) -> str:
        """Return a group: in place if it is short, otherwise as a variable."""
        outer, self._lines = self._lines, []
        around, self._event_type = self._event_type, link.event_type
        items = link.flat()
        lines: list[str] = []
        if all(isinstance(item, Call) for item in items):
            self._straight(items, "", "Pattern")
            lines, self._lines = self._lines, []
        if len(lines) == 1 and "\n" not in lines[0] and len(lines[0]) < 60:
            name = lines[0]
        else:
            name = snake(link.name or "group")
            taken = {line.split(" ", 1)[0] for line in outer}
            while name in taken or name == "pattern":
                name += "_group"
            self._whole(items, f"{name} = ")
        self._lines, self._event_type = [*outer, *self._lines], around
        return name

    def _need(self, symbol: Symbol) -> str:
        """Return a value as Python; the function gets the parameters that it is made of."""
        self._parameters.update(symbol.names)
        return self.module.python_of(symbol)


_MADE_HERE = ("lambda_expression", "method_reference", "object_creation_expression")
"""What the program makes itself, so that it is no parameter of it."""
_WITHIN = ("PREVIOUS_AND_CURRENT", "FIRST_AND_LAST")
