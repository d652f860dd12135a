"""Every route of the API: what it is called, who may use it, what goes in and what comes out."""

from __future__ import annotations

from functools import partial
from types import GenericAlias
from typing import TypedDict

from api import (
    capacity,
    changes,
    document,
    drafts,
    firewall,
    joining,
    pair,
    recovery,
    revisions,
    services,
    state,
    tokens,
    updates,
)
from api.bodies import (
    JSON,
    LARGE,
    MERGE_PATCH,
    ApplyRequest,
    BackupRequest,
    BetweenRequest,
    CardsRequest,
    CloneRequest,
    CommentRequest,
    DrillRequest,
    HoldRequest,
    JoinRequest,
    OperationRequest,
    PacketRequest,
    ResetRequest,
    TokenRequest,
    UpdateChoice,
    WatchRequest,
)
from api.routes import ANY, BINARY, Body, Query, Route
from api.schemas import Patch, Variant
from applier.wire.shapes import Diagnosis, DriftStatus, Event, Review, RuleCounter, RunStatus, Status
from applier.wire.shapes_capacity import Capacity
from applier.wire.shapes_joining import Joining
from applier.wire.shapes_machine import MachineStatus
from applier.wire.shapes_pair import DrillState, PairState
from applier.wire.shapes_rolling import Rolling
from lbconfig.model.snapshot import RealServer, Snapshot, VirtualService
from lbconfig.validate.fields import MAX_NAME

NEW_SERVER = Variant("NewRealServer", RealServer, without=("id",))
GIVEN_SERVER = Variant("GivenRealServer", RealServer, optional=("id",))
NEW_SERVICE = Variant(
    "NewVirtualService",
    VirtualService,
    without=("id",),
    other=(("real_servers", GenericAlias(tuple, (NEW_SERVER, ...))),),
)
GIVEN_SERVICE = Variant(
    "GivenVirtualService",
    VirtualService,
    optional=("id",),
    other=(("real_servers", GenericAlias(tuple, (GIVEN_SERVER, ...))),),
)
OUTLINE = Variant("StatusOfTheBox", Status, without=("snapshot",))
SHORT_REVIEW = Variant("ReviewOfTheDraft", Review, without=changes.NOT_SHOWN)
MERGE = (MERGE_PATCH, JSON)

READ, CHANGE, APPLY, ADMIN, BACKUP, RESET = (
    frozenset({scope}) for scope in ("read", "change", "apply", "admin", "backup", "reset")
)
UPDATE = frozenset({"apply", "update"})
BUNDLE = Body(None, kinds=(BINARY,), raw=True)

# What the parts of the draft are, in words; a part without words here has its name.
PARTS = {
    "network": "the box's own network",
    "management": "how the web page is reached: from where, on which interfaces, at which port, with which certificate",
    "sorry": "the sorry page",
    "policy": "how connections are treated",
    "tuning": "what is chosen about the hardware: kernel settings, queues, clock and sleep",
    "firewall": "the firewall rules of your own, in the order in which they are asked",
}

read = partial(Route, "GET", scopes=READ, changes=False)
changing = partial(Route, scopes=CHANGE)
LIMIT = {
    "limit": Query({"type": "integer", "minimum": 1, "maximum": 200}, "how many, 50 where it is not said"),
    "before": Query({"type": "integer", "minimum": 1, "maximum": 10**9}, "only revisions older than this number"),
}
SIDE = {"type": "string", "maxLength": 9}
SIDES = {
    "old": Query(SIDE, "the number of a revision, running or draft; running where it is not said"),
    "new": Query(SIDE, "the same; draft where it is not said"),
}
OBJECT = {
    "object": Query({"type": "string", "maxLength": 60}, "only of this object of the plan; all if it is not said")
}
NAME = {"name": Query({"type": "string", "maxLength": MAX_NAME}, "only the service of this name")}


class _Tagged(TypedDict):
    """What several routes of the same object have in common."""

    answer: object
    etag: bool


