# SPDX-License-Identifier: Apache-2.0
"""What the translator does not follow is marked: with a mark on each construct, and with each understanding switched off."""

import inspect

import pytest
import tree_sitter
import tree_sitter_java

from pyflinkcep.migrate.chains.walker import Walker
from pyflinkcep.migrate.check.compare import load
from pyflinkcep.migrate.migration import migrate
from pyflinkcep.testing import match

JOB = """
public class Job {{
    public static class Ev {{ public String user; public int n; public long at; }}
    {members}
    public static void main(String[] args) throws Exception {{
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Ev> evs = env.fromElements(new Ev("a", 1, 1L));
        DataStream<Ev> others = env.fromElements(new Ev("b", 2, 2L));
        {body}
    }}
}}
"""
BEGUN = 'Pattern<Ev, ?> p = Pattern.<Ev>begin("a").where(SimpleCondition.of(e -> e.n > 1));'
USED = 'CEP.pattern(evs, p).select(m -> "x").print();'
MORE = "SimpleCondition.of(e -> e.n > 2)"
LIST = 'List<String> l = new ArrayList<>(); l.add("b"); l.add("c");'
EACH = "for (String k : l) { p = p.next(k); }"

FOLLOWED = {
    "array": ("", BEGUN + 'String[] l = new String[] {"b", "c"}; p = p.next(l[1]);' + USED, "a c"),
    "cast": ("", BEGUN + "p = ((Pattern<Ev, ?>) p).next((String) \"b\");" + USED, "a b"),
    "if": ("", BEGUN + 'if (1 + 1 == 2) { p = p.next("b"); } else { p = p.next("c"); }' + USED, "a b"),
    "else": ("", BEGUN + 'if (1 == 2) { p = p.next("b"); } else { p = p.next("c"); }' + USED, "a c"),
    "for": ("", BEGUN + 'for (int i = 0; i < 2; i++) { p = p.next("s" + i); }' + USED, "a s0 s1"),
    "for of 250": ("", BEGUN + 'for (int i = 0; i < 250; i++) { p = p.next("s" + i); }' + USED,
                   " ".join(["a", *(f"s{n}" for n in range(250))])),
    "continue": ("", BEGUN + 'for (int i = 0; i < 3; i++) { if (i == 1) continue; p = p.next("s" + i); }'
                 + USED, "a s0 s2"),
    "break": ("", BEGUN + 'for (int i = 0; i < 4; i++) { if (i == 2) break; p = p.next("s" + i); }' + USED,
              "a s0 s1"),
    "label": ("", BEGUN + 'all: for (int i = 0; i < 4; i++) { for (;;) { p = p.next("s" + i); break all; } }'
              + USED, "a s0"),
    "while": ("", BEGUN + 'int i = 0; while (i < 2) { p = p.next("s" + i); ++i; }' + USED, "a s0 s1"),
    "do": ("", BEGUN + 'int i = 0; do { p = p.next("s" + i); i += 1; } while (i < 2);' + USED, "a s0 s1"),
    "finally": ("", BEGUN + 'try { p = p.next("b"); } finally { p = p.next("c"); }' + USED, "a b c"),
    "resources": ("", BEGUN + 'try (In in = new In()) { p = p.next("b"); }' + USED, "a b"),
    "synchronized": ("", BEGUN + 'synchronized (env) { p = p.next("b"); }' + USED, "a b"),
    "switch": ("", BEGUN + 'switch ("y") { default: p = p.next("d"); break; case "y": p = p.next("y"); }'
               + USED, "a y"),
    "switch of a value": ("", 'Pattern<Ev, ?> p = switch ("y") { case "x" -> Pattern.<Ev>begin("x");'
                          ' default -> { yield Pattern.<Ev>begin("y"); } };' + USED, "y"),
    "ternary": ("", BEGUN + 'p = 1 > -2 ? p.next("b") : p.next("c");' + USED, "a b"),
    "usage": ("", BEGUN + "if (args.length == 0) { System.err.println(1); return; } "
              f"p.where({MORE});" + USED, "a"),
    "throw": ("", BEGUN + 'if (1 > 2) { throw new Bad(); } p = p.next("b");' + USED, "a b"),
    "field": ("static class H { Pattern<Ev, ?> p; H() { this.p = Pattern.<Ev>begin(\"a\"); }"
              ' void more() { p = p.next("b"); } H self() { return this; } }',
              "H h = new H(); h.more(); CEP.pattern(evs, h.p).select(m -> \"x\").print();", "a b"),
    "static field": ('static Pattern<Ev, ?> p = Pattern.<Ev>begin("a"); static void more() { p = p.next("b"); }',
                     "more();" + USED, "a b"),
    "list": ("static void fill(List<String> l) { l.add(\"d\"); }", BEGUN + LIST + "fill(l);" + EACH + USED,
             "a b c d"),
    "alias": ("", BEGUN + 'List<String> l = new ArrayList<>(); List<String> m = l; m.add("b");' + EACH + USED,
              "a b"),
    "copy": ("", BEGUN + 'List<String> l = new ArrayList<>(List.of("b")); List<String> m = new ArrayList<>(l);'
             ' m.add("c");' + EACH + USED, "a b"),
}  # fmt: skip
"""Programs that are followed to their end, with the stages of their pattern."""

