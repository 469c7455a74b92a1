# SPDX-License-Identifier: Apache-2.0
"""What the translator does not follow is marked: with a mark on each construct, and with each understanding switched off."""

import importlib
import inspect
import pkgutil
import re
import types

import pytest
import tree_sitter
import tree_sitter_java

from pyflinkcep.migrate import meaning, writing
from pyflinkcep.migrate.chains.walker import Walker
from pyflinkcep.migrate.check.compare import load
from pyflinkcep.migrate.java.source import parse_java
from pyflinkcep.migrate.meaning import library
from pyflinkcep.migrate.meaning.reader import Reader
from pyflinkcep.migrate.migration import migrate
from pyflinkcep.migrate.writing import settings
from pyflinkcep.testing import match

pytestmark = pytest.mark.slow

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
    "while": ("", BEGUN + 'int i = 0; while (i < 2) { p = p.next("s" + i); ++i; }' + USED, "a s0 s1"),
    "finally": ("", BEGUN + 'try { p = p.next("b"); } finally { p = p.next("c"); }' + USED, "a b c"),
    "synchronized": ("", BEGUN + 'synchronized (env) { p = p.next("b"); }' + USED, "a b"),
    "ternary": ("", BEGUN + 'p = 1 > -2 ? p.next("b") : p.next("c");' + USED, "a b"),
    "usage": ("", BEGUN + "if (args.length == 0) { System.err.println(1); return; } "
              f"p.where({MORE});" + USED, "a"),
    "throw": ("", BEGUN + 'if (1 > 2) { throw new Bad(); } p = p.next("b");' + USED, "a b"),
    "field": ("static class H { Pattern<Ev, ?> p; H() { this.p = Pattern.<Ev>begin(\"a\"); }"
              ' void more() { p = p.next("b"); } H self() { return this; } }',
              "H h = new H(); h.more(); CEP.pattern(evs, h.p).select(m -> \"x\").print();", "a b"),
    "constructors": ('static class Base { final String name; Base(String n) { this(n, 1); }'
                     ' Base(String n, int k) { name = n + k; } }'
                     " static class H extends Base { final int more; H(String n) { super(n); more = n.length(); }"
                     ' Pattern<Ev, ?> p() { return Pattern.<Ev>begin(name).next(name + more); } }',
                     'CEP.pattern(evs, new H("ab").p()).select(m -> "x").print();', "ab1 ab12"),
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
    "do": ("", BEGUN + 'int i = 0; do { p = p.next("s" + i); i += 1; } while (i < 2);' + USED),
    "resources": ("", BEGUN + 'try (In in = new In()) { p = p.next("b"); }' + USED),
    "switch of a constant": ("", BEGUN + 'switch ("y") { default: p = p.next("d"); break; case "y": p = p.next("y"); }'
                             + USED),
    "switch of a constant as a value": ("", 'Pattern<Ev, ?> p = switch ("y") { case "x" -> Pattern.<Ev>begin("x");'
                                        ' default -> { yield Pattern.<Ev>begin("y"); } };' + USED),
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
    "a label": ("", BEGUN + 'all: for (int i = 0; i < 4; i++) { for (;;) { p = p.next("s" + i); break all; } }'
              + USED),
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
    "a test that assigns": ("", BEGUN + 'if (check(p = p.next("b"))) { p = p.next("c"); }' + USED),
    "a condition that is not read": ("", BEGUN + "p = p.times(Counts.of(e -> e.n));" + USED),
    "steps after a stream that is given": ('static DataStream<Ev> run(DataStream<Ev> in) { return CEP.pattern(in,'
                                           ' Pattern.<Ev>begin("a")).select(m -> m.get("a").get(0))'
                                           ".filter(e -> e.n > 1); }", ""),
    "a strategy that is given": ("static WatermarkStrategy<Ev> w;", "DataStream<Ev> s = env.fromSource(k, w, \"k\"); "
                                 + BEGUN + 'CEP.pattern(s, p).select(m -> "x").print();'),
    "a call of a strategy": ("", 'DataStream<Ev> s = evs.assignTimestampsAndWatermarks(WatermarkStrategy'
                             ".<Ev>forMonotonousTimestamps().withTimestampAssigner((e, t) -> e.at).more(1)); "
                             + BEGUN + 'CEP.pattern(s, p).select(m -> "x").print();'),
    "a text that grows in a value": ("", BEGUN + "p = p.where(SimpleCondition.of(e -> { StringBuilder b = new"
                                     " StringBuilder(); String t = b.append(e.user).toString();"
                                     " return t.equals(b.toString()); }));" + USED),
    "calls of a sink": ("", BEGUN + 'CEP.pattern(evs, p).select(m -> "x").sinkTo(KafkaSink.<String>builder()'
                        '.setBootstrapServers("h:1").setRecordSerializer(new Own()).build());'),
    "properties from elsewhere": ("", "DataStream<Ev> s = env.addSource(new FlinkKafkaConsumer<Ev>(\"t\", new D(),"
                                  " Config.kafka())); " + BEGUN + 'CEP.pattern(s, p).select(m -> "x").print();'),
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


