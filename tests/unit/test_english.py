"""English as a native sysadmin writes it: words that must not come back, with the better ones.

Read are the texts of people: templates, documents, comments, docstrings and strings. Names in code stay out of it.
A phrase that is broken over two lines is seen as well.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
FOLDERS = ("webui", "overlay", "board", "bench", "tests", "docs", "buildroot-external")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")
TEXTS = {"", ".c", ".cf", ".conf", ".css", ".html", ".js", ".md", ".pm", ".py", ".rules", ".sh"}
# What others wrote, or a kernel said.
FOREIGN = ("tests/captures/", "tests/golden/", "tests/peers/servers/", "webui/lbconfig/licenses/")
# This list itself.
EXCEPT = ("unit/test_english.py",)

PROTOCOL = "(?:TLS|HTTPS?|TCP|UDP|SCTP|IPv4|IPv6|SSH|DHCP|ARP|VRRP|unicast|multicast)"
# Part of what is written, in small letters -> all of it as a regular expression, and what is better.
BETTER = {
    "in place of": (r"\b[Ii]n place of\b", "instead of"),
    "by ": (rf"\b[Bb]y (?:{PROTOCOL}|S?NAT|source NAT)\b", "over TLS, over IPv6, with NAT, from DHCP"),
    "asked ": (r"\b[Aa]sked (?:is|are only)\b", "Tests …, Applies only to …"),
    "wish": (r"(?<![$/.\w])[Ww]ish(?:es|ed|ing)?\b", "configuration, draft, configured, want"),
    "machine below": (r"\b[Mm]achine below\b", "the hardware"),
    "of then": (r"\b[Uu]sers of then\b", "that version's users"),
    "is content": (r"\b[Ii]s content\b", "passes"),
    "mend this": (r"\b[Mm]end this\b", "Fix this"),
    " right": (r"\b[Pp]uts? (?:(?:it|this|that|them) )?right\b", "fix, repair"),
    "mend": (r"""(?<!["'\w-])[Mm]end(?:s|ed|ing)?\b(?!["'-])""", "fix, repair"),
    "one a line": (r"\b[Oo]ne a line\b", "one per line"),
    "parted by": (r"\b[Pp]arted by\b", "separated by"),
    "admin's own": (
        r"\b(?:rule|program)s? of (?:the|an) admin's own\b",
        "an admin's own program",
    ),
    "at itself": (r"\b[Ll]ooks? at itself\b", "checks itself"),
    "same holds": (r"\b[Tt]he same holds\b", "the same goes for"),
    "this moment": (r"\b[Aa]t this moment\b", "right now, at the moment"),
    "all the same": (r"\b[Aa]ll the same\b", "anyway"),
    "nobody can say": (r"\b[Nn]obody can say\b", "unknown, status unavailable"),
    "shall": (r"\b[Ss]hall\b", "should, must, will"),
    "nothing speaks against": (r"\b[Nn]othing speaks against\b", "a good default"),
    "greets": (r"\bLACP greets\b", "LACP rate"),
    "are looked at": (r"\b[Cc]ables are looked at\b", "link check interval"),
    "speaks if": (r"\bspeaks if it can\b", "primary member"),
    "out of ": (r"\b[Ww]ays? out of (?:its|their) own\b", "source-based route"),
    "before then": (r"\b[Ss]et up as before then\b", "set up as before"),
    "in mind": (r"\b[Kk]eeps? (?:\w+ ){1,3}in mind\b", "cache"),
    "in the dark": (r"\b[Ii]n the dark\b", "in dark mode"),
    "way to nobody": (r"\b[Gg]ives? way to nobody\b", "say who uses it"),
    "in nothing": (r"\b[Ii]n nothing: it is\b", "identical to …"),
    "please": (r"\bPlease (?!try again in a few)", "nothing; only visitors of a sorry page are asked for patience"),
    "shares are": (r"\b[Ee]ven shares are best\b", "Aim for even shares"),
    "by the api": (r"\b(?:can|may) do by the API\b", "also available through the API"),
    "flood's": (r"\b[Aa]re the flood's\b", "belong to the flood"),
    "of the cleaned": (r"\bOf the cleaned\b", "a sentence, such as “Return …”"),
}


def files() -> list[Path]:
    found = [TOP / name for name in PAGES]
    for folder in FOLDERS:
        found += (TOP / folder).rglob("*")
    return [path for path in found if path.suffix in TEXTS and path.is_file() and not _left_out(path)]


def _left_out(path: Path) -> bool:
    name = str(path.relative_to(TOP))
    return name.endswith(EXCEPT) or name.startswith(FOREIGN) or "node_modules" in path.parts


def plain(text: str) -> str:
    """In one line, whatever begins a line of a comment or of a long string."""
    return re.sub(r"""(?:["'] *\n\s*[rf]*["'])|\s*\n\s*(?:#|//|\*)?\s*|\s{2,}""", lambda found: joint(found[0]), text)


def joint(between: str) -> str:
    return "" if between[0] in "\"'" else " "


def said(suffix: str, text: str) -> Iterator[str]:
    """The texts of people in a file; each in one line."""
    if suffix == ".py":
        yield from _in_python(text)
    elif suffix == ".html":
        yield plain(re.sub(r"{{.*?}}|{%.*?%}", lambda tag: " ".join(_quoted(tag[0])), text, flags=re.S))
    elif suffix == ".md":
        yield plain(re.sub(r"```.*?```|`[^`\n]*`", "`", text, flags=re.S))
    else:
        yield plain("\n".join(re.findall(r"(?:^|\s)(?:#|//|/?\*)\s+(.*)", text)))
        yield from _quoted(text)


def _quoted(text: str) -> list[str]:
    return [one for one in re.findall(r'"([^"\n]*)"', text) if " " in one]


def _in_python(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield _prose(node.value)
    comments, last = [], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.append(("" if token.start[0] == last + 1 else "\n") + token.string.lstrip("# "))
            last = token.start[0]
    yield _prose(" ".join(comments))


def _prose(text: str) -> str:
    return re.sub(r"`[^`]*`", "`", re.sub(r"\s+", " ", text))


def faults(name: str, text: str) -> list[str]:
    whole = plain(text)
    small = whole.lower()
    suspected = [rule for part, rule in BETTER.items() if part in small and re.search(rule[0], whole)]
    texts = list(said(Path(name).suffix, text)) if suspected else []
    return [
        f"{name}: {found[0]!r} ({better}) in “…{one[max(found.start() - 50, 0) : found.end() + 40]}…”"
        for one in texts
        for words, better in suspected
        for found in re.finditer(words, one)
    ]


def test_words_that_must_not_come_back():
    found = [
        fault for path in files() for fault in faults(str(path.relative_to(TOP)), path.read_text(errors="replace"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.py", '"""Sent by\n    TLS."""\n', 1),
        ("a.py", "wished = 1  # not a text\n", 0),
        ("a.py", "# what is\n# wished\n", 1),
        ("a.py", '(f"{wish} is "\n f"content")\n', 1),
        ("a.html", '{% include "x" with words="Mend this" %}{{ wish }}', 1),
        ("a.md", "`wish` is a name, in\nplace of words", 1),
        ("a.sh", "wish=1 # by\n# TLS\n", 1),
    ],
)
def test_what_is_read(name, text, expected):
    assert len(faults(name, text)) == expected
