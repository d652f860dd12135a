#!/usr/bin/env python3
"""Render the admin's guide into the one file that the web UI serves under Help.

    board/common/guide.py FILE

docs/guide/ holds Markdown as GitHub shows it. A page of the web UI is linked as "ui:/network/": a path in the box,
plain words elsewhere. A link that leads nowhere ends the build. Whether a path of the web UI exists, Django knows;
tests/django/test_guide.py asks it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

GUIDE = Path(__file__).parents[2] / "docs/guide"
INDEX = "README"
HELP = "/help/"  # where the web UI has the pages,
PICTURES = "/static/guide/"  # and nginx the files of docs/guide/pictures
UI = "ui:"


class GuideError(Exception):
    """A page says what cannot be rendered; the text names the page and the place."""


@dataclass(frozen=True)
class Source:
    """A page as it is written, parsed."""

    name: str
    tokens: list[Token]
    headings: dict[str, str]  # anchor -> words; the first one is the title


def render(folder: Path = GUIDE) -> dict[str, dict[str, str]]:
    """Name of a page -> its title and HTML, the index first. Raises GuideError."""
    sources = {source.name: source for source in map(parse, sorted(folder.glob("*.md")))}
    pictures = {path.name for path in (folder / "pictures").glob("*")}
    if INDEX not in sources:
        raise GuideError(f"{folder}: there is no {INDEX}.md")
    for source in sources.values():
        for token in inline(source.tokens):
            lead(token, source, sources, pictures)
    order = [INDEX, *(name for name in sources if name != INDEX)]
    return {name: finished(sources[name]) for name in order}


def parse(path: Path) -> Source:
    """Read a page and give each heading its anchor. Raises GuideError."""
    tokens = reader().parse(path.read_text())
    headings: dict[str, str] = {}
    for token in tokens:
        if token.type == "fence":
            token.attrSet("tabindex", "0")  # who has no mouse scrolls a long line by the arrow keys
    for token, words in pairwise(tokens):
        if token.type == "heading_open":
            anchor = slug(words.content)
            if anchor in headings:
                raise GuideError(f"{path.name}: two headings are called “{words.content}”")
            headings[anchor] = words.content
            token.attrSet("id", anchor)
    if not tokens or tokens[0].tag != "h1":
        raise GuideError(f"{path.name}: it does not begin with a title (“# …”)")
    return Source(path.stem, tokens, headings)


def reader() -> MarkdownIt:
    """CommonMark and tables, which is what GitHub reads; HTML in a page is shown as text."""
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def inline(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield from token.children or ()


def lead(token: Token, source: Source, sources: dict[str, Source], pictures: set[str]) -> None:
    """Turn the target of a link or a picture into its place in the web UI. Raises GuideError."""
    if token.type == "image":
        name = str(token.attrs["src"]).removeprefix("pictures/")
        if name not in pictures:
            raise GuideError(f"{source.name}.md: there is no picture {token.attrs['src']}")
        if not token.content:
            raise GuideError(f"{source.name}.md: the picture {name} has no words for those who cannot see it")
        token.attrSet("src", PICTURES + name)
    elif token.type == "link_open":
        token.attrSet("href", target(str(token.attrs["href"]), source, sources))


def target(href: str, source: Source, sources: dict[str, Source]) -> str:
    if href.startswith(UI):
        return href.removeprefix(UI)
    file, _, anchor = href.partition("#")
    found = sources.get(file.removesuffix(".md")) if file else source
    if found is None or (file and not file.endswith(".md")):
        raise GuideError(f"{source.name}.md: the link {href} leads to no page of the guide or of the web UI")
    if anchor and anchor not in found.headings:
        raise GuideError(f"{source.name}.md: the link {href} leads to no heading of {found.name}.md")
    page = "" if found.name == INDEX else f"{found.name}/"
    return (HELP + page if file else "") + (f"#{anchor}" if anchor else "")


def finished(source: Source) -> dict[str, str]:
    title = next(iter(source.headings.values()))
    markdown = reader()
    return {"title": title, "html": markdown.renderer.render(source.tokens, markdown.options, {})}


def main(words: list[str]) -> int:
    try:
        pages = render()
    except GuideError as error:
        print(error, file=sys.stderr)
        return 1
    Path(words[0]).write_text(json.dumps(pages, ensure_ascii=False, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