EV = """public static class Ev { public String user; public int n; public long at; public double price;
    public Kind kind; public Ev next; public int getN() { return n; } }
    public enum Kind { RED, BLUE; }"""
READS = (
    'KafkaSource<Ev> k = KafkaSource.<Ev>builder().setBootstrapServers("h:1").setTopics("t").setGroupId("g")'
    '.setStartingOffsets(OffsetsInitializer.earliest()).setProperty("security.protocol", "SSL")'
    ".setValueOnlyDeserializer(new D()).build();"
)
TIMED = (
    "DataStream<Ev> evs = env.fromSource(k, WatermarkStrategy.<Ev>forBoundedOutOfOrderness("
    'Duration.ofSeconds(5)).withTimestampAssigner((e, t) -> e.at), "k");'
)
FOUND = BEGUN + 'DataStream<String> f = CEP.pattern(evs, p).select(m -> m.get("a").get(0).user);'

CONDITIONS = {
    "operators": "return e.n * 2 + 1 - e.n / 3 % 2 > 3 && (e.n & 1) == 1 || !(-e.n > ~e.n);",
    "choice": "return (e.n > 2 ? (int) e.price : 5) > 4 && (Object) e instanceof Ev;",
    "switch": 'int x = switch (e.user) { case "a" -> 1; default -> { yield 2; } };'
    " switch (e.kind) { case RED: return x > 1; default: break; } return e.n > 7;",
    "loops": "int s = 0; for (int i = 0; i < e.n; i++) { if (i == 2) continue; if (i > 5) break; s += i; }"
    " while (s < 4) { s = s + 2; } while (s > 4) { --s; } return s > 0;",
    "for each": 'for (Ev o : ctx.getEventsForPattern("a")) { if (o.n > e.n) { return true; } } return false;',
    "errors": "try { return Integer.parseInt(e.user) > 2; } catch (NumberFormatException x) { return false; }",
    "throw": 'if (e.n < 0) { throw new IllegalStateException("neg"); } { assert e.n > 0; } return e.n > 1;',
    "arrays": "int[] a = new int[] {1, 2}; int[] b = {4}; return a[e.n % 2] > 1 && a.length == 2 && b[0] == 4;",
    "label": "boolean b = false; out: for (int i = 0; i < 3; i++) { if (i == e.n) { b = true; } } return b;",
    "null": 'return e.user != null && !e.user.isEmpty() && Objects.equals(e.user, "a") && e.next == null;',
    "texts": 'return e.user.toLowerCase().trim().startsWith("a") && e.user.substring(1).contains("b")'
    " && e.user.indexOf(\"c\") >= 0 && e.user.charAt(0) != 'z' || e.user.length() < 9;",
    "numbers": "return Math.abs(e.price) > 1.5 && Math.max(e.n, 2) > Math.sqrt(e.price)"
    " && Math.round(e.price) != 3L && Double.parseDouble(e.user) < Integer.MAX_VALUE;",
    "lists": "List<Integer> l = new ArrayList<>(); l.add(1); l.add(e.n); Collections.sort(l);"
    " l.removeIf(x -> x > 8); return l.size() == 2 && l.contains(5) && l.get(0) == 1;",
    "maps": 'Map<String, Integer> m = new HashMap<>(); m.put("a", 3); m.merge("a", 2, Integer::sum);'
    " for (Map.Entry<String, Integer> x : m.entrySet()) { if (x.getValue() > e.n"
    " && x.getKey().equals(e.user)) return true; } return m.getOrDefault(e.user, 0) > 4;",
    "sets": 'Set<String> s = new HashSet<>(Arrays.asList("a")); if (s.add(e.user)) { return false; } return true;',
    "updates": "int i = e.n; int j = i++ + ++i; i += 2; j -= i--; return i > j && this.small(e); }"
    " boolean small(Ev e) { return e.getN() < 10;",
    "builder": 'StringBuilder b = new StringBuilder(); b.append(e.user).append(1); return b.toString().equals("a1");',
    "formats": 'return String.format("%s-%d", e.user, e.n).equals("a-3") || String.join(",", e.user).equals("q");',
    "optional": "return Optional.ofNullable(e.user).map(u -> u.length()).orElse(0) > 1;",
    "times": "return Instant.ofEpochMilli(e.at).isAfter(Instant.ofEpochMilli(1000L))"
    " && Duration.ofMillis(e.at).toMinutes() < 5 && TimeUnit.MILLISECONDS.toSeconds(e.at) > 0;",
    "decimals": 'return new BigDecimal("1.5").add(new BigDecimal("2")).compareTo(BigDecimal.TEN) > 0;',
    "letters": 'int s = 0; for (String w : e.user.split("b")) { s += w.length(); }'
    " for (char c : e.user.toCharArray()) { if (Character.isDigit(c)) { s++; } } return s > 2;",
    "streams": 'return Arrays.asList("a").stream().filter(x -> x.length() > 0).map(x -> x + "c")'
    ".anyMatch(x -> x.equals(e.user)) || List.of(1, 2).stream().skip(1).limit(3).distinct().count() == e.n;",
}
"""Bodies of conditions, for each construct that is read."""

