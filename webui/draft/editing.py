"""From what was sent of a page to the draft: the one way of all pages that are saved as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from draft import store as draft
from draft.pages import Page, merged
from lbconfig.model.snapshot import Snapshot
from web.kept_input import given_back

SAVED = "Saved to the draft. The box uses it after you have reviewed and applied the changes."

Entered = TypeVar("Entered")


class Make(Protocol):
    def __call__(self, data: object = None, /) -> Page:
        """The page as it is stored; with `data` of a POST request, as it was entered."""


class Show(Protocol):
    def __call__(self, request: HttpRequest, page: Page, status: int = 200, /) -> HttpResponse: ...


def edit(
    request: HttpRequest,
    make: Make,
    check: Callable[[Page, Snapshot], Entered | None],
    write: Callable[[Page, Entered, str], object],
    show: Show,
    *,
    then: str = "overview",
    saved: Callable[[Entered], str] = lambda _: SAVED,
    instead: Callable[[Page], HttpResponse | None] = lambda _: None,
    offered: Callable[[Page], Page] = lambda page: page,
) -> HttpResponse:
    """Show the form, or take what was sent: written to the draft, or shown with its errors and nothing is lost.

    `check` gives what is to be written, by the draft as it is now; None when something is wrong, with the reason beside
    its field. `then` is the page that follows, with the sentence of `saved`. `instead` answers a request that is not
    to save yet. `offered` sees the page into which somebody else's change of the meantime was brought.
    """
    if request.method != "POST":
        return show(request, make())
    user = request.user.get_username()
    with transaction.atomic():  # from its first line on nobody else can write to the draft
        page = make(request.POST)
        if given_back(request):
            return show(request, page)
        if answer := instead(page):
            return answer
        if page.stale:
            return show(request, offered(merged(page, make(), user)), 409)
        entered = check(page, draft.current())
        if entered is None:
            return show(request, page, 422)
        write(page, entered, user)
    messages.success(request, saved(entered))
    for sentence in page.consequences:
        messages.warning(request, f"Before you can apply: {sentence}")
    return redirect(then)


def part(name: str) -> Callable[[Page, Snapshot, str], None]:
    """For `write`: that part of the snapshot, by the name of its field."""
    return lambda _, candidate, user: draft.write_part(name, getattr(candidate, name), user)
