# SPDX-License-Identifier: Apache-2.0
"""Wildcards, Lucene's regular expressions and blocks of addresses, as tests that SQL has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, ip_network

from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.expressions.tree import Call, Literal, Operation, Tree

UPPER, LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_TO_LOWER = str.maketrans(UPPER, LOWER)
ANY_CHAR = r"[\s\S]"  # a point is not a line break


def folded(text: str) -> str:
    """Return a text with A to Z in lower case."""
    return text.translate(_TO_LOWER)


def without_case(tree: Tree) -> Tree:
    """Return a text with A to Z in lower case, as SQL."""
    if isinstance(tree, Literal):
        return Literal(folded(str(tree.value)))
    return Call("translate", (tree, Literal(UPPER), Literal(LOWER)))


def any_true(tests: Sequence[Tree]) -> Tree:
    """Return whether one of some tests holds."""
    return tests[0] if len(tests) == 1 else Operation("or", tuple(tests))


def fits_wildcards(text: Tree, patterns: Iterable[str], ignore_case: bool) -> Tree:
    """Return whether a text fits one of some patterns, in which * and ? are wildcards."""
    if ignore_case:
        text, patterns = without_case(text), map(folded, patterns)
    equal: list[str] = []
    regex: list[str] = []
    tests: list[Tree] = []
    for pattern in dict.fromkeys(patterns):
        inner = pattern.strip("*")
        if "*" not in pattern and "?" not in pattern:
            equal.append(pattern)
        elif "*" in inner or "?" in inner:
            regex.append(_wildcard_regex(pattern))
        elif not pattern.startswith("*") or not inner:
            tests.append(Operation("startswith", (text, Literal(inner))))
        else:
            name = "contains" if pattern.endswith("*") else "endswith"
            tests.append(Call(name, (text, Literal(inner))))
    if len(equal) == 1:
        tests.insert(0, Operation("=", (text, Literal(equal[0]))))
    elif equal:
        tests.insert(0, Operation("in", (text, *map(Literal, equal))))
    if regex:
        tests.append(whole_text(text, regex))
    return any_true(tests)


def _wildcard_regex(pattern: str) -> str:
    known = {"*": f"{ANY_CHAR}*", "?": ANY_CHAR}
    return "".join(known.get(char) or quoted_char(char) for char in pattern)


def whole_text(text: Tree, alternatives: Sequence[str], flags: str = "") -> Tree:
    """Return whether a text fits one of some regular expressions as a whole."""
    return Call("rlike", (text, Literal(rf"{flags}^(?:{'|'.join(alternatives)})\z")))


def quoted_char(char: str) -> str:
    """Return a regular expression for a character."""
    return "\\" + char if char in "\\.[]{}()*+-?^$|&" else char


# --- regular expressions


def fits_regex(text: Tree, patterns: Iterable[str], ignore_case: bool) -> Tree:
    """Return whether a text fits one of some regular expressions of Lucene as a whole."""
    return whole_text(text, [_Lucene(pattern).read() for pattern in patterns], "(?i)" * ignore_case)


_RESERVED = "~&<>@#"
_COUNTS = re.compile(r"\{([0-9]{1,9})(,([0-9]{0,9}))?\}")  # which Java and Python take


class _Lucene:
    """Reads a regular expression of Lucene, and writes one that Java and Python read alike."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read(self) -> str:
        """Return the expression."""
        found = self._union()
        if self.at < len(self.text):
            raise self._failure(f"expected the end, got {self.text[self.at]!r}")
        return found

    def _failure(self, what: str, hint: str = "") -> InvalidArgumentError:
        return InvalidArgumentError(
            f"the regular expression {self.text!r}, position {self.at + 1}: {what}",
            hint or r"write a character that is meant as such with \ before it",
        )

    def _union(self) -> str:
        parts = [self._concatenation()]
        while self.text.startswith("|", self.at):
            self.at += 1
            parts.append(self._concatenation())
        return "|".join(parts)

    def _concatenation(self) -> str:
        found = ""
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            found += self._repeated()
        return found

    def _repeated(self) -> str:
        found, is_repeated = self._atom(), False
        while self.at < len(self.text) and self.text[self.at] in "?*+{":
            sign, size = self.text[self.at], 1
            if sign == "{":
                counts = _COUNTS.match(self.text, self.at)
                if counts is None or (counts[3] and int(counts[3]) < int(counts[1])):
                    raise self._failure("expected a number of repetitions, such as {2,5}")
                sign, size = counts[0], len(counts[0])
            # Two signs together would mean something else to Java.
            found = f"(?:{found}){sign}" if is_repeated else found + sign
            self.at, is_repeated = self.at + size, True
        return found

    def _atom(self) -> str:
        char = self.text[self.at]
        if char in _RESERVED:
            raise NotSupportedError(
                f"the regular expression {self.text!r}: {char} is an operator of Lucene's that is "
                "not supported",
                f"write \\{char} for the character, and not (… regex …) for a complement",
            )
        if char in "?*+{":
            raise self._failure(f"nothing to repeat before {char!r}")
        self.at += 1
        if char == "(":
            if self.text.startswith(")", self.at):
                self.at += 1
                return "(?:)"
            inner = self._union()
            if not self.text.startswith(")", self.at):
                raise self._failure("expected )", "close the group")
            self.at += 1
            return f"(?:{inner})"
        if char == "[":
            return self._class()
        if char == '"':
            end = self.text.find('"', self.at)
            if end < 0:
                raise self._failure('expected "', 'close the text in ""')
            inner, self.at = self.text[self.at : end], end + 1
            return f"(?:{''.join(map(quoted_char, inner))})"
        if char == ".":
            return ANY_CHAR
        return self._escaped() if char == "\\" else quoted_char(char)

    def _escaped(self) -> str:
        char = self.text[self.at : self.at + 1]
        if not char:
            raise self._failure("nothing after \\")
        self.at += 1
        return "\\" + char if char in "dDwWsS" else quoted_char(char)

    def _class(self) -> str:
        found = "["
        if self.text.startswith("^", self.at):
            self.at, found = self.at + 1, "[^"
        begin, low, is_range = self.at, "", False  # the plain character before, if one is
        while not self.text.startswith("]", self.at) or self.at == begin:
            if self.at >= len(self.text):
                raise self._failure("expected ]", "close the class")
            char = self.text[self.at]
            self.at += 1
            if char == "-" and low and not is_range and not self.text.startswith("]", self.at):
                found, is_range = found + "-", True
                continue
            item = self._escaped() if char == "\\" else quoted_char(char)
            plain = "" if char == "\\" and item[-1] in "dDwWsS" else item[-1]
            if is_range and (not plain or plain < low):
                hint = "write the lower character first, as in [a-z]"
                raise self._failure("expected a range of characters", hint)
            found, low, is_range = found + item, "" if is_range else plain, False
        self.at += 1
        return found + "]"


