# SPDX-License-Identifier: Apache-2.0
"""What of a program is compiled to run a pattern alone."""

from pathlib import Path

from pyflinkcep.migrate.check.slices import Jars, sliced
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
