# SPDX-License-Identifier: Apache-2.0
"""Patterns that objects build, streams that other code makes, JSON that a whole file reads."""

from __future__ import annotations

from pyflinkcep.migrate.check.compare import load
from pyflinkcep.migrate.migration import migrate
from pyflinkcep.testing import match

EVENT = """
    static class Event {
        public String user; public int n; public long at;
        Instant moment() { return Instant.ofEpochMilli(at); }
    }
"""
BUILDER = """
    static class Step {
        final String name; final int least; final boolean strict;
        Step(String name, int least, boolean strict) { this.name = name; this.least = least; this.strict = strict; }
        static Step of(String name, int least) { return new Step(name, least, false); }
        Step strictly() { return new Step(name, least, true); }
    }
    static class Builder {
        private Pattern<Event, Event> pattern;
        private final AfterMatchSkipStrategy skip;
        Builder(AfterMatchSkipStrategy skip) { this.skip = skip; }
        Builder add(Step s) {
            SimpleCondition<Event> c = SimpleCondition.of(e -> e.n > s.least);
            if (pattern == null) pattern = Pattern.<Event>begin(s.name, skip).where(c);
            else if (s.strict) pattern = pattern.next(s.name).where(c);
            else pattern = pattern.followedBy(s.name).where(c);
            return this;
        }
        Pattern<Event, Event> build() { return pattern; }
    }
    static void run(StreamExecutionEnvironment env) {
        Builder b = new Builder(AfterMatchSkipStrategy.skipPastLastEvent());
        b.add(Step.of("a", 1));
        b.add(Step.of("b", 2).strictly());
        for (int k = 3; k < 5; k++) b.add(Step.of("c" + k, k));
        Pattern<Event, Event> steps = b.build().within(Duration.ofMinutes(5).minusSeconds(30));
        CEP.pattern(Events.of(env).keyBy(e -> e.user), steps).select(m -> m.get("a").get(0).n).print();
    }
"""
NAMES = """
    private final List<Integer> limits;
    Pattern<Event, ?> chain(List<String> unknownList) {
        Pattern<Event, Event> p = Pattern.<Event>begin("start");
        for (String s : unknownList) p = p.next("n-" + s).where(SimpleCondition.of(e -> e.user.equals(s)));
        return p;
    }
    Pattern<Event, ?> steps() {
        Pattern<Event, Event> p = Pattern.<Event>begin("start");
        for (int least : limits) p = p.next("n-" + least).where(SimpleCondition.of(e -> e.n > least));
        return p;
    }
"""
RULES = """
    interface Rule {
        Pattern<Event, ?> pattern();
        default SimpleCondition<Event> over(int limit) { return SimpleCondition.of(e -> e.n > limit); }
        default Pattern<Event, ?> twice(int limit) { return one("a", limit).next("b").where(over(limit * 2)); }
        default Pattern<Event, Event> one(String name, int limit) { return Pattern.<Event>begin(name).where(over(limit)); }
        default Pattern<Event, Event> one(String name, String user) {
            return Pattern.<Event>begin(name).where(SimpleCondition.of(e -> e.user.equals(user)));
        }
    }
    static class Jump implements Rule {
        private final int limit;
        Jump(int limit) { this.limit = limit; }
        public Pattern<Event, ?> pattern() { return twice(limit); }
    }
    static class Named implements Rule {
        public Pattern<Event, ?> pattern() { return one("u", "ann"); }
    }
    static void run(StreamExecutionEnvironment env) {
        WatermarkStrategy<Event> times = WatermarkStrategy.<Event>forMonotonousTimestamps()
            .withTimestampAssigner(new TimestampAssignerSupplier<Event>() {
                public TimestampAssigner<Event> createTimestampAssigner(Context c) { return (e, old) -> e.moment().toEpochMilli(); }
            });
        DataStream<Event> events = env.fromSource(Own.source(), times, "own");
        Rule rule = new Jump(3);
        CEP.pattern(events, rule.pattern()).select(m -> m.get("a").get(0).n).print();
        CEP.pattern(events, new Named().pattern()).select(m -> m.get("u").get(0).n).print();
    }
"""
JSON = """
    static void run(DataStream<String> lines) {
        DataStream<JSONObject> events = lines.map(JSON::parseObject);
        Pattern<JSONObject, ?> p = Pattern.<JSONObject>begin("a").where(SimpleCondition.of(o -> o.getIntValue("n") > 3))
            .next("b").where(new IterativeCondition<JSONObject>() {
                public boolean filter(JSONObject o, Context<JSONObject> c) throws Exception {
                    for (JSONObject a : c.getEventsForPattern("a")) {
                        if (a.getString("room").equals(o.getString("room"))) return true;
                    }
                    return false;
                }
            });
        CEP.pattern(events, p).select(m -> {
            JSONObject r = new JSONObject();
            r.put("room", m.get("a").get(0).getString("room"));
            r.put("level", m.get("b").get(0).getDouble("level"));
            return r;
        }).print();
        Pattern<JSONObject, ?> q = Pattern.<JSONObject>begin("q").where(SimpleCondition.of(o -> o.getLongValue("late") > 3));
        CEP.pattern(events, q).select(m -> "x").print();
    }
"""


