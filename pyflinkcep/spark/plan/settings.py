# SPDX-License-Identifier: Apache-2.0
"""What users set for a job, and the checks of what they pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from inspect import Parameter, Signature
from typing import Any, TypeVar

import attrs
from pyspark.sql import Row
from pyspark.sql.types import StructType

from pyflinkcep.engines.choice import AUTO
from pyflinkcep.engines.flink.operator import Comparator, PartialMatchLimit, comparator_key
from pyflinkcep.errors import (
    CepError,
    InvalidArgumentError,
    NotSupportedError,
    check_choice,
    did_you_mean,
)
from pyflinkcep.functions import (
    Collector,
    OutputTag,
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    ProcessContext,
)
from pyflinkcep.sase.model import Query
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.time import duration_ms

# The keywords that do not apply: what the user passed, and the default.
Keywords = Mapping[str, tuple[Any, Any]]


def check_for_query(query: Query, type: object, others: Keywords) -> None:
    """Refuse a query with the keywords of patterns, or with a type that names no column."""
    if query.source is not None:
        raise InvalidArgumentError(
            f"FROM {query.source} with a DataFrame",
            "leave FROM out, or use CEP.sase(spark, text)",
        )
    if not isinstance(type, str):
        raise InvalidArgumentError(
            f"type: expected the name of a column, got {type!r}",
            "write type='kind', the column with an event's type",
        )
    _refuse(
        "a query",
        others,
        "events of equal time keep the order of the source, and the state of a query is events, "
        "none of which may be dropped",
    )


def check_for_pattern(others: Keywords) -> None:
    """Refuse a pattern with the keywords of queries."""
    _refuse(
        "a pattern",
        others,
        "these are for queries: write where(\"kind = 'trade'\") for a type, and choose among "
        "matches by AfterMatchSkipStrategy in Pattern.begin(...)",
    )


def check_comparator(comparator: Comparator | None, order: object) -> None:
    """Refuse what is not a comparator, and one beside `orderBy`."""
    comparator_key(comparator)
    if order is not None and comparator is not None:
        raise InvalidArgumentError(
            "both a comparator and orderBy", "pass one of them: orderBy is the faster"
        )


def check_bounded(pattern: str, limit: PartialMatchLimit | None, processing_time: bool) -> None:
    """Refuse on a bounded DataFrame what only a stream can do."""
    if limit is not None and limit.policy != "fail":
        raise NotSupportedError(
            f"pattern {pattern}: onTooManyPartialMatches={limit.policy!r} is not "
            "available on a bounded DataFrame, which cannot count what is dropped",
            'write onTooManyPartialMatches="fail", or set a window on the pattern',
        )
    if processing_time:
        raise NotSupportedError(
            f"pattern {pattern}: processing time is not available on a bounded DataFrame",
            "write inEventTime('column'): bounded input has no clock",
        )


def check_session(spark: object) -> None:
    """Refuse what is not a SparkSession, classic or Connect."""
    if not hasattr(spark, "table"):
        raise InvalidArgumentError(
            f"expected a SparkSession, got {spark!r}", "write CEP.sql(spark, 'SELECT ...')"
        )


def check_text(text: object) -> None:
    """Refuse a statement or clause that is not text."""
    if not isinstance(text, str):
        raise InvalidArgumentError(
            f"expected the text of a statement or clause, got {text!r}",
            "write it as a string",
        )


def _refuse(what: str, keywords: Keywords, hint: str) -> None:
    named = [name for name, (given, default) in keywords.items() if given != default]
    if named:
        raise NotSupportedError(f"{what} does not support {' and '.join(named)}", hint)


# How to make a DataFrame from other objects, by the prefix of their class's module.
_FROM_OTHERS = {
    "pandas": "spark.createDataFrame(df)",
    "polars": "spark.createDataFrame(df.to_arrow())",
    "pyarrow": "spark.createDataFrame(table)",
    "pyspark.pandas": "df.to_spark()",
    "pyspark.sql.group": "keyBy(df, 'user') in place of df.groupBy('user')",
    "pyspark.sql.classic.group": "keyBy(df, 'user') in place of df.groupBy('user')",
    "pyspark.sql.connect.group": "keyBy(df, 'user') in place of df.groupBy('user')",
    "builtins": "spark.createDataFrame(rows, 'user string, ts timestamp'); without Spark, "
    "pyflinkcep.testing.match(pattern, events)",
}


def not_a_dataframe(value: object) -> CepError:
    """Make the error for something else, with a hint how to convert it."""
    kind = type(value)
    begins = [name for name in _FROM_OTHERS if f"{kind.__module__}.".startswith(f"{name}.")]
    way = _FROM_OTHERS[max(begins, key=len)] if begins else "spark.createDataFrame(...)"
    return InvalidArgumentError(
        f"expected a Spark DataFrame, got {kind.__module__}.{kind.__qualname__}".replace(
            "builtins.", ""
        ),
        f"write {way}",
    )


Schema = str | StructType  # The schema of rows, as for PySpark's ``applyInPandas``
# A match as functions get it: stages in pattern order, events in arrival order.
RowMatch = dict[str, list[Row]]
Select = PatternSelectFunction | Callable[[RowMatch], object]
Timeout = PatternTimeoutFunction | Callable[[RowMatch, int], object]
FlatSelect = PatternFlatSelectFunction | Callable[[RowMatch, Collector], object]
FlatTimeout = PatternFlatTimeoutFunction | Callable[[RowMatch, int, Collector], object]
Process = PatternProcessFunction | Callable[[RowMatch, ProcessContext, Collector], object]
_TAG = Parameter("outputTag", Parameter.KEYWORD_ONLY, default=None, annotation="OutputTag | None")
_TIMEOUT = Parameter("timeoutFunction", Parameter.KEYWORD_ONLY, default=None)
_BOTH = (
    Parameter("function", Parameter.POSITIONAL_OR_KEYWORD),
    Parameter("schema", Parameter.POSITIONAL_OR_KEYWORD, annotation="str | StructType"),
)
_SHORT = Signature([*_BOTH, _TAG, _TIMEOUT], return_annotation="CepDataFrame")
_SIDE = (Parameter(one.name, Parameter.POSITIONAL_OR_KEYWORD) for one in (_TAG, _TIMEOUT))
_LONG = Signature([*_SIDE, *_BOTH])
MethodT = TypeVar("MethodT", bound=Callable[..., Any])


def with_signature(method: MethodT) -> MethodT:
    """Let a method of two call forms show the arguments that it takes in notebooks and ``help``."""
    own = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *_SHORT.parameters.values()]
    vars(method)["__signature__"] = _SHORT.replace(parameters=parameters)
    return method


@attrs.frozen
class SelectCall:
    """The arguments of ``select`` or ``flatSelect``."""

    tag: OutputTag | None  # The side output for timeouts
    timeout: Any  # Makes its rows
    function: Any  # Makes the rows of the main output
    schema: Any  # Their schema

    @classmethod
    def of(
        cls, method: str, arguments: Sequence[object], keywords: Mapping[str, object]
    ) -> SelectCall:
        """Parse the two call forms of a method."""
        for name in keywords:
            if name not in _LONG.parameters:
                known = ", ".join(_LONG.parameters)
                hint = did_you_mean(name, [*_LONG.parameters], f"the arguments are {known}")
                raise InvalidArgumentError(f"{method}() has no argument {name!r}", hint)
        is_long = len(arguments) > 2 or isinstance(next(iter(arguments), None), OutputTag)
        try:
            given = (_LONG if is_long else _SHORT).bind(*arguments, **keywords).arguments
        except TypeError:
            raise _refusal(method, arguments) from None
        tag, timeout = given.get("outputTag"), given.get("timeoutFunction")
        has_side = isinstance(tag, OutputTag) and "timeoutFunction" in given
        is_alone = given.keys().isdisjoint(("outputTag", "timeoutFunction"))
        if not (has_side or is_alone) or _is_function(given["schema"]):
            raise _refusal(method, arguments)
        return cls(tag, timeout, given["function"], given["schema"])


def _is_function(value: object) -> bool:
    kinds = (PatternSelectFunction, PatternFlatSelectFunction)
    return isinstance(value, kinds) or (callable(value) and not isinstance(value, type))


def _refusal(method: str, arguments: Sequence[object]) -> InvalidArgumentError:
    if len(arguments) in (2, 3) and all(map(_is_function, arguments[:2])):
        return InvalidArgumentError(
            f"{method}(timeoutFunction, function) is Flink's old form; its results, an Either of "
            "timeout and match, have no schema",
            f"write {method}(OutputTag('timeouts', 'user string'), timeoutFunction, function, "
            "schema): the rows of timeouts go to a side output, getSideOutput(tag)",
        )
    return InvalidArgumentError(
        f"{method} takes (function, schema) or (outputTag, timeoutFunction, function, schema)",
        "pass the schema last, as a DDL string or a StructType",
    )


@attrs.frozen
class JobSettings:
    """The user's settings for a job; see :meth:`pyflinkcep.CEP.pattern`."""

    key_groups: int = 128  # The number of key groups
    on_pattern_change: str = "fail"  # The policy for a checkpoint of another pattern
    # Whether a key may be null, as that of a query may, where null equals nothing.
    allows_null_keys: bool = False
    # How far an event may be ahead of the others; None for any distance.
    max_ahead: timedelta | str | None = None
    # The name of the job in Spark's UI and progress; None for that of the pattern.
    name: str | None = None
    on_null_key: str = "fail"  # What becomes of events without key or time
    # The most tasks that can work at one time; None for an eighth of the key groups.
    parallel_tasks: int | None = None
    partitioned: bool = False  # Whether bounded events are already in one partition for each key
    limit: PartialMatchLimit | None = None  # How many partial matches a key may have
    evaluation: str = AUTO  # How matches are to be found
    output: str = "all"  # Which matches of a query are requested
    groups: KeyGroups = attrs.field(init=False, repr=False)  # The partition of the keys
    # How far an event may be ahead of the others, in milliseconds.
    max_ahead_ms: int | None = attrs.field(init=False, repr=False)
    # Whether events without key or time are dropped.
    drops_nulls: bool = attrs.field(init=False, repr=False)

    @groups.default
    def _groups(self) -> KeyGroups:
        return KeyGroups(self.key_groups, self.parallel_tasks)

    @max_ahead_ms.default
    def _max_ahead_ms(self) -> int | None:
        return None if self.max_ahead is None else duration_ms(self.max_ahead, "maxAhead")

    @drops_nulls.default
    def _drops_nulls(self) -> bool:
        return self.on_null_key == "drop"

    def __attrs_post_init__(self) -> None:
        check_choice("onPatternChange", self.on_pattern_change, ("fail", "restart"))
        check_choice("onNullKey", self.on_null_key, ("fail", "drop"))
        if self.name is not None and not (isinstance(self.name, str) and self.name.strip()):
            raise InvalidArgumentError(
                f"name: expected a text, got {self.name!r}", 'write name="failed logins"'
            )

    def about(self, source: EventSource) -> EventSource:
        """Return the events of a job as these settings say."""
        is_stream = source.dataframe.isStreaming
        if self.drops_nulls and not is_stream:  # the operator of a stream counts them
            is_null = source.is_null(self.allows_null_keys)
            source = attrs.evolve(source, dataframe=source.dataframe.where(~is_null))
        is_guarded = self.max_ahead is not None and is_stream
        return attrs.evolve(source, is_guarded=is_guarded, name=self.name)

    def numbered(self, number: int) -> JobSettings:
        """Return the settings of one of several patterns; the first has the name itself."""
        if self.name is None or number == 1:
            return self
        return attrs.evolve(self, name=f"{self.name} ({number})")