def _part(name: str, kind: type) -> list[Route]:
    words = PARTS.get(name, name)
    saved: _Tagged = {"answer": drafts.Saved, "etag": True}
    more = "Problems that it causes elsewhere are reported and prevent an apply, but not this change."
    return [
        read(f"/{name}", f"get_{name}", f"The draft: {words}", drafts.get_part(name), answer=kind, etag=True),
        changing(
            "PUT", f"/{name}", f"replace_{name}", f"Replace in the draft: {words}", drafts.put_part(name),
            body=Body(kind), if_match="required", words=more, **saved,
        ),
        changing(
            "PATCH", f"/{name}", f"change_{name}", f"Change in the draft: {words}", drafts.patch_part(name),
            body=Body(Patch(kind), kinds=MERGE), if_match="optional", words=more, **saved,
        ),
    ]  # fmt: skip


def _services() -> list[Route]:
    one = "/services/{service}"
    service: _Tagged = {"answer": VirtualService, "etag": True}
    return [
        read("/services", "list_services", "Virtual services", services.listed,
             answer=list[VirtualService], query=NAME),
        changing("POST", "/services", "create_service", "A new virtual service", services.create,
                 body=Body(NEW_SERVICE), status=201, **service),
        read(one, "get_service", "One virtual service", services.get, **service),
        changing("PUT", one, "replace_service", "Replace a virtual service", services.replace,
                 body=Body(GIVEN_SERVICE), if_match="required", **service),
        changing("PATCH", one, "change_service", "Change some fields of a virtual service", services.change,
                 body=Body(Patch(VirtualService, ("id",)), kinds=MERGE), if_match="optional", **service),
        changing("DELETE", one, "delete_service", "Remove a virtual service", services.delete,
                 status=204, if_match="required"),
        changing("POST", f"{one}/clone", "clone_service", "A new virtual service made from another", services.clone,
                 body=Body(CloneRequest, typed=True), status=201, **service),
        changing("POST", f"{one}/enable", "enable_service", "Enable a virtual service", services.switch(True),
                 if_match="optional", **service),
        changing("POST", f"{one}/disable", "disable_service", "Disable a virtual service", services.switch(False),
                 if_match="optional", **service),
        Route("POST", f"{one}/diagnose", "diagnose_service", "Look for the usual faults of a service that runs",
              state.diagnose, READ, answer=Diagnosis, changes=False, words="Takes some seconds and changes nothing."),
        Route("POST", f"{one}/try-check", "try_check", "Ask every server once by the draft's health check",
              state.try_check, APPLY, answer=state.Trials, changes=False, refusals=(409,),
              words="Asks the fallback server, too, if it is checked. It shows what servers answer, so it needs the "
                    "right to make the box ask them: that to apply."),
        *_servers(f"{one}/real_servers"),
    ]  # fmt: skip


def _servers(path: str) -> list[Route]:
    one = path + "/{server}"
    server: _Tagged = {"answer": RealServer, "etag": True}
    return [
        read(path, "list_real_servers", "Real servers of a service", services.servers, answer=list[RealServer]),
        changing("POST", path, "create_real_server", "A new real server", services.add_server,
                 body=Body(NEW_SERVER), status=201, **server),
        read(one, "get_real_server", "One real server", services.get_server, **server),
        changing("PUT", one, "replace_real_server", "Replace a real server", services.replace_server,
                 body=Body(GIVEN_SERVER), if_match="required", **server),
        changing("PATCH", one, "change_real_server", "Change some fields of a real server", services.change_server,
                 body=Body(Patch(RealServer, ("id",)), kinds=MERGE), if_match="optional", **server),
        changing("DELETE", one, "delete_real_server", "Remove a real server", services.delete_server,
                 status=204, if_match="required"),
    ]  # fmt: skip


def _history() -> list[Route]:
    one = "/history/{number}"
    return [
        read("/history", "list_revisions", "What was applied, the newest first", revisions.listed,
             answer=list[revisions.RevisionEntry], query=LIMIT, needs_draft=False),
        read("/history/compare", "compare_revisions", "How two states of the box differ", revisions.compare,
             answer=revisions.Compared, query=SIDES),
        read(one, "get_revision", "One revision with its steps and its configuration", revisions.get,
             answer=revisions.WholeRevision, needs_draft=False),
        changing("POST", f"{one}/comment", "comment_revision", "Another comment on a revision", revisions.comment,
                 body=Body(CommentRequest, typed=True), answer=revisions.RevisionEntry, needs_draft=False),
        changing("POST", f"{one}/restore", "restore_revision", "Make the draft what this revision was",
                 revisions.restore, answer=Snapshot, etag=True, if_match="optional", refusals=(409,)),
    ]  # fmt: skip