JOBS = {
    "kafka": (READS + TIMED + FOUND + "f.print();", ""),
    "properties": (
        'Properties q = new Properties(); q.setProperty("bootstrap.servers", "h:1"); q.put("acks", "1");'
        ' DataStream<Ev> evs = env.addSource(new FlinkKafkaConsumer<Ev>("t", new D(), q))'
        ".assignTimestampsAndWatermarks(new BoundedOutOfOrdernessTimestampExtractor<Ev>(Time.seconds(3)) {"
        " public long extractTimestamp(Ev e) { return e.at; } });" + FOUND + "f.print();",
        "",
    ),
    "generator": (
        READS + 'DataStream<Ev> evs = env.fromSource(k, WatermarkStrategy.noWatermarks(), "k")'
        ".assignTimestampsAndWatermarks(new G());" + FOUND + "f.print();",
        "static class G implements AssignerWithPeriodicWatermarks<Ev> { private final long lag = 3500;"
        " private long max; public long extractTimestamp(Ev e, long p) { max = e.at; return e.at; }"
        " public Watermark getCurrentWatermark() { return new Watermark(max - lag); } }",
    ),
    "ascending": (
        READS + 'DataStream<Ev> evs = env.fromSource(k, WatermarkStrategy.noWatermarks(), "k")'
        ".assignTimestampsAndWatermarks(new AscendingTimestampExtractor<Ev>() {"
        " public long extractAscendingTimestamp(Ev e) { return e.at; } });" + FOUND + "f.print();",
        "",
    ),
    "kafka sink": (
        READS + TIMED + FOUND + "f.sinkTo(KafkaSink.<String>builder().setBootstrapServers("
        '"h:1").setProperty("sasl.jaas.config", "x").setRecordSerializer(KafkaRecordSerializationSchema'
        ".builder().setTopic(TOPIC).setValueSerializationSchema(new SimpleStringSchema()).build()).build());",
        'static final String TOPIC = "out";',
    ),
    "producer": (
        READS
        + TIMED
        + 'Properties q = new Properties(); q.setProperty("bootstrap.servers", "h:1");'
        ' q.put("acks", "all");'
        + FOUND
        + 'f.addSink(new FlinkKafkaProducer<>("out", new SimpleStringSchema(), q));',
        "",
    ),
    "files": (
        READS + TIMED + FOUND + 'f.sinkTo(FileSink.forRowFormat(new Path("o"),'
        ' new SimpleStringEncoder<String>()).build()); f.writeAsText("x");',
        "",
    ),
    "statement": (
        'tEnv.executeSql("CREATE TABLE T (id INT, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts -'
        " INTERVAL '5' SECOND) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json',"
        " 'properties.bootstrap.servers' = 'h:1', 'scan.startup.mode' = 'earliest-offset')\");"
        ' Table r = tEnv.sqlQuery("SELECT * FROM T MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts'
        ' MEASURES A.n AS n PATTERN (A) DEFINE A AS n > 1)"); tEnv.toDataStream(r).print();',
        "",
    ),
}
"""Bodies of jobs, for each source, sink and time that is read, with the members that they need."""

