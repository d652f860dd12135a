"""The admin's guide: what the renderer makes of it, what it refuses, and whether its words are those of the screens."""

import ast
import html
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from board.common import guide

TOP = Path(__file__).parents[3]
WEBUI = TOP / "webui"
ROOM = 300 * 1024  # bytes of the box for text and pictures together
SIGNS = "▲▼◆◇■"  # beside the words of a state
# Where the words of the screens stand, beside the templates.
WORDS = (
    *WEBUI.glob("*/*form*.py"),
    *(
        WEBUI / name
        for name in (
            "accounts/scopes.py",
            "balancing/policy.py",
            "balancing/presets.py",
            "lbconfig/model/names.py",
            "lbconfig/diff/rule_words.py",
            "monitoring/views.py",
            "system/pair.py",
        )
    ),
    TOP / "webui/console/actions.py",
)


@pytest.fixture
def write(tmp_path):
    """write(name=text …) -> a guide of these pages beside an index, with one picture."""
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures/arm.svg").write_text("<svg/>")

    def write_pages(**pages: str) -> Path:
        for name, text in {"README": "# Guide\n", **pages}.items():
            (tmp_path / f"{name}.md").write_text(text)
        return tmp_path

    return write_pages


def test_every_block_of_code_is_scrolled_by_the_keyboard(write):
    text = "# Type it\n\n```\nfirst\n```\n\nand\n\n```\nlast\n```\n"
    assert guide.render(write(type=text))["type"]["html"].count('<pre><code tabindex="0">') == 2


def test_links_and_pictures_lead_to_their_place_in_the_box(write):
    pages = guide.render(
        write(
            plan="# Plan it\n\n![one arm](pictures/arm.svg)\n\n[it](drain.md#what-is-next) [here](#plan-it)",
            drain="# Drain\n\n## What is next?\n\n[all](README.md) [plan](plan.md) [**Network**](ui:/network/)",
        )
    )
    assert list(pages) == ["README", "drain", "plan"]
    assert pages["plan"]["title"] == "Plan it"
    plan, drain = pages["plan"]["html"], pages["drain"]["html"]
    assert '<img src="/static/guide/arm.svg" alt="one arm" />' in plan
    assert '<a href="/help/drain/#what-is-next">' in plan and '<a href="#plan-it">' in plan
    assert '<h2 id="what-is-next">What is next?</h2>' in drain
    assert '<a href="/help/">' in drain and '<a href="/help/plan/">' in drain and '<a href="/network/">' in drain


def test_html_in_a_page_is_text(write):
    assert "<script>" not in guide.render(write(one="# One\n\n<script>alert(1)</script>"))["one"]["html"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# One\n\n[x](two.md)", "one.md: the link two.md leads to no page of the guide or of the web UI"),
        ("# One\n\n[x](#two)", "one.md: the link #two leads to no heading of one.md"),
        ("# One\n\n[x](README.md#two)", "one.md: the link README.md#two leads to no heading of README.md"),
        ("# One\n\n[x](https://example.org/)", "one.md: the link https://example.org/ leads to no page"),
        ("# One\n\n[x](/network/)", "one.md: the link /network/ leads to no page"),
        ("# One\n\n![x](pictures/two.svg)", "one.md: there is no picture pictures/two.svg"),
        ("# One\n\n![](pictures/arm.svg)", "one.md: the picture arm.svg has no words"),
        ("# One\n\n## Two\n\n## Two", "one.md: two headings are called “Two”"),
        ("One", "one.md: it does not begin with a title"),
        ("", "one.md: it does not begin with a title"),
    ],
)
def test_what_leads_nowhere_is_refused(write, text, words):
    with pytest.raises(guide.GuideError, match=re.escape(words)):
        guide.render(write(one=text))


def test_a_refused_page_ends_the_build(tmp_path, monkeypatch, capsys):
    def refused():
        raise guide.GuideError("one.md: there is no picture two.svg")

    monkeypatch.setattr(guide, "render", refused)
    assert guide.main([str(tmp_path / "guide.json")]) == 1
    assert capsys.readouterr().err == "one.md: there is no picture two.svg\n"
    assert not (tmp_path / "guide.json").exists()


def test_the_guide_as_it_stands(tmp_path):
    assert guide.main([str(tmp_path / "guide.json")]) == 0
    pictures = list((guide.GUIDE / "pictures").iterdir())
    used = "".join(path.read_text() for path in guide.GUIDE.glob("*.md"))
    assert [path.name for path in pictures if f"pictures/{path.name}" not in used] == []
    size = (tmp_path / "guide.json").stat().st_size + sum(path.stat().st_size for path in pictures)
    assert size < ROOM


@pytest.mark.parametrize("path", sorted(guide.GUIDE.glob("*.md")), ids=lambda path: path.stem)
def test_a_page_is_short_and_the_index_leads_to_it(path):
    text = path.read_text()
    assert 150 <= len(text.split()) <= 400
    assert path.stem == guide.INDEX or f"]({path.name})" in (guide.GUIDE / "README.md").read_text()
    assert path.stem == guide.INDEX or "![" in text


@pytest.mark.parametrize("path", sorted(guide.GUIDE.glob("*.md")), ids=lambda path: path.stem)
def test_what_stands_in_bold_type_is_on_a_screen(path, on_screens):
    assert [words for words in bold(path) if words.casefold() not in on_screens] == []


@pytest.fixture(scope="module")
def on_screens() -> set[str]:
    templates = WEBUI.glob("*/templates/**/*.html")
    found = {words for path in templates for words in shown(path.read_text())}
    return found | {words.casefold() for path in WORDS for words in strings(path)}


def bold(path: Path) -> Iterator[str]:
    within, words = False, ""
    for token in guide.inline(guide.parse(path).tokens):
        if token.type == "strong_open":
            within, words = True, ""
        elif token.type == "strong_close":
            within = False
            yield words
        elif within:
            words += token.content


def shown(template: str) -> Iterable[str]:
    """What stands in a template between its tags, HTML's and Django's."""
    parts = re.split(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<[^>]*>", template, flags=re.DOTALL)
    return (html.unescape(part).strip(f"{SIGNS} \n").casefold() for part in parts)


def strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