ROUTES: list[Route] = [
    Route("GET", "/openapi.json", "get_openapi", "This document", document.get, ANY, answer=dict, changes=False,
          needs_draft=False),
    Route("GET", "/token", "get_token", "Who asks, and what he may", state.whoami, ANY, answer=state.Scopes,
          changes=False, needs_draft=False),
    read("/status", "get_status", "What the box does now", state.status, answer=OUTLINE, needs_draft=False),
    read("/running", "get_running", "The configuration that runs", state.running, answer=Snapshot, etag=True,
         needs_draft=False),
    read("/draft", "get_draft", "The whole draft", drafts.get_draft, answer=Snapshot, etag=True),
    changing("PUT", "/draft", "replace_draft", "Replace the whole draft", drafts.put_draft,
             body=Body(Snapshot, LARGE), answer=Snapshot, etag=True, if_match="required"),
    changing("POST", "/draft/discard", "discard_draft", "Make the draft what the box runs", drafts.discard,
             answer=Snapshot, etag=True, if_match="optional"),
    changing("POST", "/draft/cards", "take_cards", "Take other network cards in every place of the draft",
             drafts.take_cards, body=Body(CardsRequest, typed=True), answer=Snapshot, etag=True, if_match="optional",
             words="For a draft from another box. The review names the cards that are missing, and those to take."),
    read("/draft/review", "review_draft", "What applying the draft would change", changes.review,
         answer=SHORT_REVIEW),
    *_services(),
    *(route for name, kind in drafts.PARTS.items() for route in _part(name, kind)),
    Route("POST", "/check", "check_snapshot", "What applying a given configuration would change", changes.check, READ,
          body=Body(Snapshot, LARGE), answer=SHORT_REVIEW, changes=False, words="None of it is stored."),
    Route("POST", "/applies", "apply_draft", "Make the box run the draft, as it was reviewed", changes.apply, APPLY,
          body=Body(ApplyRequest, typed=True), answer=changes.ApplyBegun, status=202, refusals=(409,)),
    read("/applies/{apply}", "get_apply", "How far an apply is, and how it ended", changes.progress,
         answer=RunStatus, needs_draft=False),
    Route("POST", "/applies/{apply}/confirm", "confirm_apply", "Keep a change that waits to be confirmed",
          changes.confirm, APPLY, answer=RunStatus, needs_draft=False,
          words="Over a connection that was made after the change: it proves that the box can be reached."),
    Route("POST", "/applies/{apply}/roll-back", "roll_back_apply", "Take back a change that waits to be confirmed",
          changes.roll_back, APPLY, answer=RunStatus, needs_draft=False),
    Route("POST", "/operations", "operate", "Drain, halt or resume a real server at once", state.operate, APPLY,
          body=Body(OperationRequest, typed=True), answer=changes.ApplyStarted, status=202, refusals=(409,)),
    *_history(),
    read("/events", "list_events", "Which real servers and services left and came back, and why; the newest first",
         state.events, answer=list[Event], needs_draft=False),
    Route("GET", "/firewall/counters", "count_rules", "How often each firewall rule that runs has matched",
          firewall.counters, READ, answer=list[RuleCounter], changes=False, needs_draft=False),
    Route("POST", "/firewall/test", "try_packet", "Would this packet pass, and by which rule?", firewall.test, READ,
          body=Body(PacketRequest, typed=True), answer=firewall.Verdicts, changes=False,
          words="By the draft, and by what runs. Nothing is sent."),
    Route("POST", "/backup", "make_backup", "A backup file of the whole box", recovery.backup, BACKUP,
          body=Body(BackupRequest, typed=True), answer=BINARY,
          words="Configuration, users, tokens, history and certificate, encrypted with the passphrase."),
    Route("POST", "/factory-reset", "reset_box", "Forget all that was set up, in both slots, and restart",
          recovery.factory_reset, RESET, body=Body(ResetRequest, typed=True), status=202, needs_draft=False,
          refusals=(409,)),
    read("/drift", "get_drift", "Where the box does not run what it should", state.drift, answer=DriftStatus,
         needs_draft=False, words="The box looks by itself once a minute; what it saw only once is not told yet."),
    Route("POST", "/drift/look", "look_for_drift", "Compare the box with its configuration now", state.look, READ,
          answer=DriftStatus, changes=False, needs_draft=False, refusals=(409,)),
    Route("POST", "/drift/repair", "repair_drift", "Repair what differs from the configuration that runs",
          state.repair, APPLY, answer=changes.ApplyStarted, status=202, needs_draft=False, refusals=(409,)),
    read("/hardware", "get_hardware", "The hardware: what is wrong with it, who does its work, how it is set",
         state.hardware, answer=MachineStatus, needs_draft=False,
         words="It asks every network card, which takes a moment. Where `findings` is empty nothing is wrong."),
    Route("POST", "/hardware/tune", "tune_hardware", "Set the hardware as planned, where it is not",
          state.tune, APPLY, answer=MachineStatus, query=OBJECT, needs_draft=False, refusals=(409,),
          words="Fixes the findings that have a button; what is as planned stays untouched. Answers how it is then."),
    read("/capacity", "get_capacity", "What the box can forward, and how near it is to that", capacity.state,
         answer=Capacity, needs_draft=False),
    Route("POST", "/capacity/watch", "measure_capacity", "Count what the box forwards while your clients send",
          capacity.watch, APPLY, body=Body(WatchRequest, typed=True), answer=capacity.WatchStarted, status=202,
          needs_draft=False, refusals=(409,), words="The highest rate that lasted without a drop is kept."),
    Route("POST", "/capacity/between", "measure_between_ports",
          "Send between two free ports of the box that a cable joins, and look for the highest rate without a loss",
          capacity.between, APPLY, body=Body(BetweenRequest, typed=True), answer=capacity.WatchStarted, status=202,
          needs_draft=False, refusals=(409, 422)),
    Route("POST", "/capacity/stop", "stop_measuring", "End a measurement; what lasted until then is kept",
          capacity.stop, APPLY, answer=Capacity, needs_draft=False, refusals=(409,)),
    read("/pair", "get_pair", "Both boxes of the pair: who leads since when and why, and what each of them lacks",
         pair.state, answer=PairState, needs_draft=False, words="Where `boxes` is empty this box is in no pair."),
    Route("POST", "/pair/hand-over", "hand_over", "Let the other box of the pair lead", pair.hand_over, APPLY,
          answer=PairState, needs_draft=False, refusals=(409,),
          words="Asked of the box that leads; it answers once the other one does."),
    read("/pair/drills", "get_drills", "What hand-overs that were tried have shown, the newest first", pair.drills,
         answer=DrillState, needs_draft=False, words="`running` is empty where none is under way."),
    Route("POST", "/pair/drill", "try_hand_over", "Hand over to see how long the addresses are silent", pair.drill,
          APPLY, body=Body(DrillRequest, typed=True), answer=DrillState, status=202, needs_draft=False,
          refusals=(409,), words="Asked of the box that leads. Ask /pair/drills until `running` is empty."),
    Route("POST", "/pair/hold", "hold_box", "Keep this box of the pair from leading", pair.hold, APPLY,
          body=Body(HoldRequest, typed=True), answer=PairState, needs_draft=False, refusals=(409,),
          words="Where this box leads, the other one does so first. A restart does not end a hold."),
    Route("DELETE", "/pair/hold", "release_box", "Let this box of the pair lead again where the other one fails",
          pair.release, APPLY, answer=PairState, needs_draft=False, refusals=(409,)),
    Route("POST", "/pair/choose", "choose_configuration", "Of two configurations made apart, keep that of this box",
          pair.choose, APPLY, answer=PairState, needs_draft=False, refusals=(409,),
          words="The other box follows; what it ran stays in its history."),
    Route("DELETE", "/pair", "leave_pair", "Take this box out of the pair", pair.leave, ADMIN,
          answer=changes.ApplyStarted, status=202, needs_draft=False, refusals=(409,),
          words="Its services are switched off, and the other box goes on alone with all that floats."),
    Route("POST", "/pair/alone", "go_on_alone", "Let this box go on without the other one of the pair", pair.alone,
          ADMIN, answer=changes.ApplyStarted, status=202, needs_draft=False, refusals=(409,),
          words="The other one leaves the pair. Where it is not heard, make sure that it is off and stays off."),
    Route("GET", "/pair/update", "get_pair_update", "The update of both boxes that is under way, or the last one",
          updates.both, UPDATE | READ, answer=Rolling, changes=False, needs_draft=False),
    Route("POST", "/pair/update", "update_pair", "Update both boxes, one after the other; the body is the bundle",
          updates.update_both, UPDATE, body=BUNDLE, answer=Rolling, status=202, needs_draft=False,
          refusals=(400, 409, 411, 413, 507),
          words="Asked of the box that leads. An older version than the one that runs needs `admin` as well."),
    Route("POST", "/pair/update/choice", "choose_pair_update", "Stop the update of both boxes, go on, go back, end it",
          updates.choose, UPDATE, body=Body(UpdateChoice, typed=True), answer=Rolling, needs_draft=False,
          refusals=(409, 422), words="`choices` has what is possible now. To go back needs `admin` as well."),
    read("/pair/joining", "get_joining", "Whether the box waits for its second one, or knows one", joining.state,
         scopes=ADMIN, answer=Joining, needs_draft=False),
    Route("POST", "/pair/code", "make_pair_code", "Wait ten minutes for a second box that brings this code",
          joining.invite, ADMIN, answer=Joining, status=201, needs_draft=False, refusals=(409,)),
    Route("POST", "/pair/replace", "replace_box", "Wait ten minutes for a new box instead of the other one of the pair",
          joining.replace, ADMIN, answer=Joining, status=201, needs_draft=False, refusals=(409,),
          words="The new box joins with the code; then put it into the draft with /pair/replacement."),
    Route("POST", "/pair/replacement", "propose_replacement", "Put the new box of the pair into the draft",
          joining.propose_replacement, frozenset({"admin"}), answer=joining.Proposed, refusals=(409, 422),
          words="With its cards as the page proposes them."),
    Route("POST", "/pair/join", "join_pair", "Become the second box of the one that shows a code", joining.join, ADMIN,
          body=Body(JoinRequest, typed=True), answer=Joining, needs_draft=False, refusals=(409, 422),
          words="It takes some seconds. The pair is made at the other box."),
    Route("POST", "/pair/proposal", "propose_pair", "Put the pair of the two boxes that know each other into the draft",
          joining.propose, frozenset({"admin"}), answer=joining.Proposed, refusals=(409, 422),
          words="As the page proposes it. Change the draft afterwards, or apply it."),
    Route("DELETE", "/pair/joining", "forget_joining", "Wait for no box, and know none", joining.forget, ADMIN,
          answer=Joining, needs_draft=False),
    Route("GET", "/tokens", "list_tokens", "Your tokens", tokens.listed, ADMIN, answer=list[tokens.TokenEntry],
          changes=False, needs_draft=False),
    Route("POST", "/tokens", "create_token", "A new token of yours", tokens.make, ADMIN,
          body=Body(TokenRequest, typed=True), answer=tokens.NewToken, status=201, needs_draft=False,
          words="The token is in this answer and nowhere else.", refusals=(409,)),
    Route("DELETE", "/tokens/{token}", "revoke_token", "Revoke a token of yours", tokens.revoke, ADMIN, status=204,
          needs_draft=False),
    Route("GET", "/update", "get_update", "What runs, what the other slot holds, an install under way",
          updates.state, UPDATE | READ, answer=updates.VersionState, changes=False, needs_draft=False),
    Route("POST", "/update", "install_update", "Check a bundle and install it; the body is the file",
          updates.install, UPDATE, body=BUNDLE, answer=updates.InstallStarted, status=202, needs_draft=False,
          refusals=(400, 409, 411, 413, 507), words="An older version than the one that runs needs `admin` as well."),
    Route("POST", "/update/restart", "restart_into_update", "Restart into the other slot", updates.restart, UPDATE,
          answer=updates.Restarted, status=202, needs_draft=False, refusals=(409,),
          words="What was not installed just now, such as the version before, needs `admin` as well."),
]  # fmt: skip
