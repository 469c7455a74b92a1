# SPDX-License-Identifier: Apache-2.0
"""Values around conditions: captured ones, constants by Java's types, objects, other conditions."""

import inspect
import re

import pytest

from pyflinkcep.migrate.check.compare import load
from pyflinkcep.migrate.migration import migrate
from pyflinkcep.testing import match

CLASS = """
import java.util.*;
class Job {{
    static class Event {{ public String name; public int n; public long at; public double x; }}
    static class Step {{
        final String name; final int least;
        Step(String name, int least) {{ this.name = name; this.least = least; }}
        String getName() {{ return name; }}
    }}
    record Limit(String name, long most) {{}}
    static abstract class Base<T> {{ T key; T getKey() {{ return key; }} }}
    static class Keyed extends Base<String> {{ int size; }}
    static class Named extends SimpleCondition<Event> {{
        final String wanted;
        Named(String wanted) {{ this.wanted = wanted; }}
        public boolean filter(Event e) {{ return wanted.equals(e.name); }}
    }}
    {members}
}}
"""


def module(tmp_path, members):
    """Return the module of a class with some members, loaded, and its text."""
    file = tmp_path / "Job.java"
    file.write_text(CLASS.format(members=members), encoding="utf-8")
    made = migrate([str(file)]).report.files[0]
    assert made.stubs == 0, made.notes
    return load(made), made.text


def found(pattern, *events):
    """Return the numbers of matches of events with the fields of Event, one a second."""
    base = {"name": "a", "n": 0, "x": 0.0}
    rows = [base | event | {"at": at * 1000} for at, event in enumerate(events)]
    return len(match(pattern, rows, timestamp="at"))


def test_texts_and_arithmetic_are_captured(tmp_path):
    """What a method is given becomes a parameter of functions, texts with quotes too."""
    java = """
    static Pattern<Event, ?> p(String prefix, int limit, boolean strict, double share) {
        int twice = limit * 2;
        String wanted = prefix + "/x";
        return Pattern.<Event>begin("a")
            .where(SimpleCondition.of(e -> e.name.startsWith(prefix) && e.n > limit + 1))
            .next("b").where(SimpleCondition.of(e -> e.name.equals(wanted) || e.n == twice))
            .next("c").where(new IterativeCondition<Event>() {
                public boolean filter(Event e, Context<Event> ctx) throws Exception {
                    double sum = 0;
                    for (Event a : ctx.getEventsForPattern("a")) { sum += a.x; }
                    return strict ? e.x > sum * share : e.n > limit;
                }
            });
    }
    """
    made, text = module(tmp_path, java)
    events = [{"name": "it's", "n": 5, "x": 2.0}, {"name": "it's/x"}, {"x": 3.5}]

    assert ".where(is_a(prefix, limit))" in text
    assert found(made.p_pattern("it's", 3, True, 1.5), *events) == 1
    assert found(made.p_pattern("it's", 3, True, 2.0), *events) == 0
    assert found(made.p_pattern("it's", 4, True, 1.5), *events) == 0
    assert found(made.p_pattern("it", 3, True, 1.5), *events) == 0


def test_captured_values_in_functions_of_matches(tmp_path):
    """A function of matches that captures what is known at run time is made by another one."""
    java = """
    static void run(DataStream<Event> events, String label) {
        Pattern<Event, ?> p = Pattern.<Event>begin("a").where(SimpleCondition.of(e -> e.n > 0));
        CEP.pattern(events, p).select(m -> label + m.get("a").get(0).n).print();
    }
    """
    _, text = module(tmp_path, java)

    assert "def select_p(label: str) -> Callable[..., Any]:" in text
    assert "found.select(select_p(label), P)" in text
    assert "def find_p(events: DataFrame, label: str) -> CepDataFrame:" in text


CONSTANTS = {
    "Integer.MAX_VALUE + 1": "-2147483648",
    "1000 * 60 * 60 * 24 * 30": "-1702967296",
    "1000L * 60 * 60 * 24 * 30": "2592000000",
    "-2147483648": "-2147483648",
    "(int) 3_000_000_000L": "-1294967296",
    "1 << 33": "2",
    "-17 >>> 28": "15",
    "7 / 2 * 2": "6",
    "'a' + 1": "98",
}


@pytest.mark.parametrize(("java", "value"), CONSTANTS.items())
def test_constants_have_java_types(tmp_path, java, value):
    """Constants are computed as int or long, with their overflow, wherever they stand."""
    members = f"""
    static final long FIELD = {java};
    static Pattern<Event, ?> fields() {{
        return Pattern.<Event>begin("a").where(SimpleCondition.of(e -> e.at > FIELD));
    }}
    static Pattern<Event, ?> locals() {{
        long limit = {java};
        return Pattern.<Event>begin("a").where(SimpleCondition.of(e -> e.at > limit));
    }}
    """
    _, text = module(tmp_path, members)

    assert text.count(f'.where("at > {value}")') == 2


