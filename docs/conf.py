# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the manual as a site: ``make docs``."""

import re
import sys
from configparser import ConfigParser
from functools import cache, partial
from pathlib import Path

from jinja2 import FileSystemBytecodeCache
from numpydoc import docscrape_sphinx
from sphinx.search.en import SearchEnglish

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import site_pages  # noqa: E402

import pyflinkcep  # noqa: E402

# Else numpydoc compiles its template anew for each docstring.
docscrape_sphinx.SandboxedEnvironment = partial(
    docscrape_sphinx.SandboxedEnvironment, bytecode_cache=FileSystemBytecodeCache()
)

# Else the stem of a word is found anew for each page that has it.
SearchEnglish.stem = cache(SearchEnglish.stem)

_setup = ConfigParser()
_setup.read(HERE.parent / "setup.cfg", encoding="utf-8")
REPOSITORY = _setup["metadata"]["url"]

project = "pyflinkcep"
author = _setup["metadata"]["author"]
copyright = f"{author}, Apache License 2.0"
version = release = pyflinkcep.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
]
exclude_patterns = ["README.md", "_build"]
# What the build writes into the folder of the sources, and `.gitignore` names.
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
smartquotes = False  # values in types of parameters are to be copied
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
# The pages of SQL have dialects, whose words no lexer knows.
highlight_options = {"default": {"stripnl": False}}
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "pydata_sphinx_theme"
html_title = f"pyflinkcep {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {page: [] for page in ("index", "start", "from-flink")}
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_copy_source = True  # what `llms.txt` links to
html_show_sourcelink = False
html_theme_options = {
    "github_url": REPOSITORY,
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}


def _links_out_of_the_manual(app, document, source):
    """Turn links to files of the repository that are no pages into links to the repository."""
    folder = Path(app.env.doc2path(document)).parent

    def link(found):
        target = (folder / found[1]).resolve()
        if target.is_relative_to(HERE):
            return found[0]
        return f"]({REPOSITORY}/blob/main/{target.relative_to(HERE.parent)}{found[2] or ''})"

    source[0] = re.sub(r"\]\((\.\./[^)#\s]*)(#[^)\s]*)?\)", link, source[0])


def setup(app):
    """Connect what this project adds to Sphinx."""
    app.connect("source-read", _links_out_of_the_manual)
    site_pages.setup(app)
