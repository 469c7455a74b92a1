# SPDX-License-Identifier: Apache-2.0
"""Conditions that an event must satisfy to be taken by a stage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from pyflinkcep.errors import MissingConditionError, NotSupportedError
from pyflinkcep.functions import RichFunction, RichFunctions, function_name


class ConditionContext(Protocol):
    """
    What an iterative condition can read about the partial match it is evaluated for.

    Notes
    -----
    Ports ``IterativeCondition.Context`` and ``TimeContext`` (Flink 2.3.0).
    """

    def getEventsForPattern(self, name: str) -> Iterable[Any]:
        """
        Return the events that this partial match has accepted for a stage, oldest first.

        The event under test is not included. An unknown stage has none.

        Notes
        -----
        Cost: the first call for a partial match walks its path through the shared buffer.
        """

    def timestamp(self) -> int:
        """Return the time of the event under test, epoch milliseconds."""

    def currentProcessingTime(self) -> int:
        """Return the wall clock, epoch milliseconds."""


class IterativeCondition(ABC):
    """
    A condition that may read the events that the partial match has accepted so far.

    It must be pure: it may be evaluated any number of times.

    Notes
    -----
    Ports ``org.apache.flink.cep.pattern.conditions.IterativeCondition`` (Flink 2.3.0).

    Examples
    --------
    >>> class Rising(IterativeCondition):
    ...     def filter(self, value, ctx):
    ...         return all(value > earlier for earlier in ctx.getEventsForPattern("up"))
    """

    @abstractmethod
    def filter(self, value: Any, ctx: ConditionContext) -> bool:
        """
        Whether the event satisfies the condition.

        Parameters
        ----------
        value : object
            The event; a ``pyspark.sql.Row`` on Spark.
        ctx : ConditionContext
            The partial match and the time.

        Returns
        -------
        bool
            A real bool; anything else is an error at run time.
        """

    def __repr__(self) -> str:
        return function_name(self)


class SimpleCondition(IterativeCondition):
    """
    A condition on one event alone; evaluated at most once per event.

    Subclass it and override ``filter(self, value)``, or wrap a function with :meth:`of`.

    Notes
    -----
    Ports ``org.apache.flink.cep.pattern.conditions.SimpleCondition`` (Flink 2.3.0).

    Examples
    --------
    >>> SimpleCondition.of(lambda e: e > 3).filter(5)
    True
    """

    @abstractmethod
    def filter(self, value: Any, ctx: ConditionContext | None = None) -> bool:
        """Whether the event satisfies the condition; see the class."""

    @staticmethod
    def of(function: Callable[[Any], bool]) -> SimpleCondition:
        """Make a condition from a function of one event."""
        return FunctionCondition(function)


class FunctionCondition(SimpleCondition):
    """A plain function of the event."""

    def __init__(self, function: Callable[[Any], bool]) -> None:
        self.function = function

    def filter(self, value: Any, ctx: ConditionContext | None = None) -> bool:
        """Return the function's answer."""
        return self.function(value)

    def __repr__(self) -> str:
        return function_name(self.function)


class ContextFunctionCondition(IterativeCondition):
    """A plain function of the event and the partial match."""

    def __init__(self, function: Callable[[Any, ConditionContext], bool]) -> None:
        self.function = function

    def filter(self, value: Any, ctx: ConditionContext) -> bool:
        """Return the function's answer."""
        return self.function(value, ctx)

    def __repr__(self) -> str:
        return function_name(self.function)


FUNCTION_CONDITIONS = (FunctionCondition, ContextFunctionCondition)
"""The conditions that are just a plain function, and so equal wherever it is used."""


class RichIterativeCondition(RichFunction, IterativeCondition):
    """
    An iterative condition with a life cycle: ``open``, ``close`` and a runtime context.

    Notes
    -----
    Ports ``RichIterativeCondition`` (Flink 2.3.0). As in Flink, ``open`` is called once for every
    transition of the compiled pattern with the condition.

    Examples
    --------
    >>> class Known(RichIterativeCondition):
    ...     def open(self, context=None):
    ...         self.users = {"ann"}  # read from a file, once for each task
    ...
    ...     def filter(self, value, ctx):
    ...         return value.user in self.users
    """


class RichCompositeIterativeCondition(RichFunctions, RichIterativeCondition):
    """
    A condition composed of others, whose life cycle it forwards.

    Parameters
    ----------
    *nestedConditions : IterativeCondition
        The parts, none of them None.
    """

    def __init__(self, *nestedConditions: IterativeCondition) -> None:
        for condition in nestedConditions:
            if condition is None:
                raise MissingConditionError("The condition cannot be null.", "pass every part")
        self.nestedConditions = nestedConditions

    def getNestedConditions(self) -> tuple[IterativeCondition, ...]:
        """Return the parts, in order."""
        return self.nestedConditions

    def _parts(self) -> Sequence[object]:
        return self.nestedConditions


