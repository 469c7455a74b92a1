# SPDX-License-Identifier: Apache-2.0
"""Tables that a program declares in SQL."""

from __future__ import annotations

import re

import attrs

__all__ = ["Table", "table_of"]


@attrs.define
class Table:
    """
    A table.

    Attributes
    ----------
    name : str
        Its name.
    columns : list of (str, str)
        What its records have, with Spark's types.
    computed : list of (str, str)
        What is computed of them, as SQL.
    metadata : list of (str, str)
        What the connector adds, by the name that it has there.
    watermark : tuple of (str, str) or None
        The column with the time, and how far the watermark is behind.
    options : dict of str to str
        The settings of the connector.
    problems : list of str
        What was not understood.
    """

    name: str
    columns: list[tuple[str, str]] = attrs.field(factory=list)
    computed: list[tuple[str, str]] = attrs.field(factory=list)
    metadata: list[tuple[str, str]] = attrs.field(factory=list)
    watermark: tuple[str, str] | None = None
    options: dict[str, str] = attrs.field(factory=dict)
    problems: list[str] = attrs.field(factory=list)

    @property
    def ddl(self) -> str:
        """The columns of its records as DDL."""
        return ", ".join(f"{name} {type_}" for name, type_ in self.columns)


_HEAD = re.compile(
    r"\s*CREATE\s+(?:TEMPORARY\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?[`\"]?([\w.]+)[`\"]?\s*\(",
    re.IGNORECASE,
)
_OPTION = re.compile(r"'([^']+)'\s*=\s*'((?:[^']|'')*)'")
_WATERMARK = re.compile(r"WATERMARK\s+FOR\s+`?(\w+)`?\s+AS\s+(.*)", re.IGNORECASE | re.DOTALL)
_INTERVAL = re.compile(r"INTERVAL\s+'([\d.]+)'\s+(SECOND|MINUTE|HOUR|DAY)", re.IGNORECASE)
_KEYWORDS = ("PRIMARY", "UNIQUE", "CONSTRAINT", "PERIOD")
_PLAIN = {
    "string": "string", "boolean": "boolean", "tinyint": "tinyint", "smallint": "smallint",
    "int": "int", "integer": "int", "bigint": "bigint", "float": "float", "double": "double",
    "date": "date", "time": "string", "bytes": "binary", "varchar": "string", "char": "string",
    "varbinary": "binary", "binary": "binary", "timestamp": "timestamp",
    "timestamp_ltz": "timestamp", "timestamp_tz": "timestamp",
}  # fmt: skip


def table_of(sql: str) -> Table | None:
    """
    Return the table that a statement declares; None if it declares none that is understood.

    Examples
    --------
    >>> made = table_of("CREATE TABLE t (a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - "
    ...                 "INTERVAL '5' SECOND) WITH ('connector' = 'kafka')")
    >>> made.ddl, made.watermark, made.options
    ('a int, ts timestamp', ('ts', '5 seconds'), {'connector': 'kafka'})
    """
    head = _HEAD.match(sql)
    if head is None:
        return None
    end = _closed(sql, head.end())
    table = Table(head[1].rsplit(".", 1)[-1])
    for part in _split(sql[head.end() : end]):
        _add(table, part)
    table.options = {name: value.replace("''", "'") for name, value in _OPTION.findall(sql[end:])}
    return table if table.columns or table.computed else None


def _closed(sql: str, start: int) -> int:
    depth, quote = 1, ""
    for at in range(start, len(sql)):
        letter = sql[at]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'`\"":
            quote = letter
        else:
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if depth == 0:
                return at
    return len(sql)


def _split(text: str) -> list[str]:
    """Return the parts between commas that are in no parentheses, brackets or quotes."""
    found, depth, start, quote = [], 0, 0, ""
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'`\"":
            quote = letter
        else:
            depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(letter, 0)
            if letter == "," and depth <= 0:
                found.append(text[start:at].strip())
                start = at + 1
    return [part for part in (*found, text[start:].strip()) if part]


