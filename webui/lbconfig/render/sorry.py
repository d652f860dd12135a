"""The page that the box shows for a service none of whose real servers is up."""

from __future__ import annotations

from html import escape

from lbconfig.model.snapshot import Snapshot

# Complete in itself: the address at which a browser would look for anything else shows this page, too.
_PAGE = """\
<!doctype html>
<html lang="">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; font: 1.1rem/1.6 system-ui, sans-serif; }}
body {{ max-width: 34rem; margin: 20vh auto 0; padding: 0 1.5rem; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.6rem; line-height: 1.25; }}
</style>
<h1>{title}</h1>
{paragraphs}</html>
"""


def render(snapshot: Snapshot) -> str:
    paragraphs = "".join(f"<p>{escape(text)}</p>\n" for text in snapshot.sorry.paragraphs)
    return _PAGE.format(title=escape(snapshot.sorry.title), paragraphs=paragraphs)
