"""Set up, log in and out, change the password."""

from django.contrib import messages
from django.contrib.auth import get_user_model, login, logout, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from accounts import actions, limits, sessions
from accounts.forms import ChangePasswordForm, LogInForm, SetUpForm
from accounts.models import ApiToken
from applier.wire.client import ApplierDown, ApplierRefused, connect
from system import restoring
from web import backups, kept_input


@login_not_required
@sensitive_post_parameters()
def set_up(request):
    """Only while the applier says that a set-up code is active."""
    context = {"reset": get_user_model().objects.exists()}
    try:
        active = connect().setup_open()["open"]
    except (ApplierDown, ApplierRefused) as error:
        return render(request, "accounts/set_up_closed.html", context | {"down": str(error)}, status=503)
    if not active:
        return render(request, "accounts/set_up_closed.html", context, status=403)
    form = SetUpForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        user = _set_up(request, form)
        if user is not None:
            login(request, user, backend="django.contrib.auth.backends.ModelBackend")
            messages.success(request, "The box is yours. From now on you log in with this name and password.")
            return redirect("pair-join" if "join" in request.GET else "overview")
    return render(request, "accounts/set_up.html", context | {"form": form})


def _set_up(request, form: SetUpForm):
    data = form.cleaned_data
    try:
        return actions.set_up(data["code"], data["username"], data["password"], request.META["REMOTE_ADDR"])
    except actions.WrongCode as error:
        form.add_error("code", str(error))
    except actions.UnknownAdmin as error:
        form.add_error("username", f"This box has no admin of this name. It knows: {', '.join(error.known)}.")
    except (limits.Refused, ApplierDown, ApplierRefused) as error:
        form.add_error(None, str(error))
    return None


@method_decorator([login_not_required, sensitive_post_parameters()], name="dispatch")
class LogIn(LoginView):
    template_name = "accounts/login.html"
    authentication_form = LogInForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs):
        return super().get_context_data(
            over=self.request.session.get("over", False),
            kept=kept_input.KEY in self.request.session,
            unsaved=self.request.GET.get("unsaved") == "yes",
            **kwargs,
        )

    def post(self, request, *args, **kwargs):
        try:
            return super().post(request, *args, **kwargs)
        except limits.Refused as refused:
            return turned_away(request, refused)

    def form_valid(self, form):
        limits.TRIES.forget(self.request.META["REMOTE_ADDR"])
        answer = super().form_valid(form)
        self.request.session.pop("over", None)
        sessions.clear()
        backups.make_if_due()
        restoring.finish()
        return answer


@require_POST
def log_out(request):
    logout(request)
    messages.success(request, "You are logged out.")
    return redirect("login")


@sensitive_post_parameters()
def change_password(request):
    form = ChangePasswordForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        ended = form.save()
        update_session_auth_hash(request, request.user)
        messages.success(request, f"Your password is changed.{_and_tokens(ended)}")
        return redirect("system")
    tokens = ApiToken.objects.filter(user=request.user).count()
    return render(request, "accounts/password.html", {"form": form, "tokens": tokens})


def _and_tokens(ended: int) -> str:
    if not ended:
        return ""
    return f" Your API token{'s' * (ended != 1)} ended with the old one ({ended}): make new ones for your programs."


def turned_away(request, refused: limits.Refused):
    """Whatever the name and the password are: nobody has looked at them."""
    headers = {"Retry-After": str(refused.seconds)}
    return HttpResponse(
        render_to_string("accounts/turned_away.html", {"why": str(refused)}, request), status=429, headers=headers
    )


def locked_out(request, response=None, credentials=None):
    """django-axes: too many wrong passwords."""
    return render(request, "accounts/locked_out.html", status=429)
