# SPDX-License-Identifier: Apache-2.0
"""Random bodies of conditions in Java that walk through events."""

from __future__ import annotations

from tests.property.java_programs import FIELDS, Conditions

__all__ = ["Loops"]


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