PROGRAMS = {
    **{
        what: f'public class Job {{ {EV} static Pattern<Ev, ?> p() {{ return Pattern.<Ev>begin("a").where('
        f"new IterativeCondition<Ev>() {{ public boolean filter(Ev e, Context<Ev> ctx) {{ {body} }} }}); }} }}"
        for what, body in CONDITIONS.items()
    },
    **{
        what: f"public class Job {{ {EV} {members} public static void main(String[] args) {{"
        " StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();"
        f" {body} }} }}"
        for what, (body, members) in JOBS.items()
    },
}
OF_PYTHON = frozenset(
    [
        "_OPPOSITE",
        "_TURNED",
        "_TYPES",
        "_NEVER_NULL",
        "_SHORT",
        "_SQL",
        "_ZEROS",
        "_NULLABLE",
        "_BITS",
        "_ERRORS",
    ]
)
"""Tables that say nothing of Java's names: how what is understood is written."""


def written_of(tmp_path, java):
    """Return the status and the module of a program; an error that is raised is no silence."""
    file = tmp_path / "Job.java"
    file.write_text(java, encoding="utf-8")
    try:
        report = migrate([str(file)]).report
    except Exception:
        return 2, ""
    return report.status, report.files[0].text


@pytest.fixture(scope="module")
def understood(tmp_path_factory):
    """Return the module of each program; all of them are translated."""
    folder = tmp_path_factory.mktemp("understood")
    found = {what: written_of(folder, java) for what, java in PROGRAMS.items()}
    assert [what for what, (status, _) in found.items() if status] == []
    return {what: text for what, (_, text) in found.items()}


def words_of(java):
    """Return the words and the kinds of nodes of a program."""
    found, waiting = set(re.findall(r"[\w.-]+", java)) | set(re.findall(r"\w+", java)), []
    waiting.append(parse_java(java).root)
    while waiting:
        node = waiting.pop()
        found.add(node.type)
        waiting += node.children
    return found


WORDS = {what: words_of(java) for what, java in PROGRAMS.items()}


def modules_of(*rooms):
    """Return the modules of rooms."""
    return [
        importlib.import_module(f"{room.__name__}.{one.name}")
        for room in rooms
        for one in pkgutil.iter_modules(room.__path__)
    ]


MOST = 6
"""Of how many programs with a name it is looked at: what most have is what is around all of them."""