def test_a_captured_long_is_no_int(tmp_path):
    """A variable declared as long computes with 64 bits, however small its value is."""
    java = """
    static Pattern<Event, ?> p() {
        long day = 86400;
        return Pattern.<Event>begin("a").where(SimpleCondition.of(e -> e.at > day * 1000000));
    }
    """
    _, text = module(tmp_path, java)

    assert '.where("at > 86400000000")' in text


def test_objects_in_lists(tmp_path):
    """Fields and getters of objects of a list are known, in names of stages and in conditions."""
    java = """
    static Pattern<Event, ?> p() {
        List<Step> steps = new ArrayList<>();
        steps.add(new Step("first", 3));
        steps.add(new Step("second", 4));
        Pattern<Event, ?> p = null;
        for (Step step : steps) {
            p = p == null ? Pattern.<Event>begin(step.getName()) : p.next(step.name);
            p = ((Pattern<Event, Event>) p).where(SimpleCondition.of(e -> e.n >= step.least));
        }
        for (Limit limit : List.of(new Limit("third", 9))) {
            p = ((Pattern<Event, Event>) p.next(limit.name())).where(SimpleCondition.of(e -> e.at < limit.most()));
        }
        return p;
    }
    """
    _, text = module(tmp_path, java)
    flat = re.sub(r"\s+", "", text)

    assert '.begin("first").where("n>=3").next("second").where("n>=4")' in flat
    assert '.next("third").where("at<9")' in flat


def test_conditions_of_conditions(tmp_path):
    """Flink's inner classes RichAnd, RichOr and RichNot remain to be written, beside their Java."""
    java = """
    static Pattern<Event, ?> p() {
        IterativeCondition<Event> big = SimpleCondition.of(e -> e.n > 3);
        return Pattern.<Event>begin("a").where(new RichAndCondition<>(new Named("a"), big));
    }
    """
    file = tmp_path / "Job.java"
    file.write_text(CLASS.format(members=java), encoding="utf-8")
    report = migrate([str(file)]).report
    text = report.files[0].text

    assert report.status == 1
    assert "raise not_translated('Job.java:" in text
    assert '# new RichAndCondition<>(new Named("a"), big)' in text


def test_an_inherited_field_of_a_generic_class(tmp_path):
    """The type parameter of a superclass stands for what its subclass gives."""
    java = """
    static Pattern<Keyed, ?> p() {
        return Pattern.<Keyed>begin("a").where(SimpleCondition.of(k -> k.getKey().equals("x")));
    }
    static void run(DataStream<Keyed> keyed) {
        CEP.pattern(keyed.keyBy(Base::getKey), p()).select(m -> m.get("a").get(0)).print();
    }
    """
    _, text = module(tmp_path, java)

    assert "\"key = 'x'\"" in text
    assert 'keyBy(events, "key")' in text
    assert "key string, size int" in text


def test_open_of_an_anonymous_condition(tmp_path):
    """What open() assigns is known in the condition, of an anonymous class too."""
    java = """
    static Pattern<Event, ?> p() {
        return Pattern.<Event>begin("a").where(new RichIterativeCondition<Event>() {
            private Set<String> names;
            public void open(OpenContext c) { names = new HashSet<>(Arrays.asList("a", "b")); }
            public boolean filter(Event e, Context<Event> ctx) { return names.contains(e.name); }
        });
    }
    """
    _, text = module(tmp_path, java)

    assert "name IN ('a', 'b')" in text


def test_the_type_of_a_subtype_is_that_of_its_stage(tmp_path):
    """After subtype() the next stage is about events of any class again."""
    java = """
    static abstract class Top { public int n; }
    static class Low extends Top { public int m; }
    static Pattern<Top, ?> p() {
        return Pattern.<Top>begin("a").subtype(Low.class).where(SimpleCondition.of(l -> l.m > 1))
            .next("b").where(SimpleCondition.of(t -> t instanceof Low && t.n > 2));
    }
    """
    _, text = module(tmp_path, java)

    assert "type = 'Low' AND n > 2" in text


