"""What somebody was filling in when his log-in ended: kept in the session, and given back once he has logged in again.

Only views that say so are given it back (`keeps_input`); they show the form with it and save nothing. A stranger's
input is never kept: that would be room of the box that anybody could fill.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import Resolver404, resolve

KEY = "kept input"
NOT_KEPT = frozenset({"csrfmiddlewaretoken"})
GIVEN_BACK = (
    "Your log-in had ended before this was saved. What you entered is here again; look at it, and save it once more."
)


def keeps_input(view: Callable) -> Callable:
    """For a view that asks given_back() before it saves anything."""
    view.keeps_input = True  # type: ignore[attr-defined] # a mark on the function, for the middleware
    return view


def given_back(request: HttpRequest) -> bool:
    """Whether this was entered before a log-in: it is shown, and not saved."""
    return getattr(request, "input_given_back", False)


def of(request: HttpRequest) -> dict | None:
    """What there is to keep of a request whose log-in has just ended; its user is still known."""
    if request.method != "POST" or not _keeps(request.path_info):
        return None
    values = {name: found for name, found in request.POST.lists() if name not in NOT_KEPT}
    return {"page": page_of(request), "user": request.user.get_username(), "values": values}


def page_of(request: HttpRequest) -> str:
    """The page that the browser shows: of a request by htmx, the one that it is a part of."""
    if request.headers.get("HX-Request"):
        parts = urlsplit(request.headers.get("HX-Current-URL", ""))
        if parts.path.startswith("/") and not parts.path.startswith("//"):
            return f"{parts.path}?{parts.query}" if parts.query else parts.path
    return request.get_full_path()


def log_in_instead(request: HttpRequest, response: HttpResponse, kept: bool) -> HttpResponse:
    """The way to the log-in page. htmx would put that into the middle of the one that is shown."""
    query = {"next": page_of(request)}
    if request.method == "POST" and not kept:
        query["unsaved"] = "yes"
    where = f"{urlsplit(response['Location']).path}?{urlencode(query, safe='/')}"
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204, headers={"HX-Redirect": where})
    response["Location"] = where
    return response


class GiveBack:
    """The last middleware: in the place of the empty form, the form with what was entered."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request)

    def process_view(self, request, view, args, kwargs):
        if request.method != "GET" or not request.user.is_authenticated or not getattr(view, "keeps_input", False):
            return None
        kept = request.session.get(KEY)
        if kept is None or kept["page"] != request.get_full_path():
            return None
        del request.session[KEY]
        if kept["user"] != request.user.get_username():
            return None
        values = QueryDict(mutable=True)
        for name, found in kept["values"].items():
            values.setlist(name, found)
        request.method, request.POST, request.input_given_back = "POST", values, True
        messages.warning(request, GIVEN_BACK)
        return view(request, *args, **kwargs)


def _keeps(path: str) -> bool:
    try:
        return getattr(resolve(path).func, "keeps_input", False)
    except Resolver404:
        return False
