# SPDX-License-Identifier: Apache-2.0
"""Java's library in functions of matches: streams, orders, maps, texts, counters."""

import pytest

from pyflinkcep.migrate.migration import migrate
from tests.migrate.test_values import CLASS, module

STREAMS = {
    'l.stream().map(e -> e.name).sorted().collect(Collectors.joining(",", "<", ">"))': "<a,b,c>",
    "l.stream().map(e -> e.n).reduce(0, Integer::sum)": 6,
    "l.stream().map(e -> e.n).reduce(Math::max).get()": 3,
    "l.stream().flatMap(e -> Arrays.asList(e.name, e.name).stream()).count()": 6,
    "IntStream.range(1, l.size()).allMatch(i -> l.get(i).n > l.get(i - 1).n)": False,
    "Iterables.getLast(l).name": "c",
    'String.format(Locale.US, "%d %s", l.size(), l.get(0).name)': "3 a",
    '"%.1f".formatted(l.get(1).x)': "0.0",
    'l.get(0).name.replaceAll("[a-z]", "-")': "-",
    "Boolean.TRUE.equals(l.isEmpty())": False,
    "Collections.disjoint(Arrays.asList(1, 2), Arrays.asList(2, 3))": False,
    'l.get(0).name.concat("12").chars().filter(Character::isDigit).count()': 2,
    "Math.floorMod(-7, 3) + Math.floorDiv(-7, 2)": -2,
    "EnumSet.of(TimeUnit.DAYS).size()": 1,
    'new StringBuilder(", a").append(l.get(0).n).substring(2)': "a1",
    "l.stream().max(Comparator.comparingInt(e -> e.n)).get().name": "b",
    "l.stream().min(Comparator.comparing(e -> e.name)).get().n": 1,
    "l.stream().sorted(Comparator.comparingDouble(e -> e.n)).map(e -> e.name).collect(Collectors.joining())": "acb",
    "Lists.reverse(l).get(0).name + CollectionUtil.isNullOrEmpty(l)": "cfalse",
    "Objects.requireNonNullElse(l.get(0).name, l.get(1).name)": "a",
    'Arrays.asList(l.get(0).name.split("x")).size() + Short.toString((short) 70000)': "14464",
    "Float.max(Float.NEGATIVE_INFINITY, 2)": 2.0,
}

UNUSED = [
    "l.stream().sorted(Comparator.comparing(e -> e.n).reversed()).findFirst().get().name",
    "l.stream().max(Comparator.comparing(Event::getName).thenComparing(e -> e.n)).get().name",
    'StringUtils.equalsAny(l.get(0).name, "b", "a")',
    "Stream.of(l.get(0).n, 2).count()",
    "IntStream.rangeClosed(1, 2).sum()",
    "IntStream.of(l.get(0).n, 2).sum()",
    "Stream.concat(l.stream(), l.stream()).count()",
    "new BigDecimal(l.get(0).name).signum()",
    'StringUtils.contains(l.get(0).name, "a")',
    'Instant.ofEpochMilli(l.get(0).at).atZone(ZoneId.of("UTC")).getHour()',
    "Collections.max(l, (a, b) -> a.n - b.n).name",
    "l.stream().collect(Collectors.groupingBy(e -> e.n > 1, Collectors.counting())).get(true)",
    "l.stream().collect(Collectors.toMap(e -> e.name, e -> e.n)).size()",
    "(l.get(0) instanceof Event(int n)) ? n : 0",
    "switch (l.get(0)) { case Event e -> e.n; default -> 2; }",
    'java.util.regex.Pattern.compile("[a-c]").matcher(l.get(0).name).find()',
    "l.stream().collect(Collectors.averagingInt(e -> e.n))",
    "l.stream().collect(Collectors.mapping(e -> e.n, Collectors.toList()))",
    "l.stream().collect(Collectors.toCollection(LinkedList::new)).size()",
    "l.stream().mapToInt(e -> e.n).summaryStatistics().getMax()",
    "l.stream().takeWhile(e -> e.n < 3).count()",
    "Integer.bitCount(l.get(0).n)",
    'new StringJoiner(", ", "[", "]").add("x").add(l.get(0).name).toString()',
    'Tuple2.of(l.get(0).n, "b").getField(1)',
    "l.get(0).name.hashCode()",
    'l.get(0).name.compareToIgnoreCase("b")',
    "l.get(0).name.strip()",
]


