# SPDX-License-Identifier: Apache-2.0
"""What the build changes in pages, and writes beside them: ``llms.txt``."""

import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import desc_content
from sphinx.application import Sphinx

SVG = "<svg "


def pictures_within(app: Sphinx, document: nodes.document, _page: str) -> None:
    """Put the library's own pictures into the page, so that they follow its light or dark theme."""
    if app.builder.format != "html":
        return
    for image in list(document.findall(nodes.image)):
        path = Path(app.srcdir, image["uri"])
        if path.suffix == ".svg" and path.exists():
            svg = path.read_text(encoding="utf-8")
            if svg.startswith(f'{SVG}xmlns="http://www.w3.org/2000/svg" class="cep"'):
                label = nodes.unescape(image.get("alt", ""))
                image.replace_self(nodes.raw("", _labelled(svg, label), format="html"))


def cards(app: Sphinx, document: nodes.document, page: str) -> None:
    """Make cards with pictures of the table of the gallery."""
    if app.builder.format != "html" or page != "gallery/index":
        return
    table = next(document.findall(nodes.table))
    html = []
    for row in next(table.findall(nodes.tbody)).children:
        domain, question, technique = (entry.astext() for entry in row.children)
        target = next(row.findall(nodes.reference))["refuri"]
        svg = Path(app.srcdir, "gallery", target).with_suffix(".svg").read_text(encoding="utf-8")
        if domain:
            html.append(f"{'</div>' if html else ''}<h2>{domain}</h2><div class='cards'>")
        html.append(
            f"<a class='picture-card' href='{target}'><span aria-hidden='true'>{svg}</span>"
            f"<strong>{escape(question)}</strong> {escape(technique)}</a>"
        )
    table.replace_self(nodes.raw("", "".join([*html, "</div>"]), format="html"))


def _labelled(svg: str, label: str) -> str:
    """Return a picture in a box of its own that scrolls, with the text that stands for it."""
    about = f'tabindex="0" role="group" aria-label="{escape(label)}"'
    return f'<div class="cep-picture" {about}>{svg}</div>'


def end_blocks(_app: Sphinx, document: nodes.document) -> None:
    """Drop the empty line that ends a session in Markdown, where doctest needs it."""
    for block in document.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.rawsource.rstrip()
            block.children = [nodes.Text(block.rawsource)]


def without_empty_heads(_app: Sphinx, document: nodes.document) -> None:
    """Drop the line above a table that has no words, which Markdown cannot leave out."""
    for head in list(document.findall(nodes.thead)):
        if not head.astext().strip():
            head.parent.remove(head)


def beside(_app: Sphinx, document: nodes.document) -> None:
    """Put a block of Java and the block of Python that follows it side by side."""
    for java in list(document.findall(nodes.literal_block)):
        python = java.next_node(descend=False, siblings=True)
        languages = [node.get("language") for node in (java, python) if node is not None]
        if languages == ["java", "python"]:
            python.parent.remove(python)
            java.replace_self(nodes.container("", java.deepcopy(), python, classes=["beside"]))


def keep_summary(app: Sphinx, document: nodes.document) -> None:
    """Remember the first sentence of a page."""
    for paragraph in document.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        is_prose = isinstance(paragraph.parent, nodes.section | desc_content)
        if is_prose and not text.startswith("Bases:"):
            sentence = re.split(r"(?<=[.?])\s", text)[0].rstrip(":")
            app.env.metadata[app.env.docname]["summary"] = sentence
            break


def write_llms_txt(app: Sphinx, error: Exception | None) -> None:
    """Write ``llms.txt``: the pages of the site, in the order of its contents, with summaries."""
    if error is not None or app.builder.format != "html":
        return
    root = app.config.root_doc
    lines = [f"# {app.config.project}", "", f"> {app.env.metadata[root].get('summary', '')}"]
    for group in app.env.toctree_includes[root]:
        lines += ["", f"## {_title(app, group)}", "", _entry(app, group)]
        lines += [_entry(app, page) for page in _below(app, group)]
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _below(app: Sphinx, page: str) -> list[str]:
    found = []
    for child in app.env.toctree_includes.get(page, []):
        found += [child, *_below(app, child)]
    return found


def _title(app: Sphinx, page: str) -> str:
    return app.env.titles[page].astext()


def _entry(app: Sphinx, page: str) -> str:
    """Return a line about a page: its text where it is Markdown, otherwise the page of the site."""
    source = Path(app.env.doc2path(page))
    is_text = source.suffix == ".md"
    target = f"_sources/{page}.md.txt" if is_text else app.builder.get_target_uri(page)
    summary = app.env.metadata[page].get("summary", "")
    return f"- [{_title(app, page)}]({target}){f': {summary}' if summary else ''}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the parts."""
    for change in (keep_summary, end_blocks, without_empty_heads, beside):
        app.connect("doctree-read", change)
    app.connect("doctree-resolved", pictures_within)
    app.connect("doctree-resolved", cards)
    app.connect("build-finished", write_llms_txt)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
