"""Help: the pages of the admin's guide."""

from django.http import Http404
from django.shortcuts import render

from guide import book


def page(request, name: str = book.INDEX):
    found = book.pages().get(name)
    if found is None:
        raise Http404
    return render(request, "guide/page.html", {"page": found, "index": name == book.INDEX})