def silent_without(tmp_path, understood, of):
    """Return the programs with some words that come out otherwise, and without a mark."""
    having = [what for what in PROGRAMS if of <= WORDS[what]]
    found = {}
    for what in having[:: -(-len(having) // MOST) or 1]:
        status, text = written_of(tmp_path, PROGRAMS[what])
        if status == 0 and text != understood[what]:
            found[what] = text
    return found


@pytest.mark.parametrize("handler", sorted(
    {name for one in Reader.__mro__ for name in vars(one) if name[0] == "_" and name[1:] in set().union(*WORDS.values())}
))  # fmt: skip
def test_each_expression_switched_off(tmp_path, monkeypatch, understood, handler):
    """Without the reading of an expression of Java, no condition changes without a mark."""
    for one in Reader.__mro__:
        if handler in vars(one):
            monkeypatch.delattr(one, handler)

    assert silent_without(tmp_path, understood, {handler[1:]}) == {}


def tables():
    """Yield the tables of what is understood, with the module and the name that they have."""
    for module in modules_of(meaning, writing):
        for name, table in vars(module).items():
            if name.startswith("__") or name in OF_PYTHON or not table:
                continue
            if isinstance(table, dict | tuple | frozenset) and all(
                isinstance(key, str | tuple) for key in table
            ):
                yield module, name, table


def key_words(key, table):
    """Return the words of a key: a name, or a class and its method; of methods of objects no class."""
    parts = key[1:] if table is library.METHODS else key if isinstance(key, tuple) else (key,)
    return {str(part).rpartition(".")[2] for part in parts if not isinstance(part, int)}


@pytest.mark.parametrize("room", [meaning, writing], ids=["meaning", "writing"])
def test_each_name_switched_off(tmp_path, monkeypatch, understood, room):
    """Without a row of a table of Java's or Flink's names, nothing changes without a mark."""
    silent = {}
    for module, name, table in tables():
        if not module.__name__.startswith(room.__name__):
            continue
        for key in list(table):
            words = key_words(key, table)
            if not any(words <= have for have in WORDS.values()):
                continue
            with monkeypatch.context() as patch:
                if isinstance(table, dict):
                    patch.delitem(table, key)
                else:
                    fewer = type(table)(one for one in table if one != key)
                    for other in modules_of(meaning, writing):
                        for same in [at for at, held in vars(other).items() if held is table]:
                            patch.setattr(other, same, fewer)
                found = silent_without(tmp_path, understood, words)
            silent |= {(module.__name__, name, key, what): text for what, text in found.items()}

    assert silent == {}


def without(code, word):
    """Return code that knows a word no more."""

    def changed(value):
        if isinstance(value, str):
            return "no word" if value == word else value
        if isinstance(value, tuple | frozenset):
            return type(value)(changed(one) for one in value)
        return without(value, word) if isinstance(value, types.CodeType) else value

    return code.replace(co_consts=tuple(changed(value) for value in code.co_consts))


def said(code):
    """Yield the words that code compares with."""
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from said(value)
        else:
            yield from value if isinstance(value, tuple | frozenset) else (value,)


OF_SPARK = ("reader", "writer", "kafka")
"""The functions that write a job of Spark: their words are Spark's."""


def test_each_source_sink_and_time_switched_off(tmp_path, monkeypatch, understood):
    """Without a word by which jobs are read, no setting of a job is lost without a mark."""
    silent = {}
    for name, function in vars(settings).items():
        if not isinstance(function, types.FunctionType) or function.__module__ != settings.__name__:
            continue
        if name in OF_SPARK:
            continue
        for word in {one for one in said(function.__code__) if isinstance(one, str)}:
            if any(word in have for have in WORDS.values()):
                with monkeypatch.context() as patch:
                    patch.setattr(function, "__code__", without(function.__code__, word))
                    found = silent_without(tmp_path, understood, {word})
                silent |= {(name, word, what): text for what, text in found.items()}

    assert silent == {}


def job(tmp_path, what, **changes):
    """Return the report of one of the programs, with other texts in it."""
    java = PROGRAMS[what]
    for old, new in changes.values():
        assert old in java
        java = java.replace(old, new)
    (tmp_path / "Job.java").write_text(java, encoding="utf-8")
    return migrate([str(tmp_path)]).report


@pytest.mark.parametrize("what", ["kafka sink", "producer"])
def test_settings_of_a_sink(tmp_path, what):
    """The settings of a sink of Kafka are options: those of its builder, and of its properties."""
    text = job(tmp_path, what).files[0].text.split("writeStream")[1]

    expected = {
        "kafka sink": ["bootstrap.servers", "h:1", "sasl.jaas.config", "x"],
        "producer": ["bootstrap.servers", "h:1", "acks", "all"],
    }[what]
    for name, value in zip(expected[::2], expected[1::2], strict=True):
        assert f'.option("kafka.{name}", "{value}")' in text
    assert '.option("topic", "out")' in text


def test_a_class_with_the_name_of_a_type_variable(tmp_path):
    """T is a type variable unless a class is called so."""
    java = (
        "public class Job { public static class T { public int n; } static void run(StreamExecutionEnvironment env) {"
        ' DataStream<String> s = env.addSource(new FlinkKafkaConsumer<T>("t", new D(), q)).map(x -> "a");'
        ' CEP.pattern(s, Pattern.<String>begin("a")).select(m -> "x").print(); } }'
    )
    assert 'T = "n int"' in written_of(tmp_path, java)[1]
    assert 'T = "n int"' not in written_of(tmp_path, java.replace("class T ", "class U "))[1]


@pytest.mark.parametrize("assigner", ["", ".withTimestampAssigner((e, t) -> e.at)"])
def test_no_watermarks(tmp_path, assigner):
    """Without watermarks a stream has no event time, so that no column is asked for that is not there."""
    given = (
        "evs.assignTimestampsAndWatermarks(WatermarkStrategy.<Ev>noWatermarks()" + assigner + ")"
    )
    text = (
        job(tmp_path, "kafka", at=("CEP.pattern(evs, p)", f"CEP.pattern({given}, p)")).files[0].text
    )

    assert ".inProcessingTime()" in text
    assert "inEventTime" not in text


def test_a_file_that_is_not_translated_is_counted(tmp_path):
    """A file that is nested too deeply is an error, which is in the summary beside what was written."""
    _, body = LEFT["many calls"]
    deep = JOB.format(members="", body=body.replace("10_000", "10000"))
    (tmp_path / "Deep.java").write_text(deep.replace("class Job", "class Deep"), encoding="utf-8")
    report = job(tmp_path, "operators")

    assert (report.status, len(report.files)) == (1, 2)
    assert "nested too deeply" in report.as_text()
    assert report.as_text().endswith("; 1 file not translated")