LEFT = {
    "switch": ("", BEGUN + 'switch (args[0]) { case "x": p = p.next("b"); break; default: p.where(' + MORE + "); }" + USED),
    "switch of a value": ("", 'Pattern<Ev, ?> p = switch (args[0]) { case "x" -> Pattern.<Ev>begin("b");'
                          ' default -> Pattern.<Ev>begin("c"); };' + USED),
    "switch that returns": ("static Pattern<Ev, ?> of(String k) { switch (k) { case \"x\": return"
                            ' Pattern.<Ev>begin("b"); default: return Pattern.<Ev>begin("c"); } }', ""),
    "lambda": ("", 'Pattern<Ev, ?>[] p = new Pattern[] {Pattern.<Ev>begin("a")};'
               ' List.of("b", "c").forEach(k -> p[0] = p[0].next(k));'
               ' CEP.pattern(evs, p[0]).select(m -> "x").print();'),
    "ternary with null": ("static Pattern<Ev, ?> build(List<String> ks) { Pattern<Ev, ?> whole = null;"
                          " for (String k : ks) { Pattern<Ev, ?> one = Pattern.<Ev>begin(k);"
                          " whole = whole == null ? one : whole.next(one); } return whole; }", ""),
    "one of two streams": ("", BEGUN + "DataStream<Ev> s; if (args.length > 1) { s = evs; } else { s = others; }"
                           'CEP.pattern(s, p).select(m -> "x").print();'),
    "one of two streams, as a value": ("", BEGUN + "CEP.pattern(args.length > 1 ? evs : others, p)"
                                       '.select(m -> "x").print();'),
    "a sink if": ("", BEGUN + 'DataStream<String> f = CEP.pattern(evs, p).select(m -> "x");'
                  " if (args.length > 1) { f.print(); }"),
    "a sink of a switch": ("", BEGUN + 'DataStream<String> f = CEP.pattern(evs, p).select(m -> "x"); f.print();'
                           ' switch (args[0]) { case "k": f.print(); }'),
    "a sink in a lambda": ("", BEGUN + 'DataStream<String> f = CEP.pattern(evs, p).select(m -> "x"); f.print();'
                           " names.forEach(n -> f.print(n));"),
    "many rounds": ("", BEGUN + 'for (int i = 0; i < 9999; i++) { p = p.next("s" + i); }' + USED),
    "many calls": ("", 'Pattern<Ev, ?> p = Pattern.<Ev>begin("a")' + '.next("b")' * 10_000 + ";" + USED),
    "deep": ("static Pattern<Ev, ?> b(int n) { if (n == 0) return Pattern.<Ev>begin(\"a\");"
             ' return b(n - 1).next("s" + n); }', 'CEP.pattern(evs, b(40)).select(m -> "x").print();'),
    "a break that depends": ("", BEGUN + "for (int i = 0; i < 4; i++) { if (args.length == i) break;"
                             ' p = p.next("s" + i); }' + USED),
    "a return that depends": ("static Pattern<Ev, ?> b(boolean f, boolean g) { Pattern<Ev, ?> p ="
                              ' Pattern.<Ev>begin("a"); if (f) { if (g) return p; } p = p.next("b");'
                              " return p; }", ""),
    "iterator": ("static Pattern<Ev, ?> b(List<String> l) { Pattern<Ev, ?> p = Pattern.<Ev>begin(\"a\");"
                 " Iterator<String> it = l.iterator(); while (it.hasNext()) { p = p.next(it.next()); }"
                 " return p; }", ""),
    "a list that changes": ("", BEGUN + LIST + "l.remove(0);" + EACH + USED),
    "a list that is handed over": ("", BEGUN + LIST + "Collections.reverse(l);" + EACH + USED),
    "a map": ("static Map<String, Pattern<Ev, ?>> all = new HashMap<>();", 'all.put("a", Pattern.<Ev>begin("a"));'
              f"for (Pattern<Ev, ?> p : all.values()) {{ {USED} }}"),
    "a stream of patterns": ("", 'Pattern<Ev, ?> p = Stream.of(Pattern.<Ev>begin("a"), Pattern.<Ev>begin("b"))'
                             ".reduce((a, b) -> a.next(b)).get();" + USED),
    "a supplier": ("", 'Supplier<Pattern<Ev, ?>> s = () -> Pattern.<Ev>begin("a");'
                   'CEP.pattern(evs, s.get()).select(m -> "x").print();'),
    "a static block": ('static Pattern<Ev, ?> P; static { P = Pattern.<Ev>begin("a").next("b"); }',
                       'CEP.pattern(evs, P).select(m -> "x").print();'),
    "a registry": ("", BEGUN + 'Registry.register("x", p);'),
    "what is caught": ("", 'Pattern<Ev, ?> p; try { p = Pattern.<Ev>begin("a"); } catch (Bad e) {'
                       ' p = Pattern.<Ev>begin("b"); }' + USED),
    "a field of an object": ("static class H { Pattern<Ev, ?> p; }", 'H h = new H(); h.p = Pattern.<Ev>begin("a");'
                             ' if (args.length > 1) h.p = h.p.next("b");'
                             ' CEP.pattern(evs, h.p).select(m -> "x").print();'),
    "a thread": ("", BEGUN + f"new Thread(new Runnable() {{ public void run() {{ {USED} }} }}).start();"),
    "a stream from elsewhere": ("", BEGUN + 'CEP.pattern(Sources.of(env), p).select(m -> "x").print();'),
    "a sink of a stream that is given": ('static void run(DataStream<Ev> in) { Pattern<Ev, ?> p ='
                                         ' Pattern.<Ev>begin("a"); CEP.pattern(in, p).select(m -> "x")'
                                         ".addSink(new S()); }", ""),
}  # fmt: skip
"""Programs with something that is not followed."""