# --- addresses

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"


def is_in_blocks(address: Tree, blocks: Iterable[str]) -> Tree:
    """Return whether an address is in one of some blocks; what is no address is in none."""
    old: list[str] = []
    new: list[str] = []
    for block in blocks:
        try:
            network = ip_network(block, strict=False)
        except ValueError as cause:
            raise InvalidArgumentError(
                f"cidrMatch: {block!r} is no block of addresses", 'write "10.0.0.0/8" or "fc00::/7"'
            ) from cause
        if isinstance(network, IPv4Network):
            old.append(_block4(network))
        else:
            digits, bits = network.network_address.packed.hex(), network.prefixlen
            new.append(_leading(digits, bits) + "[0-9a-f]*")
    tests = [whole_text(address, old)] if old else []
    if new:
        tests.append(whole_text(Call("ipv6 digits", (address,)), new))
    return any_true(tests)


def _block4(network: IPv4Network) -> str:
    octets = []
    for place, octet in enumerate(network.network_address.packed):
        free = 8 - min(max(network.prefixlen - 8 * place, 0), 8)
        every = [str(octet + more) for more in range(1 << free)]
        octets.append(_OCTET if free == 8 else every[0] if not free else f"(?:{'|'.join(every)})")
    return "\\.".join(octets)


def _leading(digits: str, bits: int) -> str:
    """Return the digits of a prefix that is some bits long."""
    whole, rest = divmod(bits, 4)
    if not rest:
        return digits[:whole] if whole else "[0-9a-f]"
    first = int(digits[whole], 16)
    return digits[:whole] + f"[{''.join(f'{first + more:x}' for more in range(1 << 4 - rest))}]"
