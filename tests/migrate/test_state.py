# SPDX-License-Identifier: Apache-2.0
"""What objects hold when a condition is asked, which method a call means, and what is refused."""

from __future__ import annotations

import pytest

from pyflinkcep.migrate.check.compare import load
from pyflinkcep.migrate.migration import migrate
from pyflinkcep.testing import match

JOB = """
import java.util.*;
import lombok.*;
class Job {{
    static class Event {{
        public int n; public long w; public Long box; public String name;
        public List<String> tags; public List<Long> longs; public long at;
    }}
    record Pair(int a, Inner inner) {{}}
    record Inner(String text) {{}}
    static Object shape(Event e) {{ return new Pair(e.n, new Inner(e.name)); }}
    static final Predicate<Event> HIGH = e -> e.n > 6;
    static final Predicate<Event> EVEN = e -> e.n % 2 == 0;
    static SimpleCondition<Event> among(Integer... given) {{
        return SimpleCondition.of(e -> Arrays.asList(given).contains(e.n));
    }}
    static final Map<String, Integer> LATER = new HashMap<>();
    static {{ LATER.put("a", 7); }}
    record Checked(int least) {{ Checked {{ least = least + 1; }} }}
    static SimpleCondition<Event> late(int x) {{
        int y = x * 2;
        return SimpleCondition.of(e -> e.n > y);
    }}
    static int limit = 7;
    static int moving = 3;
    static boolean beyond(Event e) {{ return e.n > limit; }}
    static String kind(int x) {{ return "int"; }}
    static String kind(long x) {{ return "long"; }}
    static String kind(Object x) {{ return "object"; }}

    static class Base extends SimpleCondition<Event> {{
        protected int factor = 1;
        Base() {{ factor = 3; }}
        protected boolean check(int x) {{ return x * factor > 8; }}
        public boolean filter(Event e) {{ return check(e.n); }}
    }}
    static class Bare extends Base {{ }}
    static class Written extends Base {{ int own; Written(int own) {{ this.own = own; }}
        protected boolean check(int x) {{ return super.check(x + 1) || x == own; }} }}
    static class Block extends SimpleCondition<Event> {{
        int a = 1;
        {{ a = 5; }}
        public boolean filter(Event e) {{ return e.n > a; }}
    }}
    static class Twice extends SimpleCondition<Event> {{
        final int x, y;
        Twice(int x) {{ if (x < 0) throw new IllegalArgumentException("x"); this.x = x * 2; this.y = this.x + 2; }}
        public boolean filter(Event e) {{ return e.n > x && e.n < y; }}
    }}
    static class Several extends SimpleCondition<Event> {{
        final int least;
        Several(long x) {{ least = 100; }}
        Several(int x) {{ least = x; }}
        Several(String x) {{ least = x.length(); }}
        public boolean filter(Event e) {{ return e.n > least; }}
    }}
    @RequiredArgsConstructor static class Required extends SimpleCondition<Event> {{
        private static final long serialVersionUID = 42L;
        private final int low;
        private int high = 6;
        private final int step;
        public boolean filter(Event e) {{ return e.n > low && e.n < high && e.n % step == 0; }}
    }}
    static class Plain extends SimpleCondition<Event> {{
        private int count;
        public boolean filter(Event e) {{ return e.n > count; }}
    }}
    enum Color {{
        RED {{ int weight() {{ return 5; }} }}, GREEN, BLUE {{ int weight() {{ return n * 2; }} }};
        int n = 4;
        int weight() {{ return 1; }}
    }}
    enum Size {{ S(1), M(2) {{ public int getN() {{ return 20; }} }};
        private final int n; Size(int n) {{ this.n = n; }} public int getN() {{ return n; }} }}
    @Getter @AllArgsConstructor enum Shape {{ BOX(4, "b"), TRI(3, "t");
        private static final int ZERO = 0; private final int corners; private final String code; }}
    static Color color(Event e) {{ return Color.values()[e.n]; }}

    static class Setting extends SimpleCondition<Event> {{
        private int max = 3;
        void setMax(int max) {{ this.max = max; }}
        public boolean filter(Event e) {{ return e.n > max; }}
    }}
    static class Opened extends RichIterativeCondition<Event> {{
        int most = 3;
        public void open(Configuration c) {{ if (limit > 5) {{ most = 5; }} }}
        public boolean filter(Event e, Context<Event> c) {{ return e.n < most; }}
    }}
    static class Counting extends SimpleCondition<Event> {{
        private int count;
        public boolean filter(Event e) {{ count++; return e.n > count; }}
    }}
    static void later() {{ moving = 5; }}
    static void run(DataStream<Event> events) {{
        int limit = 2;
        int count = 9;
        int max = 8;
        int[] hits = {{0, 0}};
        List<String> seen = new ArrayList<>(Arrays.asList("q"));
        Setting set = new Setting();
        set.setMax(6);
        Pattern<Event, ?> p = Pattern.<Event>begin("a").where({condition});
        CEP.pattern(events, p).select(m -> m.get("a").get(0).n).print();
    }}
}}
"""
HOLDS = {
    "late(3)": {7, 8, 9},
    "new Base() { protected boolean check(int x) { return x == factor || x > 6; } }": {3, 7, 8, 9},
    "SimpleCondition.of(e -> { int k = 0; switch (e.n) { case 1: k += 5; break; case 2: k++; default: k += 2; } return k == 5 || k == 3; })": (
        {1, 2}
    ),
    "SimpleCondition.of(e -> beyond(e) || e.n < limit)": {0, 1, 8, 9},
    "new Bare()": {3, 4, 5, 6, 7, 8, 9},
    "new Base()": {3, 4, 5, 6, 7, 8, 9},
    "new Twice(3)": {7},
    "new Several(8)": {9},
    'new Several("123456")': {7, 8, 9},
    "new Required(1, 2)": {2, 4},
    "new Plain()": {1, 2, 3, 4, 5, 6, 7, 8, 9},
    "new SimpleCondition<Event>() { private int max; public boolean filter(Event e) { return e.n > max; } }": (
        {1, 2, 3, 4, 5, 6, 7, 8, 9}
    ),
    'SimpleCondition.of(e -> Shape.valueOf(e.n > 4 ? "BOX" : "TRI").getCorners() > 3)': (
        {5, 6, 7, 8, 9}
    ),
    'SimpleCondition.of(e -> kind(e.n).equals("int") && kind(e.w).equals("long") && e.n > 7)': (
        {8, 9}
    ),
    "SimpleCondition.of(e -> e.longs.contains(e.n) || e.longs.contains((long) e.n) && e.n > 2)": (
        {3}
    ),
    "SimpleCondition.of(e -> { List<Integer> own = new ArrayList<>(); own.add(e.n); own.add(3); return own.contains(3) && own.size() == 2 && own.get(0) > 7; })": (
        {8, 9}
    ),
    "SimpleCondition.of(e -> Duration.ofMillis(e.n - 5).toMillis() == 1 || Duration.ofMillis(e.n * 500L - 1500).getSeconds() == -1)": (
        {1, 2, 6}
    ),
}
HOLDS |= {
    "among(2, 5)": {2, 5},
    "among(4)": {4},
    "SimpleCondition.of(e -> { int[] sum = {0}; e.longs.forEach(x -> { if (x == e.n) return; sum[0] += x; }); return sum[0] == 2; })": (
        {3}
    ),
}
REFUSED = {
    "SimpleCondition.of(e -> Shape.BOX.compareTo(Shape.TRI) < e.n)": "compareTo()",
    'SimpleCondition.of(e -> ("" + Duration.ofMillis(e.n)).equals("PT1S"))': "the text of a Duration",
    "new Written(0)": "super.check()",
    "new Base() { protected boolean check(int x) { return x == factor || super.check(x - 4); } }": "super.check()",
    "SimpleCondition.of(HIGH.and(EVEN.negate())::test)": "HIGH.and(EVEN.negate())",
    "SimpleCondition.of(e -> HIGH.negate().test(e) && EVEN.or(HIGH).test(e))": "of a function",
    "SimpleCondition.of(e -> { int x; return (x = e.n * 2) > 4 && x < 13; })": "assignment expression",
    "new Block()": "statements outside of its methods",
    'SimpleCondition.of(e -> LATER.get("a") < e.n)': "LATER",
    "SimpleCondition.of(e -> { try { return e.n / 0 > 1; } catch (ArithmeticException x) { return true; } })": "catch",
    "SimpleCondition.of(e -> new Checked(e.n).least() > 3)": "statements in its constructor",
    "SimpleCondition.of(e -> { int k = 0; for (int i = 0; i < 3; i++) { switch (e.n) { case 1: if (i > 0) break; k += 5; break; case 2: k++; default: k += 2; } k++; } return k == 8 || k == 12; })": "break inside",
    "SimpleCondition.of(e -> { switch (e.n % 4) { default: return false; case 1: if (e.n > 4) break; case 2: return e.n < 6; } return e.n == 9; })": "break inside",
    "SimpleCondition.of(e -> { int i = 0; do { i += 2; } while (i < e.n); return i > 3; })": "do statement",
    "SimpleCondition.of(e -> { e.tags.stream().findFirst().ifPresent(t -> t.trim()); return true; })": "ifPresent",
    "SimpleCondition.of(e -> e.n < 3 && color(e).weight() > 4)": "methods of its own",
    "SimpleCondition.of(e -> e.n < 2 && Size.values()[e.n].getN() > 4)": "methods of its own",
    "SimpleCondition.of(e -> { List<List<String>> own = new ArrayList<>(); own.add(e.tags); own.get(0).add(e.name); return e.n > 1; })": "",
    "set": "max",
    "new Opened()": "most",
    "new Counting()": "count",
    "SimpleCondition.of(e -> { hits[0] = hits[0] + 1; return hits[0] < 4; })": "",
    "SimpleCondition.of(e -> { seen.add(e.name); return seen.size() < 4; })": "kept from call to call",
    "SimpleCondition.of(e -> seen.add(e.name))": "kept from call to call",
    'SimpleCondition.of(e -> { e.tags.add("x"); return e.tags.size() > 2; })': "kept from call to call",
    'SimpleCondition.of(e -> { List<String> same = e.tags; same.add("x"); return same.size() > 2; })': (
        "kept from call to call"
    ),
    "SimpleCondition.of(e -> kind(unknown(e)) == null)": "",
    "SimpleCondition.of(e -> e.n > Double.SIZE)": "Double.SIZE",
}