def test_cases_by_class(tmp_path):
    """A choice by the class of an event, and accessors of an interface that records implement."""
    java = """
    sealed interface Obs permits Hot, Wind { String place(); }
    record Hot(String place, double degrees) implements Obs {}
    record Wind(String place, double speed) implements Obs {}
    static Pattern<Obs, ?> p() {
        return Pattern.<Obs>begin("a").where(SimpleCondition.of(o -> o.place().equals("x")))
            .where(SimpleCondition.of(o -> o instanceof Hot h ? h.degrees() > 20 : ((Wind) o).speed() > 5));
    }
    """
    made, _ = module(tmp_path, java)

    def seen(**event):
        rows = [{"degrees": None, "speed": None, "place": "x", "at": 0, **event}]
        return len(match(made.p_pattern(), rows, timestamp="at"))

    assert [seen(type="Hot", degrees=21.0), seen(type="Hot", degrees=19.0)] == [1, 0]
    assert [seen(type="Wind", speed=6.0), seen(type="Wind", speed=6.0, place="y")] == [1, 0]


def test_builders_arrays_and_any_number_of_arguments(tmp_path):
    """A builder's methods set its fields; varargs are arrays; enums are handed on."""
    java = """
    enum Kind { LOW, HIGH }
    static class Builder {
        private final String first;
        private long seconds = 30;
        Builder(String first) { this.first = first; }
        Builder lasting(long n) { this.seconds = n; return this; }
        Pattern<Event, ?> made() {
            return Pattern.<Event>begin(first).where(named("a", "b")).next("k").where(least(Kind.HIGH))
                .within(Duration.ofSeconds(seconds));
        }
    }
    static SimpleCondition<Event> named(String... names) {
        return SimpleCondition.of(e -> {
            for (String n : names) { if (n.equals(e.name)) return true; }
            return false;
        });
    }
    static SimpleCondition<Event> least(Kind kind) {
        return new SimpleCondition<Event>() {
            public boolean filter(Event e) { return e.n >= kind.ordinal(); }
        };
    }
    static void run(DataStream<Event> events) {
        CEP.pattern(events, new Builder("one").lasting(7).made()).select(m -> {
            int[] ns = new int[2];
            int i = 0;
            for (Event e : m.get("one")) { ns[i++] = e.n; }
            Arrays.sort(ns);
            return ns[1];
        }).print();
    }
    """
    made, text = module(tmp_path, java)
    pattern = made.made_pattern() if hasattr(made, "made_pattern") else made.builder_pattern()

    assert 'Pattern.begin("one")' in text
    assert "timedelta(seconds=7)" in text
    assert found(pattern, {"name": "b"}, {"n": 1}) == 1
    assert found(pattern, {"name": "c"}, {"n": 1}) == 0
    assert found(pattern, {"name": "b"}, {"n": 0}) == 0
    row = type("Row", (), {"n": 4})()
    selected = next(getattr(made, name) for name in dir(made) if name.startswith("select_"))
    assert selected({"one": [row]}) == (4,)


def test_errors_that_are_caught(tmp_path):
    """catch takes the errors of Python that stand for those of Java."""
    java = """
    static Pattern<Event, ?> p() {
        return Pattern.<Event>begin("a").where(SimpleCondition.of(e -> {
            try { return Integer.parseInt(e.name) > 3; } catch (NumberFormatException x) { return e.n > 5; }
        }));
    }
    """
    made, text = module(tmp_path, java)

    assert "except ValueError:" in text
    assert [
        found(made.p_pattern(), {"name": name, "n": n})
        for name, n in (("4", 0), ("x", 6), ("x", 0))
    ] == [1, 1, 0]


NAMES = {
    '"s" + limit / 2': "s-3",
    '"s" + (limit - 1) * -2 + "%"': "s16%",
    '"s" + -(limit + 1)': "s6",
    'prefix + "{\'" + strict + "\'}"': "p\"'{'true'}",
    '"" + share + limit % 4': "0.1-3",
    '"\\\\" + (strict ? "a" : "b") + prefix': "\\ap\"'",
    '(limit > 3 || strict) && limit > 0 ? "yes" : "no"': "no",
    '!strict == (limit > 0) ? "same" : "other"': "same",
    "prefix": "p\"'",
}


@pytest.mark.parametrize(("java", "name"), NAMES.items())
def test_names_of_stages_are_computed_as_in_java(tmp_path, java, name):
    """What a program computes of its arguments is computed here, by Java's rules and precedence."""
    members = f"""
    static Pattern<Event, ?> p(String prefix, int limit, boolean strict, double share) {{
        String name = {java};
        return Pattern.<Event>begin({java}).where(SimpleCondition.of(e -> e.name.equals(name)));
    }}
    """
    made, _ = module(tmp_path, members)

    pattern = made.p_pattern(*_arguments(made.p_pattern, "p\"'", -7, True, 0.1))
    matches = match(pattern, [{"name": name, "n": 0, "x": 0.0, "at": 0}], timestamp="at")

    assert [list(one) for one in matches] == [[name]]


def _arguments(function, *values):
    """Return the values of the parameters that a function has."""
    given = dict(zip(("prefix", "limit", "strict", "share"), values, strict=True))
    return [given[name] for name in inspect.signature(function).parameters]