class RichAndCondition(RichCompositeIterativeCondition):
    """Both parts hold; the right one is not evaluated if the left one fails."""

    def __init__(self, left: IterativeCondition, right: IterativeCondition) -> None:
        super().__init__(left, right)

    def filter(self, value: Any, ctx: ConditionContext) -> bool:
        """Whether both parts hold."""
        left, right = self.nestedConditions
        return left.filter(value, ctx) and right.filter(value, ctx)

    def __repr__(self) -> str:
        return "({!r} and {!r})".format(*self.nestedConditions)


class RichOrCondition(RichCompositeIterativeCondition):
    """One part holds; the right one is not evaluated if the left one holds."""

    def __init__(self, left: IterativeCondition, right: IterativeCondition) -> None:
        super().__init__(left, right)

    def filter(self, value: Any, ctx: ConditionContext) -> bool:
        """Whether one of the parts holds."""
        left, right = self.nestedConditions
        return left.filter(value, ctx) or right.filter(value, ctx)

    def __repr__(self) -> str:
        return "({!r} or {!r})".format(*self.nestedConditions)


class RichNotCondition(RichCompositeIterativeCondition):
    """The part does not hold."""

    def __init__(self, original: IterativeCondition) -> None:
        super().__init__(original)

    def filter(self, value: Any, ctx: ConditionContext) -> bool:
        """Whether the part does not hold."""
        return not self.nestedConditions[0].filter(value, ctx)

    def __repr__(self) -> str:
        return f"not {self.nestedConditions[0]!r}"


def single_conditions(condition: IterativeCondition) -> Iterator[IterativeCondition]:
    """Yield the conditions inside one that joins or negates others, without constants."""
    if isinstance(condition, RichAndCondition | RichOrCondition | RichNotCondition):
        for part in condition.nestedConditions:
            yield from single_conditions(part)
    elif not isinstance(condition, BooleanConditions):
        yield condition


class SubtypeCondition(SimpleCondition):
    """The event is an instance of a class."""

    def __init__(self, subtype: type) -> None:
        self.subtype = subtype

    def filter(self, value: Any, ctx: ConditionContext | None = None) -> bool:
        """Whether the event is an instance of the class."""
        return isinstance(value, self.subtype)

    def __repr__(self) -> str:
        return f"is {self.subtype.__name__}"


class BooleanConditions(SimpleCondition):
    """A condition that always, or never, holds."""

    def __init__(self, value: bool) -> None:
        self.value = value

    @staticmethod
    def trueFunction() -> BooleanConditions:
        """Return the condition that always holds."""
        return BooleanConditions(True)

    @staticmethod
    def falseFunction() -> BooleanConditions:
        """Return the condition that never holds."""
        return BooleanConditions(False)

    def filter(self, value: Any, ctx: ConditionContext | None = None) -> bool:
        """Return the constant."""
        return self.value

    def __repr__(self) -> str:
        return str(self.value).lower()


class ExpressionCondition(SimpleCondition):
    """
    A Spark expression over the event's columns: a SQL string or a ``Column``.

    Spark evaluates it before Python sees the event; as in ``DataFrame.where``, a result of
    NULL counts as false.

    Attributes
    ----------
    expression : str or pyspark.sql.Column
        The expression as the user wrote it.
    """

    def __init__(self, expression: Any) -> None:
        self.expression = expression
        self.text = expression if isinstance(expression, str) else str(expression)

    def filter(self, value: Any, ctx: ConditionContext | None = None) -> bool:
        """Raise: only Spark can evaluate the expression."""
        raise NotSupportedError(
            f"the condition {self.text!r} can only be evaluated by Spark",
            "run the pattern on a DataFrame with CEP.pattern(...), "
            "or write the condition as a function of the event",
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text}  # a Column keeps a reference to the driver's JVM

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.text = self.expression = state["text"]

    def __repr__(self) -> str:
        return self.text


class Evaluated(SimpleCondition):
    """A SQL condition or Column as a function of an event."""

    def __init__(self, text: str, function: Callable[[Any], bool]) -> None:
        self.text = text
        self.function = function

    def filter(self, value: Any, ctx: ConditionContext | None = None) -> bool:
        """Whether the event satisfies the condition."""
        return self.function(value)

    def __repr__(self) -> str:
        return self.text


def sql_of(condition: IterativeCondition) -> str | None:
    """Return the SQL of a condition about one event; None if it is a function."""
    return condition.text if isinstance(condition, Evaluated) else None