def translated(tmp_path, members):
    """Return the translated file of a class with an event class and some members."""
    file = tmp_path / "Job.java"
    file.write_text(f"import java.util.*;\nclass Job {{{EVENT}{members}}}", encoding="utf-8")
    return migrate([str(file)]).report.files[0]


def numbers(pattern, *given):
    """Return the matches of events with some numbers, one a second, by their numbers."""
    rows = [{"user": "ann", "n": n, "at": at * 1000} for at, n in enumerate(given)]
    found = match(pattern, rows, timestamp="at")
    return [[event.n for events in one.values() for event in events] for one in found]


def test_a_builder_is_followed_through_its_calls(tmp_path):
    """What is null at first is known to be; each call goes on from what the one before left."""
    made = translated(tmp_path, BUILDER)
    pattern = getattr(load(made), made.patterns[0])()

    assert (made.stubs, len(made.patterns)) == (0, 1)
    assert numbers(pattern, 2, 3, 0, 4, 5, 9) == [[2, 3, 4, 5]]
    assert "timedelta(seconds=270)" in made.text


def test_a_stream_that_other_code_makes_keeps_its_key(tmp_path):
    """What comes behind a source that is not in the sources is translated; its time is asked for."""
    made = translated(tmp_path, BUILDER)

    assert 'keyBy(events, "user")' in made.text
    assert "TODO: return rows of EVENT" in made.text
    assert any("Events.of(env) has no counterpart" in note.what for note in made.notes)
    assert any("time column" in note.what for note in made.notes)


def test_lists_known_at_run_time_alone_are_parameters(tmp_path):
    """A loop over names or numbers that the program is given goes over a parameter of that name."""
    made = translated(tmp_path, NAMES)
    module = load(made)

    assert made.stubs == 0
    assert "(unknown_list: list[str])" in made.text
    assert "(limits: list[int])" in made.text
    assert numbers(module.chain_pattern(["ann", "bob"]), 1, 2, 3) == []
    assert numbers(module.chain_pattern(["ann"]), 1, 2) == [[1, 2]]
    assert numbers(module.steps_pattern([2, 4]), 1, 3, 5) == [[1, 3, 5]]


def test_default_methods_and_overloads_build_patterns(tmp_path):
    """Methods of an interface see the object's fields; of two of one name, types choose."""
    made = translated(tmp_path, RULES)
    jump, named = (getattr(load(made), name)() for name in made.patterns[:2])

    assert made.stubs == 0, made.notes
    assert numbers(jump, 4, 7, 5, 6) == [[4, 7]]
    assert numbers(named, 1) == [[1]]
    assert 'timestamp_millis("at")' in made.text


def test_json_has_the_columns_that_the_whole_file_reads(tmp_path):
    """Loops, functions of matches and later patterns count; new objects have their own columns."""
    made = translated(tmp_path, JSON)

    assert made.stubs == 0, made.notes
    assert '"n int, room string, level double, late bigint"' in made.text
    assert '"room string, level double"' in made.text


TEXTS = """
    static void run(DataStream<String> words) {
        Pattern<String, ?> p = Pattern.<String>begin("a").where(SimpleCondition.of(w -> w.length() > 1))
            .followedBy("b").where(new IterativeCondition<String>() {
                public boolean filter(String w, Context<String> c) throws Exception {
                    for (String before : c.getEventsForPattern("a")) {
                        if (w.equals(before + "!")) return true;
                    }
                    return c.getEventsForPattern("a").iterator().next().length() > 5;
                }
            });
        CEP.pattern(words, p).select(m -> m.get("a").get(0) + m.get("b").get(0).length()).print();
    }
"""


def test_events_that_are_plain_values(tmp_path):
    """Conditions and functions see the values, which the column ``value`` has."""
    made = translated(tmp_path, TEXTS)
    module = load(made)
    rows = [{"value": word} for word in ("ab", "b", "ab!", "longer", "c")]
    found = match(module.p_pattern(), rows)

    assert made.stubs == 0, made.notes
    assert [module.select_p(one) for one in found] == [("ab3",), ("longer1",)]
