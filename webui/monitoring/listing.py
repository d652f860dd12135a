"""Which of many services the overview shows: those on a page, those that are looked for, those with trouble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator

if TYPE_CHECKING:
    from monitoring.views import Shown

PER_PAGE = 25  # services; a page of a thousand with ten real servers each had 10 MB, and it is fetched every 2 s


@dataclass(frozen=True)
class Listing:
    page: Page  # of what was chosen
    find: str
    troubled: bool  # only those are shown
    count: int  # of all services, shown or not
    trouble: int  # of all that have some

    @property
    def chosen(self) -> bool:
        return bool(self.find) or self.troubled

    @property
    def long(self) -> bool:
        """Whether there is anything to choose from."""
        return self.chosen or self.count > PER_PAGE

    @property
    def query(self) -> str:
        """Of this page of this choice, for the address of its live part."""
        return self._query(self.page.number)

    @property
    def before(self) -> str:
        return self._query(self.page.previous_page_number()) if self.page.has_previous() else ""

    @property
    def after(self) -> str:
        return self._query(self.page.next_page_number()) if self.page.has_next() else ""

    def _query(self, number: int) -> str:
        chosen = {"find": self.find, "troubled": "1" if self.troubled else "", "page": number if number > 1 else ""}
        return urlencode({key: value for key, value in chosen.items() if value})


def choose(services: Sequence[Shown], wanted: Mapping[str, str]) -> Listing:
    """`wanted`: the query of the page; what makes no sense in it is as if it were not there."""
    find, troubled = " ".join(wanted.get("find", "")[:100].split()), bool(wanted.get("troubled"))
    in_trouble = [one for one in services if one.trouble]
    among = in_trouble if troubled else services
    found = [one for one in among if find.casefold() in one.text] if find else among
    page = Paginator(found, PER_PAGE).get_page(wanted.get("page"))
    return Listing(page, find, troubled, len(services), len(in_trouble))
