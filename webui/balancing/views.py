"""Add, edit and delete a virtual service with its real servers; all of it in the draft."""

from dataclasses import replace

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from applier.wire.client import ApplierDown, ApplierRefused, connect
from applier.wire.shapes import Event
from balancing import operations, server_setup
from balancing.editor import Editor, with_service
from balancing.forms import MORE, OperationForm, ServiceForm
from balancing.operations import Operation
from balancing.picture import picture
from balancing.presets import PRESETS
from balancing.server_systems import PLAIN, SYSTEMS, System
from draft import merge
from draft import store as draft
from draft.frame import look
from draft.models import Removal, Service
from lbconfig.model import checks, names
from lbconfig.model.addresses import endpoint
from lbconfig.model.checks import worst_case_detection
from lbconfig.model.snapshot import GUE_PORT, AgentKind, CheckKind, Forwarding, Snapshot, SnapshotError, VirtualService
from lbconfig.pair import one_armed
from lbconfig.validate.balance import BY_WEIGHT
from web.faults import not_found
from web.kept_input import given_back, keeps_input

SAVED = "Saved to the draft. The box runs it after you have reviewed and applied the changes."

EVENTS = 50  # of a server, on its page
CHECK_FIELDS = sorted({name for kind in checks.KINDS.values() for name in kind.fields})


@keeps_input
def add(request):
    if request.method == "POST":
        return _save(request, None)
    like = request.GET.get("like", "")
    known = like.isascii() and like.isdigit() and len(like) < 19
    row = draft.service(int(like)) if known else None
    if preset := PRESETS.get(request.GET.get("preset", "")):
        return _page(request, Editor.begin(preset))
    return _page(request, Editor.copy(row) if row else Editor.show(None))


@keeps_input
def edit(request, pk: int):
    if request.method == "POST":
        return _save(request, pk)
    row = draft.service(pk)
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
        row = draft.service(pk) if pk else None
        removal = Removal.objects.filter(service=pk).first() if pk and not row else None
        if pk and row is None and removal is None:
            return not_found(request, None)
        editor = Editor.of(row, request.POST)
        if given_back(request):
            return _page(request, editor, again=removal is not None)
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
        "detection": _detection(service),
        "gateways": own_addresses(snapshot),
        "presets": PRESETS if editor.row is None and not editor.form.is_bound and not editor.copy_of else None,
        "open": {part: _opens(editor, fields) for part, fields in MORE.items()},
        "one_armed": editor.row is None and not editor.copy_of and not editor.form.is_bound and one_armed(snapshot),
        "common_forwarding": [str(one) for one in names.COMMON_FORWARDING],
        "gue_port": GUE_PORT,
        "follows_load": _follows_load(editor.form),
        "by_weight": ", ".join(names.SCHEDULERS[one].long for one in BY_WEIGHT),
        "common_schedulers": [str(one) for one in names.COMMON_SCHEDULERS],
        "common_checks": [str(one) for one in names.COMMON_CHECKS],
        "checks_with": {name: " ".join(checks.using(name)) for name in CHECK_FIELDS},
        "checks_by_port": " ".join(kind for kind in checks.KINDS if kind not in (CheckKind.PING, CheckKind.OFF)),
        "checks_at_all": " ".join(kind for kind in checks.KINDS if kind is not CheckKind.OFF),
    }
    if request.headers.get("HX-Request"):
        status = 200  # htmx shows nothing of an answer that says "error"
    return render(request, "balancing/service.html", context, status=status)


def _opens(editor: Editor, fields: tuple[str, ...]) -> bool:
    if editor.form.is_bound:
        return any(name in editor.form.errors for name in fields)
    return any(getattr(editor.form.fields[name], "note", "") for name in fields)


def _follows_load(form: ServiceForm) -> bool:
    """Whether something is entered that the form does not show at first."""
    kind = form["agent_kind"].value()
    return kind != AgentKind.OFF or bool(form["slow_start"].value() or form["least_healthy_servers"].value())


def own_addresses(snapshot: Snapshot) -> list[str]:
    """What a real server may use as its default gateway: the box's fixed addresses, without the length."""
    return [text.partition("/")[0] for interface in snapshot.network.interfaces for text in interface.addresses]


@require_POST
def operate(request):
    """Drain, halt or resume a real server, in one service or in all of them."""
    form = OperationForm(request.POST)
    back = redirect("overview")
    if not form.is_valid():
        messages.error(request, "This page was incomplete; nothing was done. Try again.")
        return back
    operation = Operation(**form.cleaned_data)
    try:
        run = operations.carry_out(operation, request.user.get_username(), request.META["REMOTE_ADDR"])
    except (operations.Refused, ApplierDown, ApplierRefused, SnapshotError) as error:
        messages.error(request, f"{operations.WORDS[operation.state]} {operation.address}: {error}")
        return back
    done = f"{operations.WORDS[operation.state]} {operation.address}"
    messages.info(request, f"{done}: only this is applied, not the draft.")
    return redirect("progress", apply_id=run)


