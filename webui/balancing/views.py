"""Add, edit and delete a virtual service with its real servers; all of it in the draft."""

from django.contrib import messages
from django.db import transaction
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from balancing.editor import Editor, with_service
from balancing.models import VirtualService
from balancing.picture import picture
from changes import draft, merge
from changes.models import Removal
from fairlead.faults import not_found
from lbconfig import validate
from lbconfig.snapshot import CheckKind, Snapshot
from lbconfig.snapshot import VirtualService as VirtualServiceWish

SAVED = "Saved to the draft. The box runs it after you have reviewed and applied the changes."

MORE = ("check_host", "check_port", "check_interval", "check_timeout", "check_failures")


def add(request):
    if request.method == "POST":
        return _save(request, None)
    return _page(request, Editor.show(None))


def edit(request, pk: int):
    if request.method == "POST":
        return _save(request, pk)
    row = VirtualService.objects.filter(pk=pk).first()
    if row:
        return _page(request, Editor.show(row))
    if removal := Removal.objects.filter(service=pk).first():
        messages.info(request, f"{removal.changed_by} removed the virtual service {removal.name}.")
        return redirect("overview")
    return not_found(request, None)


def _save(request, pk: int | None):
    """`pk` None: a new service. From the first line on nobody else can write to the draft."""
    user = request.user.get_username()
    with transaction.atomic():
        row = VirtualService.objects.filter(pk=pk).first()
        removal = None if row else Removal.objects.filter(service=pk).first()
        if pk and row is None and removal is None:
            return not_found(request, None)
        editor = Editor.of(row, request.POST)
        if "add_server" in request.POST:
            return _page(request, editor.with_another_row(), again=removal is not None)
        if removal and request.POST.get("again") != "yes":
            return _page(request, editor.taken_back(removal, user), status=409, again=True)
        if row and editor.version != row.version:
            return _page(request, editor.merged(user), status=409)
        snapshot = draft.current()
        if not editor.is_valid(snapshot):
            return _page(request, editor, status=422, again=removal is not None)
        saved = editor.save(user, snapshot)
    messages.success(request, f"{saved.name}: {SAVED[0].lower()}{SAVED[1:]}")
    return redirect("overview")


def _page(request, editor: Editor, status: int = 200, again: bool = False):
    snapshot = draft.current()
    service = editor.preview(snapshot)
    context = {
        "editor": editor,
        "form": editor.form,
        "servers": editor.servers,
        "row": editor.row,
        "again": again,
        "picture": picture(service) if service else None,
        "service": service,
        "detection": _detection(service, snapshot),
        "gateways": own_addresses(snapshot),
        "more_open": editor.form.is_bound and any(name in editor.form.errors for name in MORE),
    }
    if request.headers.get("HX-Request"):
        status = 200  # htmx shows nothing of an answer that says "error"
    return render(request, "balancing/service.html", context, status=status)


def own_addresses(snapshot: Snapshot) -> list[str]:
    """What a real server may use as its default gateway: the box's fixed addresses, without the length."""
    return [text.partition("/")[0] for interface in snapshot.network.interfaces for text in interface.addresses]


def _detection(service: VirtualServiceWish | None, snapshot: Snapshot) -> float | None:
    """Seconds; None where nothing is checked or the form makes no sense yet."""
    if service is None or service.check.kind is CheckKind.OFF:
        return None
    return validate.worst_case_detection(service, with_service(snapshot, service))


@require_POST
def detection(request):
    """The sentence on how long a dead server goes unnoticed, for what stands in the form now."""
    snapshot = draft.current()
    service = Editor.of(None, request.POST).preview(snapshot)
    seconds = _detection(service, snapshot)
    return render(request, "balancing/detection.html", {"detection": seconds, "service": service})


def delete(request, pk: int):
    """Asks first; asks again when somebody changed the service since the question was on the screen."""
    row = VirtualService.objects.filter(pk=pk).first()
    if row is None:
        messages.info(request, "This virtual service is already removed.")
        return redirect("overview")
    moved = ""
    if request.method == "POST":
        with transaction.atomic():
            row = VirtualService.objects.filter(pk=pk).first() or row
            if request.POST.get("version") == str(row.version):
                draft.remove_service(row, request.user.get_username())
                messages.success(request, f"{row.name} is removed from the draft. The box runs it until you apply.")
                return redirect("overview")
        who, when = merge.who_and_when(row, request.user.get_username())
        moved = f"{who} changed this virtual service {when}, after you had opened this page."
    return render(request, "balancing/delete.html", {"row": row, "moved": moved}, status=409 if moved else 200)
