# SPDX-License-Identifier: Apache-2.0
"""The call forms of ``select`` and ``flatSelect``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, TypeVar

import attrs
from pyspark.sql import Row
from pyspark.sql.types import StructType

from pyflinkcep.errors import InvalidArgumentError, did_you_mean
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

__all__ = [
    "FlatSelect",
    "FlatTimeout",
    "Process",
    "RowMatch",
    "Schema",
    "Select",
    "SelectCall",
    "Timeout",
    "with_signature",
]

Schema = str | StructType
"""The schema of rows, as for PySpark's ``applyInPandas``."""

RowMatch = dict[str, list[Row]]
"""A match as functions get it: stages in pattern order, events in arrival order."""

Select = PatternSelectFunction | Callable[[RowMatch], object]
Timeout = PatternTimeoutFunction | Callable[[RowMatch, int], object]
FlatSelect = PatternFlatSelectFunction | Callable[[RowMatch, Collector], object]
FlatTimeout = PatternFlatTimeoutFunction | Callable[[RowMatch, int, Collector], object]
Process = PatternProcessFunction | Callable[[RowMatch, ProcessContext, Collector], object]

_LONG = ("outputTag", "timeoutFunction", "function", "schema")
_SHORT = _LONG[2:]


_SIGNATURE = Signature(
    [
        Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),
        Parameter("function", Parameter.POSITIONAL_OR_KEYWORD),
        Parameter("schema", Parameter.POSITIONAL_OR_KEYWORD, annotation="str | StructType"),
        Parameter("outputTag", Parameter.KEYWORD_ONLY, default=None, annotation="OutputTag | None"),
        Parameter("timeoutFunction", Parameter.KEYWORD_ONLY, default=None),
    ],
    return_annotation="CepDataFrame",
)
"""What notebooks and ``help`` show of ``select`` and ``flatSelect``."""

MethodT = TypeVar("MethodT", bound=Callable[..., Any])


def with_signature(method: MethodT) -> MethodT:
    """Let a method of two call forms show the arguments that it takes."""
    vars(method)["__signature__"] = _SIGNATURE
    return method


@attrs.frozen
class SelectCall:
    """
    The arguments of ``select`` or ``flatSelect``.

    Attributes
    ----------
    tag : OutputTag or None
        The side output for timeouts.
    timeout : PatternTimeoutFunction or callable or None
        Makes its rows.
    function : PatternSelectFunction or callable
        Makes the rows of the main output.
    schema : str or StructType
        Their schema.
    """

    tag: OutputTag | None
    timeout: Any
    function: Any
    schema: Any

    @classmethod
    def of(
        cls, method: str, arguments: Sequence[object], keywords: Mapping[str, object]
    ) -> SelectCall:
        """
        Parse the two call forms of a method.

        Raises
        ------
        InvalidArgumentError
            If the arguments are neither ``(function, schema)`` nor
            ``(outputTag, timeoutFunction, function, schema)``.
        """
        for name in keywords:
            if name not in _LONG:
                hint = did_you_mean(name, _LONG, f"the arguments are {', '.join(_LONG)}")
                raise InvalidArgumentError(f"{method}() has no argument {name!r}", hint)
        begins_with_tag = len(arguments) > 2 or isinstance(next(iter(arguments), None), OutputTag)
        is_long = begins_with_tag or bool(set(_LONG[:2]) & set(keywords))
        names = _LONG if begins_with_tag else (*_SHORT, *(_LONG[:2] if is_long else ()))
        given: dict[str, Any] = dict(zip(names, arguments, strict=False))
        repeated = set(keywords) & set(given)
        given.update(keywords)
        fits = len(arguments) <= len(names) and not repeated and set(given) == set(names)
        tag = given.get("outputTag")
        has_tag = not is_long or isinstance(tag, OutputTag)
        if not fits or not has_tag or _is_function(given["schema"]):
            raise _refusal(method, arguments)
        return cls(tag, given.get("timeoutFunction"), given["function"], given["schema"])


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