def server(request, address: str):
    """One real server in all services that have it."""
    snapshot = look(request).running or draft.current()
    places = [
        {
            "service": service,
            "where": endpoint(service.address, service.port),
            "state": names.SERVER_STATES[one.state].long,
            "name": one.name,
        }
        for service in snapshot.services
        for one in service.real_servers
        if one.address == address
    ]
    if not places:
        return not_found(request, None)
    try:
        events = [one for one in connect().events() if _concerns(one, address, places)][:EVENTS]
    except (ApplierDown, ApplierRefused):
        events = []
    return render(request, "balancing/server.html", {"address": address, "places": places, "events": events})


def doctor(request, pk: int):
    """What is wrong with a service that runs, and what to do about it."""
    row = draft.service(pk)
    if row is None:
        return not_found(request, None)
    context: dict[str, object]
    try:
        context = {"diagnosis": connect().diagnose(pk)}
    except (ApplierDown, ApplierRefused) as error:
        context = {"refused": str(error)}
    return render(request, "balancing/doctor.html", context | {"row": row})


def servers(request, pk: int):
    """What each real server of a service needs, with a script where it needs more than a gateway."""
    row = draft.service(pk)
    if row is None:
        return not_found(request, None)
    key, system = _system(request)
    setups = [
        {
            "needs": one,
            "gateways": [(gateway, system.gateway_command(gateway)) for gateway in one.gateways],
            "fits": one.possible_on(system),
            "possible": [names.FORWARDING[kind].long for kind in Forwarding if kind in system.tunnels],
            "script": server_setup.script(one, system) if one.scripted_on(system) else "",
        }
        for one in _setups(row)
    ]
    context = {"row": row, "setups": setups, "systems": SYSTEMS, "key": key, "system": system}
    return render(request, "balancing/setup.html", context)


def server_script(request, pk: int, address: str):
    """The script for one of them, as a file."""
    row = draft.service(pk)
    setup = next((one for one in _setups(row) if one.address == address), None) if row else None
    _, system = _system(request)
    if setup is None or not setup.scripted_on(system):
        return not_found(request, None)
    answer = HttpResponse(server_setup.script(setup, system), content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{system.file}"'
    return answer


def _concerns(event: Event, address: str, places: list[dict]) -> bool:
    """Whether an event is of this server, or of one of its services as a whole."""
    return event["server"] == address or (
        not event["server"] and event["service"] in [place["service"].id for place in places]
    )


def _system(request) -> tuple[str, System]:
    """Of the real server, as the admin chose it."""
    key = request.GET.get("system", "")
    return (key, SYSTEMS[key]) if key in SYSTEMS else (PLAIN, SYSTEMS[PLAIN])


def _setups(row: Service) -> list[server_setup.ServerSetup]:
    """Of each server of the service; as if it were enabled, because servers are set up before."""
    service = replace(row.wish, enabled=True)
    snapshot = with_service(draft.current(), service)
    return [
        server_setup.setup_of(snapshot, one) for one in dict.fromkeys(real.address for real in service.real_servers)
    ]


def _detection(service: VirtualService | None) -> float | None:
    """Seconds; None where nothing is checked or the form makes no sense yet."""
    return worst_case_detection(service.check) or None if service else None


@keeps_input
@require_POST
def detection(request):
    """The sentence on how long a dead server goes unnoticed, for what stands in the form now."""
    snapshot = draft.current()
    service = Editor.of(None, request.POST).preview(snapshot)
    seconds = _detection(service)
    return render(request, "balancing/detection.html", {"detection": seconds, "service": service})


@keeps_input
@require_POST
def try_check(request, pk: int | None = None):
    """Ask the servers that stand in the form, by the check that stands in the form; nothing is saved or applied."""
    snapshot = draft.current()
    row = draft.service(pk) if pk else None
    service = Editor.of(row, request.POST).preview(snapshot)
    context: dict[str, object]
    if service is None:
        context = {"refused": "Some fields are not filled in or make no sense yet; saving says which."}
    else:
        try:
            trials = connect().try_check(with_service(snapshot, service), service.id)
            context = {"trials": [one | {"place": endpoint(one["server"], one["port"])} for one in trials]}
        except ApplierRefused as error:
            words = [f"{one['object']}, {one['field']}: {one['message']}." for one in error.problems]
            context = {"refused": " ".join([error.message, *words])}
        except ApplierDown as error:
            context = {"refused": str(error)}
    return render(request, "balancing/trial.html", context)


def delete(request, pk: int):
    """Asks first; asks again when somebody changed the service since the question was on the screen."""
    row = draft.service(pk)
    if row is None:
        messages.info(request, "This virtual service is already removed.")
        return redirect("overview")
    moved = ""
    if request.method == "POST":
        with transaction.atomic():
            row = draft.service(pk) or row
            if request.POST.get("version") == str(row.version):
                draft.remove_service(row, request.user.get_username())
                messages.success(request, f"{row.name} is removed from the draft. The box runs it until you apply.")
                return redirect("overview")
        who, when = merge.who_and_when(row, request.user.get_username())
        moved = f"{who} changed this virtual service {when}, after you had opened this page."
    return render(request, "balancing/delete.html", {"row": row, "moved": moved}, status=409 if moved else 200)