@pytest.mark.parametrize("java", UNUSED)
def test_what_no_public_program_uses_is_left_to_write(tmp_path, java):
    """Compositions of comparators, groups, matchers and patterns of records are a function that raises, with the Java beside it."""
    members = f"""
    static void run(DataStream<Event> events) {{
        Pattern<Event, ?> p = Pattern.<Event>begin("a").oneOrMore();
        CEP.pattern(events, p).select(m -> {{ List<Event> l = m.get("a"); return {java}; }}).print();
    }}
    """
    file = tmp_path / "Job.java"
    file.write_text(CLASS.format(members=members), encoding="utf-8")
    made = migrate([str(file)]).report.files[0]

    assert made.stubs == 1
    assert java in made.text
    assert "raise not_translated(" in made.text


def test_a_counter_outlives_its_loop(tmp_path):
    """A counter that is declared before its loop is the number of elements after it, as in Java."""
    members = """
    static void run(DataStream<Event> events) {
        Pattern<Event, ?> p = Pattern.<Event>begin("a").oneOrMore();
        CEP.pattern(events, p).select(m -> {
            List<Event> l = m.get("a");
            int i = 0;
            for (; i < l.size(); i++) { if (l.get(i).n > 9) { break; } }
            return i;
        }).print();
    }
    """
    made, _ = module(tmp_path, members)
    rows = [type("Row", (), {"n": n})() for n in (1, 3, 12)]

    assert [made.select_p({"a": rows[:2]}), made.select_p({"a": rows})] == [(2,), (2,)]


@pytest.mark.parametrize(("java", "value"), STREAMS.items())
def test_streams_and_texts(tmp_path, java, value):
    """Orders, groups, reductions, regular expressions and formats have the values of Java."""
    members = f"""
    static void run(DataStream<Event> events) {{
        Pattern<Event, ?> p = Pattern.<Event>begin("a").oneOrMore();
        CEP.pattern(events, p).select(m -> {{ List<Event> l = m.get("a"); return {java}; }}).print();
    }}
    """
    made, _ = module(tmp_path, members)
    rows = [
        type("Row", (), {"name": name, "n": n, "x": 0.0})()
        for name, n in (("a", 1), ("b", 3), ("c", 2))
    ]

    assert made.select_p({"a": rows}) == (value,)


def test_counters_and_maps_in_statements(tmp_path):
    """i++ in an expression, merge(), computeIfAbsent(), forEach() of maps, isPresent(), sets."""
    java = """
    static class Report implements PatternSelectFunction<Event, String> {
        private transient Counter seen;
        private final int most;
        Report(int most) { this.most = most; }
        public String select(Map<String, List<Event>> m) {
            Map<String, Integer> sums = new HashMap<>();
            Map<Boolean, List<String>> names = new HashMap<>();
            Set<String> first = new HashSet<>();
            StringBuilder b = new StringBuilder();
            int i = 0;
            for (Event e : m.get("a")) {
                if (i++ >= most) break;
                seen.inc();
                sums.merge(e.name, e.n, Integer::sum);
                names.computeIfAbsent(e.n > 1, k -> new ArrayList<>()).add(e.name);
                if (!first.add(e.name)) { b.append("again ").append(e.name).append(' '); }
            }
            sums.forEach((k, v) -> b.append(k).append(v));
            for (Event top : m.get("a")) { if (top.n > 99) b.append(top.name); }
            if (m.get("a").stream().filter(e -> e.n > 2).findFirst().isPresent()) { b.append("!"); }
            return b.toString() + names.get(true).size();
        }
    }
    static void run(DataStream<Event> events) {
        Pattern<Event, ?> p = Pattern.<Event>begin("a").oneOrMore();
        CEP.pattern(events, p).select(new Report(3)).print();
    }
    """
    made, text = module(tmp_path, java)
    assert "top: Any" not in text  # the loop has declared it
    rows = [
        type("Row", (), {"name": name, "n": n})()
        for name, n in (("a", 2), ("b", 3), ("a", 1), ("c", 9))
    ]

    assert made.select_p({"a": rows}) == ("again a a3b3!2",)
