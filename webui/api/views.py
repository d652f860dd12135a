"""The page for people: their tokens, and what the API can do."""

from __future__ import annotations

from django.contrib import messages
from django.http import JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from accounts import tokens
from accounts.models import ApiToken
from accounts.scopes import SCOPES
from api.document import document
from api.forms import TokenForm
from api.table import ROUTES


def page(request):
    return _page(request, TokenForm(initial={"scopes": ["read"]}))


def openapi(request):
    """The document, for a browser that is logged in."""
    answer = JsonResponse(document(), json_dumps_params={"indent": 1})
    answer["Content-Disposition"] = 'attachment; filename="fairlead-openapi.json"'
    return answer


@require_POST
def make_token(request):
    """Shown on this one page, and never again."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    data = form.cleaned_data
    try:
        shown = tokens.make(request.user, data["name"], data["scopes"], tokens.ends(data["days"]), data["networks"])
    except tokens.TooMany:
        form.add_error("name", f"There are {tokens.MOST} tokens already; revoke one that nobody uses.")
        return _page(request, form, status=422)
    return _page(request, TokenForm(initial={"scopes": ["read"]}), shown)


@require_POST
def revoke_token(request, pk: int):
    name = tokens.revoke(pk, request.user.get_username())
    if name is not None:
        messages.success(request, f"The token “{name}” opens nothing any more.")
    return redirect("api")


def _page(request, form: TokenForm, new_token: str | None = None, status: int = 200):
    records = ApiToken.objects.select_related("user")
    context = {
        "form": form,
        "new_token": new_token,
        "tokens": [{"record": one, "may": [SCOPES[scope][0] for scope in one.scopes]} for one in records],
        "groups": _groups(),
    }
    return render(request, "api/page.html", context, status=status)


def _groups() -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for route in ROUTES:
        needs = "any token" if len(route.scopes) == len(SCOPES) else " or ".join(s for s in SCOPES if s in route.scopes)
        found.setdefault(route.group, []).append({"route": route, "needs": needs})
    return found
