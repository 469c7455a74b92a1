# SPDX-License-Identifier: Apache-2.0
"""SQL over one event as Columns, whatever runs it; conditions, checked here, one bit each."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, DayTimeIntervalType, StringType, StructType

from pyflinkcep.conditions import SubtypeCondition
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom, guarded, guarded_parts, words
from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.parser import column_owners, event_tree
from pyflinkcep.expressions.program import CompiledExpressions, Kind, Type
from pyflinkcep.expressions.tokens import slip
from pyflinkcep.expressions.tree import Column as Name
from pyflinkcep.expressions.tree import Leaf, MatchExpression
from pyflinkcep.matching.columns import field_names, spark_atoms
from pyflinkcep.matching.layout import bit_names
from pyflinkcep.spark.plan.analysis import common_kind, first_line, is_ansi, joined, sql_type, where
from pyflinkcep.spark.plan.engine import SPARK, engine_of
from pyflinkcep.spark.plan.portable import Setting, Value, portable
from pyflinkcep.spark.worker.computed_columns import SqlTexts

_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00", "UTC+0")


class UnknownNameError(CepError):
    """A column that the events lack, which the engine refuses in its own words."""


def sql_column(sql: str, dataframe: DataFrame) -> Column:
    """Return what SQL computes from one event; see :func:`sql_columns`."""
    return sql_columns([sql], dataframe)[0]


def sql_columns(given: Sequence[str | Column], dataframe: DataFrame) -> list[Column]:
    """Return what SQL computes from one event, with Spark's values whatever runs it."""
    session = dataframe.sparkSession
    if any(isinstance(one, str) for one in given) and engine_of(session) is not SPARK:
        setting = setting_of(session)
        given = [
            _with_sparks_values(one, dataframe, setting) if isinstance(one, str) else one
            for one in given
        ]
    return [F.expr(one) if isinstance(one, str) else one for one in given]


def _with_sparks_values(sql: str, dataframe: DataFrame, setting: Setting) -> str:
    try:
        tree = event_tree(sql)
    except CepError:
        raise setting.unknown(sql) from None
    try:
        return portable(tree, names_of(dataframe.schema), setting).sql
    except UnknownNameError:
        return sql


def setting_of(session: SparkSession) -> Setting:
    """Return what values depend on in a session."""
    return Setting(
        engine_of(session).name,
        session.conf.get("spark.sql.ansi.enabled") == "true",
        session.conf.get("spark.sql.session.timeZone") in _UTC,
    )


def names_of(schema: StructType) -> Callable[[Leaf], Value]:
    """Return a function from a column to its value."""
    types = {field.name: sql_type(field.dataType) for field in schema}
    folded = {name.casefold(): type_ for name, type_ in types.items()}

    def named(leaf: Leaf) -> Value:
        assert isinstance(leaf, Name)
        name = str(leaf.sql)[1:-1].replace("``", "`")
        type_ = types.get(name, folded.get(name.casefold()))
        if type_ is None:
            raise UnknownNameError(name, "")
        return Value(str(leaf.sql), type_)

    return named


def analysed(
    nfa: NFA, asked: Sequence[tuple[Atom, Column]], dataframe: DataFrame
) -> list[DataType]:
    """Return the types of expressions over the events."""

    def refusal(number: int, cause: Exception) -> CepError:
        atom, _ = asked[number]
        problem = f"cannot be evaluated: {first_line(cause)}"
        return InputError(
            f"{where(nfa, atom)}: the condition {repr(atom.condition)!r} {problem}",
            _hint(nfa, atom, dataframe),
            problem=problem,
            stage=atom.stage,
            condition=repr(atom.condition),
        )

    return types_of([column for _, column in asked], dataframe, refusal)


