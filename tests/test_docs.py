# SPDX-License-Identifier: Apache-2.0
"""The README and the manual show code that runs, and links that lead somewhere."""

import doctest
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BUILT = ("_build", "api")
MANUAL = sorted(
    page
    for page in (ROOT / "docs").rglob("*.md")
    if page.relative_to(ROOT / "docs").parts[0] not in BUILT
)
PAGES = [README, *MANUAL, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
_STATEMENT = re.compile(r"```sql\n-- dialect=\"(\w+)\"\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
_BLOCK = re.compile(r"```python\n((?!>>>).*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


def text(page):
    """Return a page's text."""
    return page.read_text(encoding="utf-8")


def name_of(page):
    """Return a page's path within the project."""
    return str(page.relative_to(ROOT))


def with_code(pages, sign):
    """Return the pages with Python blocks that do, or do not, begin with a prompt."""
    return [page for page in pages if re.search(rf"```python\n{sign}", text(page))]


@pytest.mark.parametrize("page", with_code(PAGES, ">>>"), ids=name_of)
def test_sessions(page, tmp_path, monkeypatch):
    """What a page types at the prompt returns what it shows, without Spark."""
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(page), module_relative=False)

    assert tried > 0
    assert failed == 0


@pytest.fixture
def spark(spark, compiled_plans):
    """Return the session as users have it."""
    return spark


PROGRAMS = with_code([README, *MANUAL], "(?!>>>)")
SPARKLESS = [
    page for page in PROGRAMS if "spark" not in "".join(map(str, _BLOCK.findall(text(page))))
]


def run_programs(page, capsys):
    """Run the programs of a page one after another, and compare what they print with the page."""
    names = {}
    blocks = _BLOCK.findall(text(page))
    for program, output in blocks:
        exec(program, names)
        printed = capsys.readouterr().out.strip()
        assert not output or printed == output.strip()
    assert blocks


@pytest.mark.parametrize("page", SPARKLESS, ids=name_of)
def test_programs_without_spark(page, capsys, tmp_path, monkeypatch):
    """The programs of a page that names no session print what it shows, without Java."""
    monkeypatch.chdir(tmp_path)
    run_programs(page, capsys)


@pytest.mark.spark
@pytest.mark.parametrize("page", [page for page in PROGRAMS if page not in SPARKLESS], ids=name_of)
def test_manual_programs(page, spark, capsys):
    """The programs of a page run one after another, and print what it shows."""
    before = dict(spark.conf.getAll)
    try:
        run_programs(page, capsys)
        assert statements_that_differ(spark, text(page)) == {}
    finally:
        after = dict(spark.conf.getAll)
        for name in set(after) - set(before):
            spark.conf.unset(name)
        for name in before:
            if before[name] != after[name]:
                spark.conf.set(name, before[name])


def statements_that_differ(spark, page):
    """Return the statements of a page whose rows are not those shown, with the rows; in one job."""
    from pyspark.sql import functions as F

    from pyflinkcep import CEP
    from tests.spark.support import in_one_job

    results, shown = {}, {}
    for dialect, statement, table in _STATEMENT.findall(page):
        frame = CEP.sql(spark, statement, dialect=dialect).toDF()
        strings = [F.coalesce(F.col(name).cast("string"), F.lit("NULL")) for name in frame.columns]
        results[statement] = frame.select(F.concat_ws("|", *strings))
        header, *rows = [line for line in table.splitlines() if line.startswith("|")]
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]
        shown[statement] = sorted("|".join(row) for row in cells)
        assert [name.strip() for name in header.strip("|").split("|")] == frame.columns
    found = in_one_job(results) if results else {}
    return {name: sorted(rows) for name, rows in found.items() if sorted(rows) != shown[name]}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links(page):
    """A link to a file of the project, or to a heading, leads there."""
    missing = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text(page)):
        file, _, heading = target.partition("#")
        if "://" in target:
            continue
        path = (page.parent / file).resolve() if file else page
        if not path.exists() or (heading and heading not in headings(path)):
            missing.append(target)

    assert missing == []


def test_pictures_are_those_of_the_page():
    """The pictures of the pages are drawn from their examples: `make pictures` draws them again."""
    drawn = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["drawn"]()

    assert [name for name, svg in drawn.items() if text(ROOT / "docs" / name) != svg] == []


def test_the_table_of_functions_is_that_of_the_package():
    """What each function does where is read off the package: `make pictures` writes it again."""
    written = runpy.run_path(str(ROOT / "docs" / "function_table.py"))

    assert text(written["PAGE"]) == written["page"]()


