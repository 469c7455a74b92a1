# SPDX-License-Identifier: Apache-2.0
"""What of a program is compiled to run a pattern alone."""

from pathlib import Path

from pyflinkcep.migrate.check import compare
from pyflinkcep.migrate.check.flink import Answer, CompileError, Jars, Selected, Site, sliced
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import inside, parse_java, text_of
from pyflinkcep.migrate.migration import migrate

PROGRAMS = Path(__file__).parent / "programs"


def files_of(*names):
    """Return the files for the patterns of a program, and the calls that return these."""
    made = migrate([str(PROGRAMS / name) for name in names])
    checked = [one for file in made.report.files for one in file.checked]
    cep = ("org.apache.flink.cep.pattern.Pattern", "org.apache.flink.cep.CEP")
    jars = Jars(frozenset(cep), frozenset(["org.apache.flink.cep", "org.apache.flink.cep.pattern"]))
    return sliced(made.project, [one.site for one in checked], jars)


def test_the_job_around_a_pattern_is_left_out():
    """Sources, sinks and main are gone; the pattern, its classes and a method for it are there."""
    made = files_of("shop")
    job = made.files["org/example/shop/AbandonedCarts.java"]

    assert made.calls == [("org.example.shop.AbandonedCarts", "pyflinkcepPattern0")]
    assert "Kafka" not in job
    assert "StreamExecutionEnvironment" not in job
    assert "return abandoned;" in job
    assert "import pyflinkcep.check.Time;" in job
    assert sorted(name.rsplit("/", 1)[-1] for name in made.files) == [
        "AbandonedCarts.java",
        "Action.java",
        "InCart.java",
        "Limits.java",
        "ShopEvent.java",
    ]


def test_lombok_is_written_out():
    """What Lombok generates is written, so that no jar of it is needed."""
    event = files_of("shop").files["org/example/shop/ShopEvent.java"]

    assert "@Data" not in event
    assert "public Action getAction() { return action; }" in event
    assert "public void setPrice(double price) { this.price = price; }" in event


def test_a_method_is_called():
    """A method without parameters is called, with the class as Java names it at run time."""
    made = files_of("Groups.java")

    assert ("org.example.numbers.Groups", "pyflinkcepPattern1") in made.calls
    assert "return twice();" in made.files["org/example/numbers/Groups.java"]


def test_what_a_pattern_does_not_reach_is_left_out():
    """Methods and inner classes that a pattern does not lead to go, and annotations of no jar."""
    java = """
    import lombok.*;
    import com.fasterxml.jackson.annotation.JsonProperty;
    class Job {
        @Getter @ToString static class Event { @JsonProperty("n_") int n; }
        static class Handler extends PatternProcessFunction<Event, String> {
            @Override public void open(Configuration c) { }
        }
        static boolean big(Event e) { return e.n > limit(); }
        static int limit() { return 3; }
        static void other() { new Handler(); }
        static Pattern<Event, ?> p() { return Pattern.<Event>begin("a").where(SimpleCondition.of(Job::big)); }
    }
    """
    source = parse_java(java, "Job.java")
    project = Project([source])
    method = project.find("Job").methods["p"][0]
    text = sliced(project, [Site(method.node, source)], Jars(frozenset(), frozenset())).files[
        "Job.java"
    ]

    assert "Handler" not in text
    assert "other()" not in text
    assert "limit()" in text
    assert "int n;" in text
    assert "JsonProperty" not in text.replace("import", "")
    assert "@" not in text.split("class Job", 1)[1].split("@SuppressWarnings")[0]


def test_what_other_matches_become_is_left_out():
    """A slice has what its own function reads: no job of another pattern with the same names in it."""
    java = """
    class Job {
        static class Event { int n; }
        static Pattern<Event, ?> one() { return Pattern.<Event>begin("a"); }
        static Pattern<Event, ?> two() { return Pattern.<Event>begin("b"); }
        static void run(DataStream<Event> events) {
            int limit = 3;
            String label = "x" + limit;
            PatternStream<Event> first = CEP.pattern(events, one());
            first.select((Map<String, List<Event>> match) -> match.get("a").get(0).n).print();
            var renamed = first;
            renamed.select(match -> label + match.get("a")).print();
            CEP.pattern(events, two()).select((Map<String, List<Event>> match) -> label + match.get("b").get(0).n).print();
        }
    }
    """
    source = parse_java(java, "Job.java")
    project = Project([source])
    calls = [
        n for n in inside(source.root, "method_invocation") if text_of(n).startswith("CEP.pattern")
    ]
    last = next(n for n in calls if text_of(n.child_by_field_name("name")) == "select")
    pattern = project.find("Job").methods["two"][0].node
    site = Site(pattern, source, None, Selected(last, source, "select", "found"), "Event")
    text = sliced(project, [site], Jars(frozenset(), frozenset())).files["Job.java"]
    rows = text.split("pyflinkcepRows0", 1)[1]

    assert 'String label = "x" + limit;' in rows
    assert "int limit = 3;" in rows
    assert "first" not in rows
    assert "renamed" not in rows
    assert "return pyflinkcepFound.select((Map<String, List<Event>> match)" in rows


def test_patterns_that_do_not_compile_together_are_compared_alone(monkeypatch, tmp_path):
    """A pattern that does not compile keeps no other one of its file from being compared."""
    asked = []

    def run(project, patterns, events, jars):
        asked.append([one.name for one in patterns])
        if any(one.name != "twice_pattern" for one in patterns):
            raise CompileError("it does not compile", "pass other jars")
        return {one.name: Answer(error="it ran") for one in patterns}

    monkeypatch.setattr(compare, "run_on_flink", run)
    made = migrate([str(PROGRAMS / "Groups.java")])
    able = [one for one in made.report.files[0].checked if not one.problem]
    found = {
        one.pattern: one.text
        for one in compare.check(made.project, made.report.files, [], tmp_path)
    }

    assert len(able) > 1
    assert asked[0] == [one.name for one in able]
    assert "it ran" in found["twice_pattern"]
    assert all(
        "not compared: it does not compile" in found[one.name]
        for one in able
        if one.name != "twice_pattern"
    )
