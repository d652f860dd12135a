"""Search: pages, settings, services, real servers and help, for the field in the header and as a page of its own."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from django.shortcuts import redirect, render
from django.urls import reverse

from draft import store
from search import objects, settings
from search.entries import Entry, best, question

IN_LIST, ON_PAGE = 8, 30
SERVICES = 4  # whose setting is offered; of more, the admin types the name and finds the service


@dataclass(frozen=True)
class Result:
    """One line of the results."""

    entry: Entry
    also: tuple[tuple[str, str], ...] = ()  # the same setting elsewhere: name and address


def search(request):
    asked = question(request.GET.get("q", ""))
    live = bool(request.headers.get("HX-Request"))
    entries = best([*settings.entries(), *objects.entries(asked)], asked, IN_LIST if live else ON_PAGE)
    found = list(_in_services(entries))
    context = {"asked": asked, "found": found}
    if live:
        return render(request, "search/results.html", context)
    if len(found) == 1 and not found[0].also:
        return redirect(found[0].entry.url)
    return render(request, "search/page.html", context)


def _in_services(entries: Iterable[Entry]) -> Iterator[Result]:
    """A setting of services leads to the first service that there is, and offers others and a new one."""
    new, services = f"{reverse('service-add')}#", None
    for entry in entries:
        if not entry.url.startswith(new):
            yield Result(entry)
            continue
        if services is None:
            services = [(one.id, one.name) for one in store.current().services[:SERVICES]]
        anchor = entry.url.removeprefix(new)
        places = [(name, f"{reverse('service-edit', args=[pk])}#{anchor}") for pk, name in services]
        (first, url), *others = [*places, ("a new one", entry.url)]
        where = f"{entry.where} {first}" if places else entry.where
        yield Result(replace(entry, url=url, where=where), tuple(others))