def translated(tmp_path, members, body):
    """Return the report of a program."""
    file = tmp_path / "Job.java"
    file.write_text(JOB.format(members=members, body=body), encoding="utf-8")
    return migrate([str(file)]).report


def stages(report):
    """Return the stages of the pattern; None if its function has parameters, which are required."""
    make = getattr(load(report.files[0]), next(iter(report.files[0].patterns)))
    if inspect.signature(make).parameters:
        return None
    pattern = make()
    names = []
    while pattern is not None:
        names.append(pattern.getName())
        pattern = pattern.getPrevious()
    return " ".join(reversed(names))


@pytest.mark.parametrize("what", FOLLOWED)
def test_what_is_followed(tmp_path, what):
    """Control flow that the source decides is followed to its end, and nothing is left to write."""
    members, body, expected = FOLLOWED[what]
    report = translated(tmp_path, members, body)

    assert (stages(report), report.status) == (expected, 0), report.as_text()


@pytest.mark.parametrize("what", LEFT)
def test_what_is_not_followed_is_marked(tmp_path, what):
    """What is not followed has a note, the status is not 0, and a pattern that needs it raises."""
    report = translated(tmp_path, *LEFT[what])

    assert report.status != 0, report.files[0].text
    assert [*report.files[0].notes, *report.files[0].errors] != []
    assert "no pattern" not in report.as_text()


def handlers():
    """Return the methods that follow a node of Java's tree."""
    language = tree_sitter.Language(tree_sitter_java.language())
    kinds = {language.node_kind_for_id(at) for at in range(language.node_kind_count)}
    found = {name for one in Walker.__mro__ for name in vars(one) if name.startswith("_")}
    return sorted(name for name in found if name[1:] in kinds)


@pytest.mark.parametrize("handler", handlers())
def test_each_understanding_switched_off(tmp_path, monkeypatch, handler):
    """Without the understanding of a construct, each program either comes out the same or is marked."""
    for one in Walker.__mro__:
        if handler in vars(one):
            monkeypatch.delattr(one, handler)
    silent = {}
    for what, (members, body, expected) in FOLLOWED.items():
        if what != "for of 250":
            report = translated(tmp_path, members, body)
            if report.status == 0 and stages(report) not in (expected, None):
                silent[what] = report.files[0].text

    assert silent == {}


def test_values_of_one_name_are_two_parameters(tmp_path):
    """Two values of run time, or two tests, that have one name in Java are two parameters."""
    add = 'static Pattern<Ev, ?> add(Pattern<Ev, ?> p, int n) { return p.next("x" + n).times(n); }'
    body = (
        BEGUN
        + "p = add(p, Integer.parseInt(args[0])); p = add(p, Integer.parseInt(args[1]));"
        + ('if (one.isOn()) { p = p.next("b"); } if (other.isOn()) { p = p.next("c"); }' + USED)
    )
    report = translated(tmp_path, add, body)

    assert "n: int, n_2: int, is_on: bool, is_on_2: bool" in report.files[0].text
    assert "argparse.BooleanOptionalAction" in report.files[0].text


def test_a_return_in_a_method_ends_it(tmp_path):
    """A method that returns early changes the pattern that it is given only if it does not."""
    more = f"static void more(Pattern<Ev, ?> p, boolean f) {{ if (f) return; p.where({MORE}); }}"
    report = translated(tmp_path, more, BEGUN + "more(p, args.length > 1);" + USED)
    make = load(report.files[0]).p_pattern
    rows = [{"user": "a", "n": 2, "at": 1}]

    assert [len(match(make(ends), rows)) for ends in (True, False)] == [1, 0]