def types_of(
    expressions: Sequence[str | Column],
    dataframe: DataFrame,
    refusal: Callable[[int, Exception], CepError],
) -> list[DataType]:
    """Return the types of expressions, each of them one value of one event."""
    if not expressions:
        return []
    try:
        return _types(expressions, dataframe)
    except NotSupportedError:
        own = [F.expr(e) if isinstance(e, str) else e for e in expressions]
        _one_by_one(own, dataframe, refusal)  # what no engine computes is refused as such
        return _one_by_one(expressions, dataframe, refusal)
    except Exception:
        return _one_by_one(expressions, dataframe, refusal)


def _one_by_one(
    expressions: Sequence[str | Column],
    dataframe: DataFrame,
    refusal: Callable[[int, Exception], CepError],
) -> list[DataType]:
    found = []
    for number, expression in enumerate(expressions):
        try:
            found += _types([expression], dataframe)
        except NotSupportedError as cause:
            made = refusal(number, cause)
            raise NotSupportedError(made.message, cause.hint, span=made.span) from None
        except Exception as cause:
            raise refusal(number, cause) from cause
    return found


def _types(expressions: Sequence[str | Column], dataframe: DataFrame) -> list[DataType]:
    # Next to the events, so that none aggregates; each in a struct, so that it is one value.
    structs = [F.struct(column) for column in sql_columns(expressions, dataframe)]
    fields = dataframe.select("*", *structs).schema.fields[len(dataframe.columns) :]
    return [
        field.dataType.fields[0].dataType
        for field in fields
        if isinstance(field.dataType, StructType)
    ]


def _hint(nfa: NFA, atom: Atom, dataframe: DataFrame) -> str:
    written = getattr(atom.condition, "expression", None)
    said = slip(written) if isinstance(written, str) else None  # a Column is no text of the user's
    if said is not None:
        return said
    stages = column_owners(repr(atom.condition)) & set(nfa.stages) - set(dataframe.columns)
    if not stages:
        return f"the columns are {dataframe.columns}"
    stage = min(stages)
    return (
        f"{stage!r} is a stage: name one of its events, for example last({stage}.column) "
        f"or avg({stage}.column)"
    )


# The conditions of a pattern that Spark evaluates; their answers may be NULL.
Asked = Sequence[tuple[Atom, Column]]


def checked_conditions(nfa: NFA, dataframe: DataFrame) -> Asked:
    """Return the conditions that Spark evaluates."""
    # Refuse those that can never work on this DataFrame.
    for atom in nfa.atoms:
        condition = atom.condition
        if isinstance(condition, SubtypeCondition) and not issubclass(Row, condition.subtype):
            raise InputError(
                f"{where(nfa, atom)}: subtype({condition.subtype.__name__}) holds for no event "
                "on Spark, where events are Rows",
                "write a condition on a column that distinguishes the kinds of events",
            )
    asked = conditions_of(nfa, dataframe)
    types = analysed(nfa, asked, dataframe)
    for (atom, _), type_ in zip(asked, types, strict=True):
        if not isinstance(type_, BooleanType):
            raise InputError(
                f"{where(nfa, atom)}: the condition {repr(atom.condition)!r}: "
                f"expected boolean, got {type_.simpleString()}",
                "compare it with a value",
            )
    return asked


def bit_columns(asked: Asked) -> dict[str, Column]:
    """Return the columns with a bit for each expression that holds; empty without expressions."""
    # NULL counts as false, as in ``DataFrame.where``.
    names = bit_names([atom for atom, _ in asked])
    parts: list[list[Column]] = [[F.lit(0).cast("bigint")] for _ in names]
    for atom, condition in asked:
        for part, bit in zip(parts, words(atom.bit, len(names)), strict=True):
            if bit:
                holds = F.when(condition, F.lit(bit)).otherwise(F.lit(0))
                part.append(holds.cast("bigint"))
    return {name: joined(operator.add, part) for name, part in zip(names, parts, strict=True)}


def _asked(atom: Atom) -> str | Column:
    expression: str | Column = atom.condition.expression  # type: ignore[attr-defined]
    return guarded(expression, atom.guards) if isinstance(expression, str) else expression


