# SPDX-License-Identifier: Apache-2.0
"""Random conditions in Java, random events, and what ``javac`` and ``java`` say of them."""

from __future__ import annotations

import math
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

FIELDS = {
    "i": "int", "j": "int", "l": "long", "m": "long", "d": "double", "x": "double", "f": "float",
    "b": "boolean", "s": "String", "t": "String", "bi": "Integer", "bl": "Long", "bd": "Double",
    "bb": "Boolean", "c": "char", "k": "Kind", "sh": "short",
}  # fmt: skip
KINDS = ("RED", "GREEN", "BLUE")
_INTS = (0, 1, -1, 2, 3, 7, -8, 100, 127, 128, 1000, (1 << 31) - 1, -(1 << 31))
_LONGS = (*_INTS, 60_000, 1_700_000_000_000, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63))
_DOUBLES = (
    0.0, -0.0, 1.0, -1.5, 0.1, 0.2, 0.3, 42.0, 99.5, 1e10, 1e300, -1e300, 5e-324, math.nan,
    math.inf, -math.inf, 16777217.0,
)  # fmt: skip
_TEXTS = ("", "a", "A", "ab", "fail", "FAIL", "Fail", "12", "-7", "x y", " a ", "ß", "ẞ", "ſ",
          "K", "İ", "ı", "😀", "\ue000", "a\nb", "it's", "3.5")  # fmt: skip