def _add(table: Table, part: str) -> None:
    part = re.sub(r"--[^\n]*", "", part).strip()
    part = re.sub(r"\s+COMMENT\s+'[^']*'", "", part, flags=re.IGNORECASE)
    if not part or part.split()[0].upper() in _KEYWORDS:
        return
    watermark = _WATERMARK.fullmatch(part)
    if watermark is not None:
        found = _INTERVAL.search(watermark[2])
        behind = "0 seconds"
        if found is not None:
            behind = f"{found[1]} {found[2].lower()}{'' if found[1] == '1' else 's'}"
        table.watermark = (watermark[1], behind)
        return
    named = re.match(r"`([^`]+)`|\"([^\"]+)\"|(\w+)", part)
    if named is None:
        table.problems.append(part)
        return
    name = next(one for one in named.groups() if one)
    rest = part[named.end() :].strip()
    computed = re.match(r"AS\b(.*)", rest, re.IGNORECASE | re.DOTALL)
    if computed is not None:
        table.computed.append((name, spark_expression(computed[1].strip())))
        return
    metadata = re.search(r"\bMETADATA\b(?:\s+FROM\s+'([^']+)')?", rest, re.IGNORECASE)
    if metadata is not None:
        table.metadata.append((name, metadata[1] or name))
        return
    type_ = spark_type(re.sub(r"\s+(NOT\s+)?NULL\s*$", "", rest, flags=re.IGNORECASE))
    if type_ is None:
        table.problems.append(part)
    else:
        table.columns.append((name if name.isidentifier() else f"`{name}`", type_))


_NESTED = re.compile(r"(ARRAY|MAP|ROW)\s*[<(](.*)[>)]", re.IGNORECASE | re.DOTALL)


def spark_type(written: str) -> str | None:
    """
    Return Spark's type for one of Flink's SQL; None if it is unknown.

    Examples
    --------
    >>> spark_type("ROW<a INT, b ARRAY<VARCHAR(20)>>"), spark_type("DECIMAL(10, 2)")
    ('struct<a:int,b:array<string>>', 'decimal(10,2)')
    """
    text = written.strip()
    nested = _NESTED.fullmatch(text)
    if nested is not None:
        return _nested(nested[1].lower(), _split(nested[2]))
    name = re.match(r"\w+", text)
    kind = name[0].lower() if name is not None else ""
    if kind in ("decimal", "numeric", "dec"):
        digits = re.search(r"\(([\d, ]+)\)", text)
        return f"decimal({digits[1].replace(' ', '')})" if digits else "decimal(10,0)"
    return _PLAIN.get(kind)


def _nested(kind: str, parts: list[str]) -> str | None:
    if kind == "row":
        fields = [part.partition(" ") for part in parts]
        types = [(name.strip("`"), spark_type(type_)) for name, _, type_ in fields]
        known = [f"{name}:{type_}" for name, type_ in types if type_ is not None]
        return f"struct<{','.join(known)}>" if len(known) == len(parts) else None
    inner = [spark_type(part) for part in parts]
    known = [type_ for type_ in inner if type_ is not None]
    return f"{kind}<{','.join(known)}>" if len(known) == len(parts) else None


def spark_expression(sql: str) -> str:
    """
    Return an expression of Flink's SQL as Spark has it.

    Examples
    --------
    >>> spark_expression("TO_TIMESTAMP_LTZ(ms, 3)"), spark_expression("PROCTIME()")
    ('timestamp_millis(ms)', 'current_timestamp()')
    """
    text = re.sub(r"TO_TIMESTAMP_LTZ\((.*),\s*3\s*\)", r"timestamp_millis(\1)", sql, flags=re.I)
    text = re.sub(r"TO_TIMESTAMP_LTZ\((.*),\s*0\s*\)", r"timestamp_seconds(\1)", text, flags=re.I)
    text = re.sub(r"\bPROCTIME\(\)", "current_timestamp()", text, flags=re.IGNORECASE)
    return re.sub(r"\s+", " ", text)
