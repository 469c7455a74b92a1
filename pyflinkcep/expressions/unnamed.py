# SPDX-License-Identifier: Apache-2.0
"""Functions that Spark SQL has no name for: in Python, and what they are in its SQL."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import AddressValueError, IPv6Address
from typing import Any

import attrs

from pyflinkcep.expressions.numbers import double_text


@attrs.frozen(eq=False)
class Unnamed:
    """A function of values that are not NULL."""

    compute: Callable[..., Any]
    type: str  # Of its values
    sql: Callable[..., str]  # Its SQL, of that of its arguments


def _ipv6_digits(address: str) -> str:
    """Return the 32 hexadecimal digits of an address; nothing for what is none."""
    try:
        return "" if "%" in address else IPv6Address(address).packed.hex()
    except AddressValueError:
        return ""


_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_GROUP = "[0-9a-fA-F]{1,4}"
_OLD = rf"(?:{_OCTET}[.]){{3}}{_OCTET}"


def _ipv6_forms() -> str:
    """Return a regular expression for an address: eight groups, the last two maybe as IPv4."""
    forms = [f"(?:{_GROUP}:){{7}}{_GROUP}", f"(?:{_GROUP}:){{6}}{_OLD}"]
    for before in range(8):
        left = f"{_GROUP}(?::{_GROUP}){{{before - 1}}}" if before else ""
        forms.append(
            f"{left}::(?:{_GROUP}(?::{_GROUP}){{0,{6 - before}}})?" if before < 7 else f"{left}::"
        )
        if before < 6:
            forms.append(f"{left}::(?:{_GROUP}:){{0,{5 - before}}}{_OLD}")
    return "|".join(forms)


def _ipv6_digits_sql(address: str) -> str:
    # Names for what is used several times are variables of transform: first the address with an
    # IPv4 part at its end as two groups, then what stands before and after ::, then the groups.
    old = r"^(.*:)([0-9]+)[.]([0-9]+)[.]([0-9]+)[.]([0-9]+)$"
    before, *octets = (f"regexp_extract(a, '{old}', {n})" for n in range(1, 6))
    high, low = (f"hex(cast({octets[n]} AS int) * 256 + {octets[n + 1]})" for n in (0, 2))
    new = f"CASE WHEN a RLIKE '{old}' THEN concat({before}, {high}, ':', {low}) ELSE a END"
    sides = "transform(split(b, '::'), s -> filter(split(s, ':'), g -> g <> ''))"
    zeros = "array_repeat('0', 8 - size(p[0]) - size(p[1]))"
    groups = f"CASE WHEN size(p) = 1 THEN p[0] ELSE concat(p[0], {zeros}, p[1]) END"
    digits = f"array_join(transform({groups}, g -> lpad(lower(g), 4, '0')), '')"
    parts = f"transform(transform(array({address}), a -> {new}), b -> {sides})"
    found = f"transform({parts}, p -> {digits})[0]"
    is_address = f"{address} RLIKE '^(?:{_ipv6_forms()})$'"
    return f"CASE WHEN {is_address} THEN {found} WHEN {address} IS NOT NULL THEN '' END"


UNNAMED = {
    "ipv6 digits": Unnamed(_ipv6_digits, "string", _ipv6_digits_sql),
    "text of fraction": Unnamed(double_text, "string", lambda x: f"cast({x} AS string)"),
    "value of digits": Unnamed(
        lambda digits, base: float(int(digits, base)),
        "double",
        lambda digits, base: f"cast(conv({digits}, {base}, 10) AS double)",
    ),
}
"""By the name of their calls."""