def float32(value: float) -> float:
    """Return the nearest float."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def java_literal(value: Any, type_: str) -> str:
    """Return a value as Java writes it."""
    if value is None:
        return "null"
    if type_ == "boolean" or type_ == "Boolean":
        return str(value).lower()
    if type_ in ("int", "Integer", "short"):
        return (
            f"({type_ if type_ == 'short' else 'int'}) {value}"
            if value < 0
            else (f"(short) {value}" if type_ == "short" else str(value))
        )
    if type_ in ("long", "Long"):
        return f"{value}L"
    if type_ in ("double", "Double", "float"):
        kind = "float" if type_ == "float" else "double"
        box = "Float" if kind == "float" else "Double"
        if math.isnan(value):
            return f"{box}.NaN"
        if math.isinf(value):
            return f"{box}.{'POSITIVE' if value > 0 else 'NEGATIVE'}_INFINITY"
        return f"({kind}) {value!r}"
    if type_ == "Kind":
        return f"Kind.{value}"
    units = value.encode("utf-16-be", "surrogatepass")
    escaped = "".join(
        chr(unit) if 32 <= unit < 127 and chr(unit) not in "\"'\\" else f"\\u{unit:04x}"
        if unit not in (10, 13, 34, 39, 92) else {10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'",
        92: "\\\\"}[unit]
        for unit in (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    )  # fmt: skip
    return f"'{escaped}'" if type_ == "char" else f'"{escaped}"'


def events(random_: random.Random, count: int) -> list[dict[str, Any]]:
    """Return random events, with nulls in what may be null."""
    pools: dict[str, tuple[Any, ...]] = {
        "int": _INTS, "long": _LONGS, "double": _DOUBLES, "float": tuple(map(float32, _DOUBLES)),
        "boolean": (True, False), "String": _TEXTS, "Integer": _INTS, "Long": _LONGS,
        "Double": _DOUBLES, "Boolean": (True, False), "char": ("a", "Z", "0", " ", "ß"),
        "Kind": KINDS, "short": (0, 1, -1, 32767, -32768),
    }  # fmt: skip
    nullable = ("String", "Integer", "Long", "Double", "Boolean", "Kind")

    def one(type_: str) -> Any:
        if type_ in nullable and random_.random() < 0.12:
            return None
        return random_.choice(pools[type_])

    return [{name: one(type_) for name, type_ in FIELDS.items()} for _ in range(count)]


def event_class() -> str:
    """Return the class of events in Java."""
    fields = "".join(f"  private {type_} {name};\n" for name, type_ in FIELDS.items())
    getters = "".join(
        f"  public {type_} {'is' if type_ == 'boolean' else 'get'}{name[0].upper()}{name[1:]}() "
        f"{{ return {name}; }}\n"
        for name, type_ in FIELDS.items()
    )
    names = ", ".join(f"{type_} {name}" for name, type_ in FIELDS.items())
    sets = " ".join(f"this.{name} = {name};" for name in FIELDS)
    return (
        "enum Kind { RED, GREEN, BLUE }\n"
        f"class Event {{\n{fields}  Event({names}) {{ {sets} }}\n{getters}"
        "  public boolean isBig() { return d > LIMIT; }\n"
        "  static final double LIMIT = 40 + 2;\n}\n"
    )


class Conditions:
    """Writes random conditions in Java over the event ``e``, typed as Java wants them."""

    def __init__(self, random_: random.Random) -> None:
        self._random = random_

    def _one(self, *choices: Any) -> Any:
        return self._random.choice(choices)()

    def _get(self, name: str, of: str = "e") -> str:
        prefix = "is" if FIELDS[name] == "boolean" else "get"
        return f"{of}.{prefix}{name[0].upper()}{name[1:]}()"

    def _name(self, *types: str) -> str:
        return self._random.choice([name for name, type_ in FIELDS.items() if type_ in types])

    def condition(self, depth: int = 3) -> str:
        """Return a condition."""
        if depth <= 0:
            return str(self._one(self._numbers, self._texts, self._others))
        inner = depth - 1
        return str(
            self._one(
                lambda: f"{self.condition(inner)} && {self.condition(inner)}",
                lambda: f"({self.condition(inner)} || {self.condition(inner)})",
                lambda: f"!({self.condition(inner)})",
                lambda: f"({self.condition(0)} ? {self.condition(inner)} : {self.condition(0)})",
                lambda: self.condition(0),
                lambda: self.condition(0),
                self._guarded,
            )
        )

    def _guarded(self) -> str:
        name = self._name("String", "Kind")
        got = self._get(name)
        test = self._text_test(got) if FIELDS[name] == "String" else f"{got}.equals(Kind.RED)"
        return self._random.choice([
            f"{got} != null && {test}", f"({got} == null || {test})",
            f"({got} == null ? false : {test})",
        ])  # fmt: skip

    def _numbers(self) -> str:
        op = self._random.choice(["<", "<=", ">", ">=", "==", "!="])
        return str(
            self._one(
                lambda: f"{self._number()} {op} {self._number()}",
                lambda: f"{self._number()} {op} {self._literal()}",
                lambda: f"{self._get(self._name('double', 'int', 'long'))} {op} {self._literal()}",
                lambda: (
                    f"{self._get(self._name('Integer', 'Double', 'Long'))} {op} {self._literal()}"
                ),
                lambda: f"Double.compare({self._number()}, {self._literal()}) {op} 0",
                lambda: f"Integer.compare(e.getI(), e.getJ()) {op} 0",
                lambda: f"Math.abs({self._number()}) {op} {self._literal()}",
            )
        )

    def _literal(self) -> str:
        pool = ["0", "1", "-1", "3", "100", "2147483647", "5L", "60000L", "0.5", "42.0", "1e10",
                "0.1", "0.1f", "-0.0", "1e300", "'a'"]  # fmt: skip
        return self._random.choice(pool)

    def _number(self, depth: int = 2) -> str:
        name = self._name("int", "long", "double", "float", "char", "short")
        if depth <= 0 or self._random.random() < 0.4:
            return self._get(name)
        inner = depth - 1
        op = self._random.choice(["+", "-", "*", "/", "%"])
        return str(
            self._one(
                lambda: f"({self._number(inner)} {op} {self._number(inner)})",
                lambda: (
                    f"({self._number(inner)} {op} {self._random.choice(['2', '3', '1000', '2.0', '7L'])})"
                ),
                lambda: f"-{self._get(name)}",
                lambda: (
                    f"(({self._random.choice(['int', 'long', 'double', 'float', 'short', 'char'])}) "
                    f"{self._get(name)})"
                ),
                lambda: (
                    f"Math.{self._random.choice(['max', 'min'])}({self._get(name)}, "
                    f"{self._literal()})"
                ),
                lambda: f"({self.condition(0)} ? {self._get(name)} : {self._literal()})",
                lambda: f"{self._get(self._name('String'))}.length()",
                lambda: f"Math.{self._random.choice(['round', 'sqrt', 'floor', 'ceil'])}(e.getD())",
                lambda: self._get(self._name("Integer", "Long", "Double")),
                lambda: "Integer.parseInt(e.getS())",
                lambda: f"(e.getI() {self._random.choice(['<<', '>>', '>>>', '&', '|', '^'])} 3)",
            )
        )

    def _text(self) -> str:
        got = self._get(self._name("String"))
        return self._random.choice([
            got, got, got, f"{got}.toLowerCase()", f"{got}.toUpperCase()", f"{got}.trim()",
            f"{got}.substring(1)", f"({got} + \"x\")", f"({got} + e.getI())", "(\"\" + e.getD())",
            "e.getK().name()", "String.valueOf(e.getF())", f"{got}.replace(\"a\", \"b\")",
            "e.getK().toString()", "String.valueOf(e.getC())", "(\"n\" + e.getBd())",
        ])  # fmt: skip

    def _text_test(self, text: str) -> str:
        other = self._random.choice(
            ['"fail"', '"a"', '""', '"x y"', "e.getT()", '"ss"', '"i"', '"k"', '"it\'s"']
        )
        method = self._random.choice([
            f"equals({other})", f"equals({other})", f"equalsIgnoreCase({other})",
            f"contains({other})", f"startsWith({other})", f"endsWith({other})", "isEmpty()",
            f"compareTo({other}) < 0", f"compareTo({other}) >= 0", 'matches("[a-z]+.*")',
            f"indexOf({other}) > 0", "isBlank()", 'matches("\\\\w+")', "length() > 1",
            f"compareTo({other}) == 0", "charAt(0) == 'a'", "length() > 1",
        ])  # fmt: skip
        return f"{text}.{method}"

    def _texts(self) -> str:
        return str(
            self._one(
                lambda: self._text_test(self._text()),
                lambda: self._text_test(self._text()),
                lambda: f'"fail".equals({self._text()})',
                lambda: f"java.util.Objects.equals({self._text()}, e.getT())",
                lambda: f"{self._text()} != null",
            )
        )

    def _others(self) -> str:
        return self._random.choice([
            "e.isB()", "!e.isB()", "e.getBb()", "e.getBb() == true", "e.isB() == e.getBb()",
            "e.getK() == Kind.RED", "e.getK() != Kind.BLUE", "e.getK().equals(Kind.GREEN)",
            "Kind.GREEN.equals(e.getK())", "e.getK().ordinal() > 0", "e.getBi() == e.getI()",
            "e.getBi() == e.getBi()", "e.getBi().equals(e.getI())", "e.getBl().equals(e.getL())",
            "e.getBl().equals(5)", "e.getBi() == null", "e.getBd() != null && e.getBd() > 1",
            "e.getBd().equals(e.getD())", "e.getC() == 'a'", "e.getC() >= '0' && e.getC() <= '9'",
            "e.getC() + 1 > 'b'", "Double.isNaN(e.getX())", "e.isBig()", "e.getBi() > 2",
            "e.getS() == null", "java.util.Arrays.asList(\"a\", \"fail\").contains(e.getS())",
            "e.getBi().compareTo(e.getI()) > 0", "e.getBd().compareTo(e.getD()) > 0",
            "e.getBi() != null && e.getBi() % 2 == 0", "e.getBl() != null && e.getBl() - 1 > 0",
            "Math.abs(e.getD() - e.getX()) < 0.5", "e.getD() == e.getX()", "e.getD() != e.getX()",
            "e.getD() > e.getX()", "e.getD() <= e.getX()", "e.getL() > e.getD()",
            "e.getF() > 0.1", "e.getF() == 0.1f", "e.getF() < e.getD()", "e.getF() * 2 > 0.2f",
        ])  # fmt: skip


_MAIN = """
import java.util.*;
import java.io.*;
public class Main {{
  interface C {{ boolean filter(Event e, Ctx ctx) throws Exception; }}
  static class Ctx {{
    List<Event> taken;
    Iterable<Event> getEventsForPattern(String name) {{ return taken; }}
  }}
{methods}
  public static void main(String[] args) throws Exception {{
    Event[] es = {{
{events}
    }};
    int[][] runs = {{ {runs} }};
    C[] cs = {{ {conditions} }};
    PrintStream out = new PrintStream(new BufferedOutputStream(System.out));
    for (C c : cs) {{
      StringBuilder line = new StringBuilder();
      for (int[] run : runs) {{
        Ctx ctx = new Ctx();
        ctx.taken = new ArrayList<>();
        for (int k = 0; k < run.length - 1; k++) ctx.taken.add(es[run[k]]);
        try {{ line.append(c.filter(es[run[run.length - 1]], ctx) ? 'T' : 'F'); }}
        catch (Throwable t) {{ line.append('E'); }}
      }}
      out.println(line);
    }}
    out.flush();
  }}
}}
"""


def answers(
    folder: Path, bodies: list[str], given: list[dict[str, Any]], runs: list[list[int]]
) -> list[str]:
    """Return what Java says: for each body a letter for each run, T, F or E for an exception."""
    methods = "\n".join(
        f"  static boolean c{place}(Event e, Ctx ctx) throws Exception {{ {body} }}"
        for place, body in enumerate(bodies)
    )
    made = ",\n".join(
        "      new Event("
        + ", ".join(java_literal(event[name], type_) for name, type_ in FIELDS.items())
        + ")"
        for event in given
    )
    text = _MAIN.format(
        methods=methods,
        events=made,
        runs=", ".join("{" + ", ".join(map(str, run)) + "}" for run in runs),
        conditions=", ".join(f"Main::c{place}" for place in range(len(bodies))),
    )
    (folder / "Main.java").write_text(text + event_class(), encoding="utf-8")
    command = [
        "javac",
        "-encoding",
        "utf-8",
        "-nowarn",
        "-proc:none",
        "-J-XX:TieredStopAtLevel=1",
        "Main.java",
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", ".", "Main"],
        cwd=folder, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.split("\n")[: len(bodies)]


# --- random bodies of conditions in Java that walk through events


class Loops(Conditions):
    """Writes random bodies that walk through the events that a stage has taken."""

    _EVENTS = 'ctx.getEventsForPattern("a")'

    def _of(self, name: str) -> str:
        return self._get(name, "p")

    def body(self) -> str:
        """Return the body of a condition."""
        head = f"for (Event p : {self._EVENTS})"
        number = self._name("int", "long", "double", "short")
        whole = self._name("int", "long", "short")
        type_ = FIELDS[number] if FIELDS[number] != "short" else "int"
        op = self._random.choice(["<", "<=", ">", ">=", "==", "!="])
        up = self._random.choice(["<", "<=", ">", ">="])
        test = self._random.choice([
            f"{self._of(number)} {op} {self._get(number)}", f"{self._of(number)} {up} 3",
            f"{self._of(number)} {up} {self._get(number)}", 'p.getS().equals("fail")',
            "p.isB()", f"p.isB() && {self._of(number)} {up} {self._get(number)}",
            f"!({self._of(whole)} {up} {self._get(whole)})", "p.getK() == e.getK()",
        ])  # fmt: skip
        end = self._random.choice([f"{self._get(number)}", "5", "0"])
        stream = f"java.util.stream.StreamSupport.stream({self._EVENTS}.spliterator(), false)"
        got = f"{number[0].upper()}{number[1:]}"
        big = self._random.choice(["long", "int", "double"])
        return self._random.choice([
            f"{big} s = 0; {head} {{ s += {self._of(number)}; }} return s {op} {end};",
            f"{type_} s = {self._get(number)}; {head} s += {self._of(number)}; return s {op} 5;",
            f"{big} s = 0; int n = 0; {head} {{ s += {self._of(number)}; n++; }} "
            f"return n > 0 && s / n {op} {end};",
            f"double s = 0; int n = 0; {head} {{ s += {self._of('d')}; n++; }} "
            f"return {self._get('d')} {op} s / n;",
            f"double s = 0; int n = 0; {head} {{ s = s + {self._of('x')}; n += 1; }} "
            f"if (n == 0) {{ return {self._random.choice(['true', 'false'])}; }} "
            f"return s / n {op} {self._get('x')};",
            f"int n = 0; {head} {{ n++; }} return n {op} 2;",
            f"int n = 0; {head} {{ if ({test}) n++; }} return n {op} 1;",
            f"{head} {{ if ({test}) {{ return true; }} }} return false;",
            f"{head} {{ if ({test}) return false; }} return {self.condition(0)};",
            f"{head} {{ if (!({test})) return false; }} return true;",
            f"Event last = null; {head} {{ last = p; }} "
            f"return last == null || {self._get(number)} {op} {self._get(number, 'last')};",
            f"Event last = null; {head} last = p; "
            f"return last != null && {self._get(number, 'last')} - {self._get(number)} {op} 3;",
            f"Event one = null; {head} {{ one = p; break; }} if (one == null) return false; "
            f"return {self._get(number)} {op} {self._get(number, 'one')};",
            f"return {self._EVENTS}.iterator().next().get{got}() {op} {self._get(number)};",
            f"return {self._EVENTS}.iterator().hasNext() && "
            f"e.getS() != null && e.getS().equals({self._EVENTS}.iterator().next().getS());",
            f"java.util.Iterator<Event> it = {self._EVENTS}.iterator(); int n = 0; "
            f"while (it.hasNext()) {{ if (it.next().isB()) n++; }} return n {op} 1;",
            f"{type_} m = {self._get(number)}; {head} {{ if ({self._of(number)} > m) "
            f"m = {self._of(number)}; }} return m {op} {end};",
            f"{type_} m = 7; {head} {{ if ({self._of(number)} < m) {{ m = {self._of(number)}; }} }}"
            f" return {self._get(number)} {op} m;",
            f"{type_} m = 0; {head} {{ m = ({type_}) Math.max(m, {self._of(number)}); }} "
            f"return m {op} {end};",
            f"java.util.List<Event> all = new ArrayList<>(); {head} {{ all.add(p); }} "
            f"return all.size() > 1 && {self._get(number, 'all.get(all.size() - 2)')} {op} {end};",
            f"java.util.List<Event> all = new ArrayList<>(); {self._EVENTS}.forEach(all::add); "
            f"return !all.isEmpty() && {self._get(number, 'all.get(0)')} {op} {end};",
            f"return {stream}.anyMatch(p -> {test});",
            f"return {stream}.allMatch(p -> {test});",
            f"return {stream}.noneMatch(p -> {test}) && e.isB();",
            f"return {stream}.filter(p -> {test}).count() {op} 1;",
            f"return {stream}.mapToInt(Event::getI).sum() {op} {end};",
            f"return {stream}.mapToDouble(p -> p.getD()).sum() {op} {end};",
            f"return {stream}.mapToDouble(Event::getD).average().orElse(0) {op} {end};",
            f"return {stream}.mapToLong(Event::getL).max().orElse(3) {op} {end};",
            f"String all = \"\"; {head} {{ all += p.getS(); }} return all.length() {op} 3;",
            f"StringBuilder b = new StringBuilder(); {head} {{ b.append(p.getI()).append(\",\"); }}"
            f" return b.toString().startsWith(\"1\");",
            f"int i = 0; int n = 0; {head} {{ i++; if (i % 2 == 0) continue; "
            f"n += {self._of(whole)}; }} return n {op} {end};",
            f"boolean seen = false; {head} {{ if ({test}) {{ seen = true; }} }} return seen;",
            f"boolean seen = false; {head} {{ seen = seen || {test}; }} return !seen;",
            f"switch (e.getI()) {{ case 0: case 1: return true; case 2: {{ int n = 0; {head} n++; "
            f"return n > 1; }} default: return {self.condition(0)}; }}",
            f"int v = e.getI(); if (v > 3) v = v * 2; else if (v < 0) {{ v = -v; }} "
            f"return v {op} {end};",
            f"String s = e.getS(); if (s == null || s.isEmpty()) return false; "
            f"{head} {{ if (s.equals(p.getS())) return true; }} return {self._text_test('s')};",
        ])  # fmt: skip
