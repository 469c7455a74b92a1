# SPDX-License-Identifier: Apache-2.0
"""Which numbers the parts of a tree are, as far as that is known without a schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from pyflinkcep.expressions.casts import cast_type
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.rules import COMMON
from pyflinkcep.expressions.tree import Aggregate, Call, Leaf, Literal, Operation, Tree

__all__ = ["KindOf", "alternatives", "common_kind", "kind_of"]

KindOf = Callable[[Leaf], Kind | None]
"""Returns the kind of a column; None if it is unknown, or always NULL."""

_FROM_OPERANDS = ("+", "-", "*", "%", "pmod", "neg", "abs", "round")
_DOUBLES = ("sqrt", "power", "exp", "ln", "log10", "log2", "sign", "signum")


def kind_of(tree: Tree, leaf: KindOf) -> Kind | None:
    """Return the kind of a number; None if it is unknown, or no number."""
    if isinstance(tree, Literal):
        return _of_literal(tree.value)
    if isinstance(tree, Aggregate):
        return _of_aggregate(tree, leaf(tree))
    if isinstance(tree, Leaf):
        return leaf(tree)
    if isinstance(tree, Call) and tree.function == "cast":
        type_ = cast_type(tree.detail)
        return None if type_ is None else type_.kind
    name = tree.function if isinstance(tree, Call) else tree.operator
    if name in _DOUBLES:
        return Kind.DOUBLE
    if name in _FROM_OPERANDS:
        return common_kind(tree.operands, leaf)
    if name == "/":
        kind = common_kind(tree.operands, leaf)
        return Kind.DOUBLE if kind is Kind.BIGINT else kind
    return common_kind(alternatives(tree), leaf)


def common_kind(parts: Sequence[Tree], leaf: KindOf) -> Kind | None:
    """Return the kind that numbers have beside each other; DOUBLE if one certainly is."""
    kinds = [kind_of(part, leaf) for part in parts if not _is_null(part)]
    if Kind.DOUBLE in kinds:
        return Kind.DOUBLE
    known = {kind for kind in kinds if kind is not None}
    if Kind.DECIMAL not in known and None in kinds:
        return None
    return next(iter(known)) if len(known) == 1 else COMMON.get(frozenset(known))


def alternatives(tree: Tree) -> tuple[Tree, ...]:
    """Return the parts of which one is the value of a choice; none if it is something else."""
    if isinstance(tree, Call):
        return tree.operands[1:] if tree.function == "nvl2" else ()
    if not isinstance(tree, Operation):
        return ()
    if tree.operator in ("coalesce", "greatest", "least"):
        return tree.operands
    if tree.operator != "case":
        return ()
    pairs = len(tree.operands) // 2
    return (*tree.operands[1 : 2 * pairs : 2], *tree.operands[2 * pairs :])


def _is_null(tree: Tree) -> bool:
    return isinstance(tree, Literal) and tree.value is None


def _of_literal(value: object) -> Kind | None:
    kinds = ((bool, None), (int, Kind.BIGINT), (float, Kind.DOUBLE), (Decimal, Kind.DECIMAL))
    return next((kind for type_, kind in kinds if isinstance(value, type_)), None)


def _of_aggregate(part: Aggregate, kind: Kind | None) -> Kind | None:
    if part.function == "count":
        return Kind.BIGINT
    return Kind.DOUBLE if part.function in ("avg", "stddev") else kind
