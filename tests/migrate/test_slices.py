# SPDX-License-Identifier: Apache-2.0
"""What of a program is compiled to run a pattern alone."""

from pathlib import Path

from pyflinkcep.migrate.check.slices import Jars, Site, sliced
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import parse_java
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
