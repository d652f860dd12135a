"""What a browser would send: the values of a form as it stands in a page."""

from html.parser import HTMLParser


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._area = ""
        self._list = ""

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        name = known.get("name")
        if tag == "textarea" and name:
            self._area = name
            self.values[name] = ""
        if tag == "select" and name:
            self._list = name
        if tag == "option" and self._list and ("selected" in known or self._list not in self.values):
            self.values[self._list] = known.get("value", "")
        if tag != "input" or not name:
            return
        if known.get("type") in ("checkbox", "radio") and "checked" not in known:
            return
        self.values[name] = known.get("value") or ("on" if known.get("type") == "checkbox" else "")

    def handle_data(self, data):
        if self._area:
            self.values[self._area] += data

    def handle_endtag(self, tag):
        if tag == "select":
            self._list = ""
        if tag == "textarea":
            self.values[self._area] = self.values[self._area].removeprefix("\n").removeprefix("\r\n")
            self._area = ""


def form_values(response) -> dict[str, str]:
    reader = _Reader()
    reader.feed(response.content.decode())
    reader.values.pop("csrfmiddlewaretoken", None)
    return reader.values


def words(response) -> str:
    """The text of the page with its white space in order."""
    reader = _Words()
    reader.feed(response.content.decode())
    return " ".join(" ".join(reader.parts).split())


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data):
        self.parts.append(data)