def test_the_notebook_is_the_start_page(tmp_path, monkeypatch, capsys):
    """`make pictures` writes it again; its cells run in order, those before Spark without Java."""
    written = runpy.run_path(str(ROOT / "docs" / "notebook.py"))
    book = text(written["NOTEBOOK"])
    monkeypatch.chdir(tmp_path)
    names = {}
    for cell in json.loads(book)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and "pyspark" not in source:
            exec(source, names)

    assert book == written["notebook"]()
    assert "alert: ann" in capsys.readouterr().out


def headings(page):
    """Return the anchors of a page's headings."""
    lines = re.findall(r"^#+ (.*)$", text(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


TREE = re.compile(r"^```\{toctree\}\n.*?^```", re.MULTILINE | re.DOTALL)


def below(page):
    """Return the pages that a page's tables of contents name, and those that these name."""
    found = [child for tree in TREE.findall(text(page)) for child in contents(page, tree)]
    return [*found, *(deeper for child in found for deeper in below(child))]


def test_the_contents_have_every_page_once():
    """Each page of the site is reached from the front page, in one place."""
    pages = {page for page in MANUAL if page.name != "README.md"}

    assert sorted(below(front())) == sorted(pages - {front()})


@pytest.mark.slow
def test_the_site(tmp_path):
    """It builds without a warning, loads nothing from elsewhere, and llms.txt names every page."""
    for tool in ("sphinx", "myst_parser", "numpydoc", "pydata_sphinx_theme", "sphinx_copybutton"):
        pytest.importorskip(tool)
    site = tmp_path / "html"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", tmp_path / "read"]
    built = subprocess.run(
        [*command, ROOT / "docs", site], capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stderr) == (0, "")
    loaded = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=\"(?:https?:)?//[^\"]*\"")
    shown = [*site.glob("*.html"), *site.glob("*/*.html")]
    targets = re.findall(r"\]\(([^)]+)\)", text(site / "llms.txt"))
    pages = {f"_sources/{page.relative_to(ROOT / 'docs')}.txt" for page in below(front())}

    assert {found for page in shown for found in loaded.findall(text(page))} == set()
    assert pages - set(targets) == set()
    assert [target for target in targets if not (site / target).exists()] == []


def front():
    """Return the front page."""
    return ROOT / "docs" / "index.md"


def test_each_page_is_stable_or_experimental():
    """The page of compatibility marks every page once, those of a gallery by its front page."""
    page = ROOT / "docs" / "compatibility.md"
    listed = text(page).partition("## Page by page")[2]
    expected = [
        str(child.relative_to(page.parent))
        for child in below(front())
        if child != page and (child.parent == page.parent or child.name == "index.md")
    ]

    assert sorted(re.findall(r"\]\(([^)#]+)\)", listed)) == sorted(expected)


def test_each_group_links_to_its_pages():
    """A page with contents says of each page what it answers, for readers and in the repository."""
    missing = [
        child
        for page in MANUAL
        for tree in TREE.findall(text(page))
        for child in contents(page, tree)
        if f"]({child.relative_to(page.parent)}" not in text(page)
    ]
    assert missing == []


def contents(page, tree):
    """Return the pages that one table of contents of a page names."""
    names = [line for line in tree.splitlines()[1:-1] if line and not line.startswith(":")]
    return [page.parent / (re.sub(r".*<(.*)>", r"\1", name) + ".md") for name in names]


def test_the_reference_has_every_public_name():
    """Each public name has a page of its own."""
    import pyflinkcep
    from pyflinkcep import charts, local, pattern, sase, show, tables, testing

    listed = set(re.findall(r"^   (\w+)$", text(ROOT / "docs" / "api.md"), re.MULTILINE))
    modules = (pyflinkcep, charts, local, pattern, sase, show, tables, testing)
    public = {name for module in modules for name in module.__all__}

    assert sorted(public - listed - {"LocalEngine", "__version__", "charts"}) == []


QUESTIONS = (
    "My pattern matches nothing",
    "It matched yesterday: what is different in today's data?",
    "The stream writes nothing although events arrive",
    "Why do I get several matches, or fewer than expected?",
    "What is the difference between next, followedBy and followedByAny?",
    "What do oneOrMore, greedy, optional, consecutive and until do to my matches?",
    "Why is a match reported late, or only when the next event comes?",
    "Why did this partial match end?",
    "How close did key K come to matching?",
    "Which conditions never hold, or always?",
    "How many users reached each step, and where do they drop off?",
    "How many partial matches does my stream hold, and what do they wait for?",
    "Why does the state grow, and what bounds it?",
    "Were events dropped: late, without a time or a key?",
    "What happens to partial matches when I change the pattern?",
    "How do I use a threshold that lives in another table or stream?",
    "How do I get an alert when something does not happen?",
    "How do I test a pattern without a cluster?",
    "One timestamp in the far future arrived: what became of the events after it?",
    "Where is the time of my job spent, and what would make it cheaper?",
)
"""What people ask of engines like this one, as they would search for it."""


def test_the_manual_names_every_function_and_aggregate():
    """What parsers read around values of several events is on the page of SQL over stages."""
    from pyflinkcep.expressions.aggregates import AGGREGATES
    from pyflinkcep.expressions.tree import FUNCTIONS

    page = (ROOT / "docs" / "sql-conditions.md").read_text(encoding="utf-8")
    assert [name for name in (*AGGREGATES, *FUNCTIONS) if f"`{name}`" not in page] == []


def test_every_question_has_its_title():
    """What people ask is answered under a title that they would search for."""
    titles = re.findall(r"^## (.*)$", text(ROOT / "docs" / "why.md"), re.MULTILINE)

    assert [question for question in QUESTIONS if question not in titles] == []


def test_readme_is_short():
    """The README is a first look, at most 150 lines; the manual has the rest."""
    assert len(text(README).splitlines()) <= 150


def test_ci_runs_the_readme_command():
    """The command that the README names for the tests is the one that CI runs."""
    command = "pip install -e '.[test]' && pytest"

    assert f"\n{command}\n" in text(README)
    assert command in text(ROOT / ".ci" / "run")


# --- the architecture


ARCHITECTURE = ROOT / "docs" / "architecture.md"


def test_architecture_names_files_that_exist():
    """Every file and folder that the page names is in the package, or in the project."""
    names = re.findall(r"`([\w./]+(?:\.py|\.c|/))`", text(ARCHITECTURE))
    rooms = ["", "pyflinkcep", "pyflinkcep/kernel", "pyflinkcep/kernel/src"]
    folders = [ROOT / room for room in rooms]
    files = {path.name for path in (ROOT / "pyflinkcep").rglob("*.*")}

    missing = [
        name
        for name in names
        if not any((folder / name).exists() for folder in folders)
        and not ("/" not in name and name in files)
    ]
    assert missing == []
    assert len(names) > 60


def test_every_c_file_is_in_the_table_of_mirrors():
    """The table names each C file, and the Python files that the C file says it mirrors."""
    rows = [line.split("|") for line in text(ROOT / "docs/kernel-mirrors.md").splitlines()]
    table = {
        name: row[2]
        for row in rows
        if len(row) == 5
        for name in re.findall(r"`([\w/]+\.c)`", row[1])
    }
    src = ROOT / "pyflinkcep/kernel/src"
    sources = {str(path.relative_to(src)): text(path) for path in src.rglob("*.c")}

    assert set(table) == set(sources)
    for name, source in sources.items():
        said = re.search(r"Mirror: ([\s\S]*?)\*/", source)
        mirrors = re.findall(r"\w+\.py", said[1]) if said else []
        assert [mirror for mirror in mirrors if mirror not in table[name]] == [], name


def test_every_room_has_a_paragraph():
    """Each folder of the package is named on the page."""
    folders = {
        f"{path.parent.relative_to(ROOT / 'pyflinkcep')}/"
        for path in (ROOT / "pyflinkcep").rglob("__init__.py")
    } - {"./"}
    page = text(ARCHITECTURE)

    assert [folder for folder in sorted(folders) if f"`{folder}`" not in page] == []


def test_the_signs_of_explain():
    """The glossary has every arrow, kind of state and kind of edge that ``explain()`` prints."""
    from pyflinkcep.engines.flink.nfa import StateTransitionAction, StateType
    from pyflinkcep.pattern.display import SHOWN

    page = text(ROOT / "docs" / "speed.md")
    glossary = page[page.index("## The signs of") :]
    kinds = [f"({kind.value.lower()})" for kind in StateType if kind is not StateType.NORMAL]
    arrows = [shown.arrow for shown in SHOWN.values()]
    signs = [*arrows, *kinds, *(action.value for action in StateTransitionAction)]

    assert [sign for sign in signs if sign not in glossary] == []
