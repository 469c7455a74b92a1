# SPDX-License-Identifier: Apache-2.0
"""Functions of events before a pattern, and of rows after it: map, flatMap, filter, process."""

from __future__ import annotations

import re

import attrs

from pyflinkcep.migrate.chains.lookup import snake
from pyflinkcep.migrate.chains.values import Code, Stream
from pyflinkcep.migrate.java.source import line_of
from pyflinkcep.migrate.translated import Note, TranslatedFunction
from pyflinkcep.migrate.translation import Translation, columns_of
from pyflinkcep.migrate.writing.module import Module
from pyflinkcep.migrate.writing.text import chain, literal, quoted

__all__ = ["StreamFunctions"]

_KINDS = {"map": "map", "flatMap": "flatMap", "process": "element"}
_WHOLE = re.compile(r"(?<!\w)event(?![\w.\[])")
_PARSED = re.compile(
    r"^    return (?:row_of\()?json_object\(event\.value(?:, \{[^}]*\})?\)"
    r'(?:, (?:"\w+"(?:, )?)+\))?$',
    re.MULTILINE,
)


@attrs.define(eq=False)
class StreamFunctions:
    """Writes functions of events into a module, and calls them on DataFrames."""

    module: Module
    translation: Translation
    notes: list[Note]

    def applied(self, stream: Stream, code: Code, before: str, kept: list[str]) -> str | None:
        """
        Return what a function makes of rows; None if it is not translated.

        Parameters
        ----------
        stream : Stream
            The result.
        code : Code
            The function.
        before : str
            The DataFrame.
        kept : list of str
            The columns that go past the function, such as the time.
        """
        method = stream.call.method
        if method == "filter":
            return self._filtered(stream, code, before)
        name = snake(f"{method}_{stream.name or 'events'}")
        kind, event = _KINDS[method], stream.inputs[0].event_type
        made = self.translation.function(code, kind, event, name)
        if event is None and _WHOLE.search(_body(made)):
            return None  # it is not known whether that is a text or an object
        is_map = made.output_type is not None and made.output_type.startswith("value map<")
        if made.stub or made.captured or made.output_tags or made.output_type is None or is_map:
            why = [note.what for note in made.notes if note.what.startswith("not translated")]
            self.notes += [Note(code.source.file, line_of(code.node), what) for what in why]
            return None
        self.notes.extend(made.notes)
        stream.event_type = stream.event_type or made.result
        if re.search(r"^    return (event|row_of\(event(, \"\w+\")+\))$", _body(made)):
            return before  # it returns what it was given
        schema = self._schema(stream, made)
        if kind == "map" and _is_parsed(made):
            aliases = self.translation.aliases(stream.event_type, code)
            return self.from_json(before, 'F.col("value")', schema, made.output_type, aliases)
        self.module.use("from pyspark.sql import functions as F")
        function = self.module.define(made)
        others = [quoted(name) for name in kept]
        if kind == "map":
            row = f'F.udf({function}, {schema}, useArrow=False)(F.struct("*")).alias("row")'
            selected = [("select", [row, *others]), ("select", ['"row.*"', *others])]
            return chain(before, selected, "", 4)
        self.module.use("from pyflinkcep.migrate.runtime import collected")
        type_ = f'f"array<struct<{{{schema}}}>>"'
        rows = f'F.inline(F.udf(collected({function}), {type_}, useArrow=False)(F.struct("*")))'
        return chain(before, [("select", [*others, rows])], "", 4)

    def _filtered(self, stream: Stream, code: Code, before: str) -> str | None:
        name = snake(f"keeps_{stream.name or 'event'}")
        made = self.translation.condition(code, stream.inputs[0].event_type, (), name)
        if made.stub or made.captured:
            return None
        self.notes.extend(made.notes)
        if made.sql is not None:
            return f"{before}.where({quoted(made.sql)})"
        self.module.use("from pyspark.sql import functions as F")
        function = self.module.define(made)
        return chain(
            before,
            [("where", [f'F.udf({function}, "boolean", useArrow=False)(F.struct("*"))'])],
            "",
            4,
        )

    def _schema(self, stream: Stream, made: TranslatedFunction) -> str:
        ddl = made.output_type or ""
        kind = stream.event_type or "row"
        plain = ddl.startswith("value ") or "<" in kind or not kind.isidentifier()
        wanted = stream.name or stream.call.method if plain else kind
        name = snake(wanted).upper().strip("_")
        comment = f"The fields of {kind}." if not plain else f"The columns after {_where(stream)}."
        return self.module.constant(name, literal(ddl, len(name) + 3), comment)

    def from_json(
        self, before: str, text: str, schema: str, ddl: str | None, aliases: dict[str, str]
    ) -> str:
        """
        Return rows with the fields that a text of JSON has.

        Parameters
        ----------
        before : str
            The DataFrame.
        text : str
            The column with the text.
        schema : str
            The constant with the columns.
        ddl : str or None
            What it says.
        aliases : dict of str to str
            The columns that have another name in JSON, by that name.
        """
        self.module.use("from pyspark.sql import functions as F")
        if not aliases or ddl is None:
            values = f'F.from_json({text}, {schema}).alias("event")'
            return chain(before, [("select", [values]), ("select", ['"event.*"'])], "", 4)
        other = {column: alias for alias, column in aliases.items()}
        pairs = [column.split(" ", 1) for column in columns_of(ddl)]
        inside = ", ".join(f"{other.get(name.strip('`'), name)} {type_}" for name, type_ in pairs)
        name = f"{schema}_JSON"
        json = self.module.constant(name, literal(inside, len(name) + 3), "Its names in JSON.")
        columns = [
            f"F.col({quoted('event.' + other[name])}).alias({quoted(name)})"
            if name in other
            else quoted(f"event.{name}")
            for name in (pair[0].strip("`") for pair in pairs)
        ]
        values = f'F.from_json({text}, {json}).alias("event")'
        return chain(before, [("select", [values]), ("select", columns)], "", 4)


def _is_parsed(made: TranslatedFunction) -> bool:
    """Whether a function does nothing but read JSON."""
    lines = [
        line for line in (made.python or "").splitlines() if not line.strip().startswith('"""')
    ]
    return len(lines) == 2 and _PARSED.search(made.python or "") is not None


def _body(made: TranslatedFunction) -> str:
    """Return the lines of a function after its docstring."""
    return (made.python or "").split('"""')[-1].strip("\n")


def _where(stream: Stream) -> str:
    code = stream.call.code
    return f"{stream.call.method}() in line {line_of(code.node)}"