def translated(tmp_path, condition):
    """Return the translated file of a job with a condition."""
    file = tmp_path / "Job.java"
    file.write_text(JOB.format(condition=condition), encoding="utf-8")
    return migrate([str(file)]).report.files[0]


@pytest.mark.parametrize(("condition", "numbers"), HOLDS.items())
def test_conditions_hold_where_javas_do(tmp_path, condition, numbers):
    """Fields are what constructors, blocks and Lombok make them; overloads, overrides, cases too."""
    made = translated(tmp_path, condition)
    rows = [
        {"n": n, "w": n, "box": n, "name": "a", "tags": ["t"], "longs": [2, 3], "at": n}
        for n in range(10)
    ]

    assert made.stubs == 0, made.notes
    found = match(load(made).p_pattern(), rows, timestamp="at")
    assert {one["a"][0].n for one in found} == numbers


def test_a_field_that_is_assigned_while_the_program_runs_is_a_parameter(tmp_path):
    """Its first value is not taken for the only one."""
    made = translated(tmp_path, "SimpleCondition.of(e -> e.n > moving)")
    rows = [{"n": n, "at": n} for n in range(10)]

    assert len(match(load(made).p_pattern(moving=6), rows, timestamp="at")) == 3


@pytest.mark.parametrize(("condition", "reason"), REFUSED.items())
def test_what_changes_from_call_to_call_is_refused(tmp_path, condition, reason):
    """State that conditions keep, values assigned later and unknown names are never guessed."""
    made = translated(tmp_path, condition)

    assert made.stubs == 1, made.text
    assert any("not translated" in note.what and reason in note.what for note in made.notes)
