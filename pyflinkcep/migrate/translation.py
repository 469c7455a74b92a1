# SPDX-License-Identifier: Apache-2.0
"""Asks for conditions, functions and selectors with what the walker knows of their variables."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from pyflinkcep.migrate.chains.lookup import inside, simple_name, type_arguments
from pyflinkcep.migrate.chains.values import Code, Link, Made, Symbol, Unknown, Value
from pyflinkcep.migrate.conditions import joined_columns, translate_condition, translate_value
from pyflinkcep.migrate.functions import translate_comparator, translate_function
from pyflinkcep.migrate.java.declarations import JavaClass, JavaType
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import line_of, parse_java, text_of
from pyflinkcep.migrate.java.types import discriminator, schema_of, spark_type
from pyflinkcep.migrate.translated import Translated, TranslatedFunction

__all__ = ["Translation", "code_of", "place"]


def place(code: Code) -> str:
    """Return the file and line of Java."""
    return f"{code.source.file.rsplit('/', 1)[-1]}:{line_of(code.node)}"


def code_of(value: Value | None) -> Code | None:
    """Return the Java of a value, if it is kept."""
    if isinstance(value, Code):
        return value
    if isinstance(value, Made | Unknown):
        return value.code
    return value.begun if isinstance(value, Link) else None


_MOMENT = re.compile(r"([^{}]*?)(?:\.toInstant\(\))?\.(?:toEpochMilli|getTime)\(\)\s*", re.DOTALL)


@attrs.define(eq=False)
class Translation:
    """
    Translates pieces of Java, and counts them.

    Attributes
    ----------
    project : Project
        What the program declares.
    conditions, functions : list of Translated
        What was translated, for the report.
    columns : dict of dict
        The columns that were read of events whose classes are not in the project.
    """

    project: Project
    conditions: list[tuple[Code, Translated]] = attrs.field(factory=list)
    functions: list[tuple[Code, Translated]] = attrs.field(factory=list)
    columns: dict[str | None, dict[str, str]] = attrs.field(factory=dict)

    def condition(
        self, code: Code, event_type: str | None, stages: Sequence[str], name: str = "condition"
    ) -> Translated:
        """Translate a condition."""
        kind = event_type and simple_name(event_type)
        given = (code.node, code.source, self.project, kind, stages)
        made = translate_condition(*given, code.scope.known(), name)
        names = _symbols(code)
        if made.stub and names:
            stand_ins = {java: stand_in for java, (_, stand_in) in names.items()}
            known = {**code.scope.known(), **stand_ins}
            made = template(translate_condition(*given, known, name), names) or made
        self.conditions.append((code, made))
        self.columns[kind] = joined_columns(self.columns.get(kind, {}), made.columns)
        return made

    def function(
        self, code: Code, kind: str, event_type: str | None, name: str | None = None
    ) -> TranslatedFunction:
        """Translate a function of matches."""
        event = event_type and simple_name(event_type)
        made = translate_function(
            code.node, code.source, self.project, kind, event, code.scope.known(), name
        )
        self.functions.append((code, made))
        return made

    def value(self, code: Code, event_type: str | None) -> Translated:
        """Translate a selector of an event."""
        kind = event_type and simple_name(event_type)
        made = translate_value(
            code.node, code.source, self.project, kind, code.scope.known(), "value"
        )
        self.columns[kind] = joined_columns(self.columns.get(kind, {}), made.columns)
        return made

    def returned(self, code: Code, event_type: str | None) -> Translated | None:
        """Translate what ``extractTimestamp`` of a class returns in the end, without the rest."""
        declared = self.class_made(code)
        bodies = [code.node, *([declared.node] if declared is not None else [])]
        for method in (m for body in bodies for m in inside(body, "method_declaration")):
            if not text_of(method.child_by_field_name("name")).startswith("extract"):
                continue
            returns = list(inside(method, "return_statement"))
            first = list(inside(method.child_by_field_name("parameters"), "formal_parameter"))
            if len(returns) == 1 and first:
                written = text_of(returns[0]).removeprefix("return").rstrip("; ")
                event = text_of(first[0].child_by_field_name("name"))
                return self._as_lambda(f"{event} -> {written}", code, event_type)
        return None

    def class_made(self, code: Code) -> JavaClass | None:
        """Return the class of the program of which an expression makes an object."""
        if not code.node.type.startswith("object"):
            return None
        name = simple_name(text_of(code.node.child_by_field_name("type")))
        return self.project.find(name, code.source)

    def _as_lambda(self, text: str, code: Code, event_type: str | None) -> Translated | None:
        parsed = parse_java(f"class T {{ Object o = {text}; }}", code.source.file)
        lambdas = list(inside(parsed.root, "lambda_expression"))
        if not lambdas:
            return None
        source = attrs.evolve(code.source, root=parsed.root)
        made = translate_value(
            lambdas[0], source, self.project, event_type and simple_name(event_type)
        )
        return None if made.stub else made

    def moment(self, code: Code, event_type: str | None) -> str | None:
        """Return the column of a moment whose milliseconds a function returns."""
        found = _MOMENT.fullmatch(text_of(code.node))
        if found is None:
            return None
        made = self._as_lambda(found[1], code, event_type)
        if made is None or made.sql is None:
            return None
        return made.sql if made.sql.strip("`").isidentifier() else None

    def comparator(self, code: Code, event_type: str | None) -> Translated:
        """Translate a comparator of events."""
        event = event_type and simple_name(event_type)
        return translate_comparator(code.node, code.source, self.project, event, code.scope.known())

    def subclasses(self, name: str, code: Code) -> list[str]:
        """Return the classes that extend a class."""
        declared = self.project.find(name, code.source)
        return [] if declared is None else [one.name for one in self.project.subclasses(declared)]

    def discriminator(self, name: str, code: Code) -> str:
        """Return the column with the class of an event."""
        declared = self.project.find(name, code.source)
        return "type" if declared is None else discriminator(declared, self.project)

    def fields(self, declared: JavaClass) -> list[str]:
        """Return the columns of the events of a class, in order."""
        schema = schema_of(declared.name, declared.source, self.project) or ""
        return [column.split(" ", 1)[0].strip("`") for column in columns_of(schema)]

    def schema(self, type_: str | None, code: Code) -> str | None:
        """Return the schema of a class as DDL."""
        read_ = self.columns.get(type_ and simple_name(type_), {})
        unknown = ", ".join(f"{name} {kind}" for name, kind in read_.items()) or None
        if type_ is None:
            return unknown
        made = schema_of(simple_name(type_), code.source, self.project)
        if made is not None:
            return made
        name, *_ = simple_name(type_), type_
        arguments = [read(argument) for argument in type_arguments(type_)]
        single = spark_type(JavaType(name, tuple(arguments)), self.project, code.source)
        if single is None:
            return unknown
        if name.startswith("Tuple") and single.startswith("struct<"):
            return ", ".join(part.replace(":", " ", 1) for part in columns_of(single[7:-1]))
        return f"value {single}"


@attrs.frozen
class Template(Translated):
    """
    A condition with values that are known at run time alone, as ``{name}`` in its SQL.

    Attributes
    ----------
    names : tuple of (str, str)
        The parameters, with their Java types.
    """

    names: tuple[tuple[str, str], ...] = ()


def _symbols(code: Code) -> dict[str, tuple[Symbol, int | float]]:
    """Return the numbers that a condition captures, with stand-ins that nothing else equals."""
    used = {text_of(name) for name in inside(code.node, "identifier")}
    found: dict[str, tuple[Symbol, int | float]] = {}
    for place, (name, value) in enumerate(code.scope.all().items()):
        if isinstance(value, Symbol) and name in used and value.python.isidentifier():
            number = 918273645 + place
            if value.type in ("int", "long", "Integer", "Long"):
                found[name] = (value, number)
            elif value.type in ("double", "float", "Double"):
                found[name] = (value, number + 0.5)
    return found


def template(made: Translated, names: dict[str, tuple[Symbol, int | float]]) -> Template | None:
    """Return a condition with parameters in the place of stand-ins; None if one is gone."""
    text = made.sql if made.sql is not None else made.python or ""
    if made.stub or not all(repr(stand_in) in text for _, stand_in in names.values()):
        return None
    if made.sql is not None:
        text = text.replace("{", "{{").replace("}", "}}")
    for symbol, stand_in in names.values():
        inner = symbol.python if made.sql is None else f"{{{symbol.python}}}"
        text = text.replace(repr(stand_in), inner)
    parameters = tuple(pair for symbol, _ in names.values() for pair in symbol.names)
    facts = attrs.asdict(made, recurse=False)
    facts["sql" if made.sql is not None else "python"] = text
    return Template(**facts, names=parameters)


def read(written: str) -> JavaType:
    """Return a type from its text."""
    return JavaType(simple_name(written), tuple(read(a) for a in type_arguments(written)))


def columns_of(ddl: str) -> list[str]:
    """
    Return the columns of a schema.

    Examples
    --------
    >>> columns_of("a string, b struct<c:int,d:int>")
    ['a string', 'b struct<c:int,d:int>']
    """
    found, depth, start = [], 0, 0
    for at, letter in enumerate(ddl):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            found.append(ddl[start:at].strip())
            start = at + 1
    return [*found, ddl[start:].strip()] if ddl else found