def conditions_of(nfa: NFA, dataframe: DataFrame) -> Asked:
    """Return the conditions that Spark evaluates."""
    atoms = spark_atoms(nfa)
    given = [_asked(atom) for atom in atoms]
    return list(zip(atoms, sql_columns(given, dataframe), strict=True))


def said_by(asked: Asked, expressions: CompiledExpressions | None, nfa: NFA) -> SqlTexts | None:
    """Return all that a pattern asks of events as SQL; None if some is a Column."""
    texts = {atom.bit: _asked(atom) for atom, _ in asked}
    conditions = {bit: text for bit, text in texts.items() if isinstance(text, str)}
    if len(conditions) < len(texts):
        return None
    computed = guarded_parts(nfa.atoms)
    own = [field.sql for field in (expressions.fields if expressions else ())]
    fields = zip(field_names(expressions), own, strict=True)
    return SqlTexts(conditions, {name: computed.get(sql, sql) for name, sql in fields})


_CASTS = {
    Kind.BIGINT: "bigint",
    Kind.DOUBLE: "double",
    Kind.BOOLEAN: "bigint",
}


def compiled_expressions(nfa: NFA, dataframe: DataFrame) -> CompiledExpressions | None:
    """Compile the match expressions of a pattern for the types of its events."""
    expressions: list[tuple[Atom, MatchExpression]] = [
        (atom, atom.condition) for atom in nfa.atoms if isinstance(atom.condition, MatchExpression)
    ]
    if not expressions:
        return None
    parts = {sql: atom for atom, expression in expressions for sql in expression.event_parts()}
    columns = sql_columns(list(parts), dataframe)
    asked = list(zip(parts.values(), columns, strict=True))
    types = analysed(nfa, asked, dataframe)
    kinds = {
        sql: _kind(nfa, atom, sql, type_)
        for (sql, atom), type_ in zip(parts.items(), types, strict=True)
    }
    named = [(where(nfa, atom), expression) for atom, expression in expressions]
    return compiled(named, kinds, is_ansi(dataframe))


def _kind(nfa: NFA, atom: Atom, sql: str, type_: DataType) -> Kind:
    kind = kind_of(type_)
    if kind is not None:
        return kind
    what = f"{where(nfa, atom)}: the condition {repr(atom.condition)!r}"
    problem = f"is {type_.simpleString()}"
    hint = "use a number, boolean, string, date, timestamp or day-time interval"
    if isinstance(type_, StringType):
        problem += ", and strings are compared byte by byte here"
        hint = f"use lower({sql}), or cast({sql} as string)"
    raise InputError(
        f"{what}: {sql!r} {problem}",
        hint,
        problem=problem,
        part=sql,
        stage=atom.stage,
        condition=repr(atom.condition),
    )


def kind_of(type_: DataType) -> Kind | None:
    """Return the kind of a type in match expressions; None if they cannot use it."""
    return Kind.INTERVAL if isinstance(type_, DayTimeIntervalType) else common_kind(type_)


def field_columns(
    expressions: CompiledExpressions | None, dataframe: DataFrame, nfa: NFA
) -> dict[str, Column]:
    """Return the columns of the fields, by name."""
    fields = expressions.fields if expressions else ()
    computed = guarded_parts(nfa.atoms)
    return {
        name: machine_column(computed.get(field.sql, field.sql), field.kind, dataframe)
        for name, field in zip(field_names(expressions), fields, strict=True)
    }


def machine_column(sql: str, kind: Kind, dataframe: DataFrame) -> Column:
    """Return the column of an expression in the form that match expressions read."""
    column, cast = sql_column(sql, dataframe), _CASTS.get(kind)
    if kind.digits is not None:
        cast = kind.digits.sql if kind.type is Type.DECIMAL else "double"
    return column if cast is None else column.cast(cast)
