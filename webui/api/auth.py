"""Who asks: a bearer token instead of a session, so no cookie and no CSRF token is needed, or looked at."""

from collections.abc import Callable
from functools import wraps

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from accounts import tokens

View = Callable[..., HttpResponse]


def error(status: int, code: str, message: str) -> JsonResponse:
    """How every refusal of the API looks."""
    return JsonResponse({"error": {"code": code, "message": message}}, status=status)


def by_token(view: View) -> View:
    """Only with `Authorization: Bearer TOKEN`; the view finds the token's record in `request.token`."""

    @wraps(view)
    def checked(request: HttpRequest, *args, **kwargs) -> HttpResponse:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        record = tokens.owner(token.strip()) if scheme.lower() == "bearer" and token else None
        if record is None:
            answer = error(401, "unauthorized", "The API wants a token of this box: Authorization: Bearer TOKEN.")
            answer.headers["WWW-Authenticate"] = "Bearer"
            return answer
        request.token = record
        return view(request, *args, **kwargs)

    return csrf_exempt(login_not_required(checked))
