"""How the web UI and the console talk to the applier.

Every method returns the answer as plain data in the shapes of `applier.wire.shapes`, or raises ApplierDown or
ApplierRefused. `connect()` is the only way in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from applier.base.paths import Paths
from applier.wire.asking import Asking
from applier.wire.errors import ApplierDown, ApplierRefused
from lbconfig.model.lines import name_of

if TYPE_CHECKING:
    from applier.wire.shapes import (
        ApplyStarted,
        BundleReview,
        BundleSource,
        Certificate,
        CodeChecked,
        CodeMade,
        Diagnosis,
        DriftStatus,
        Event,
        GenerationEntry,
        InstallStarted,
        Nothing,
        PageKey,
        RepairStarted,
        Restored,
        Review,
        RoomMade,
        RuleCounter,
        RunStatus,
        SetupOpen,
        Status,
        Trial,
        UpdateState,
    )
    from applier.wire.shapes_capacity import Capacity, WatchStarted
    from applier.wire.shapes_joining import Asked, Joining
    from applier.wire.shapes_machine import MachineStatus
    from applier.wire.shapes_pair import AlongState, Brought, DrillState, PairState
    from applier.wire.shapes_rolling import Choice, Rolling
    from lbconfig.model.snapshot import Snapshot

__all__ = ["ApplierDown", "ApplierRefused", "Client", "connect"]


class Client(Asking):
    # Digest and snapshot of the last status that anybody here asked for. With a thousand services it is megabytes,
    # pages ask every two seconds, and it changes with an apply alone. Nobody writes into it.
    _held: tuple[str, dict[str, Any] | None] | None = None

    def status(self, known: Collection[str] = ()) -> Status:
        """`known`: digests of snapshots that the caller has; if one of them runs, the answer is without it."""
        held = Client._held
        answer: Status = self._ask("status", known=[*([held[0]] if held else []), *known])
        if answer["digest"] in known:
            return answer
        if held and answer["snapshot"] is None:
            answer["snapshot"] = held[1]
        Client._held = answer["digest"], answer["snapshot"]
        return answer

    def check(self, snapshot: Snapshot | dict[str, object]) -> Review:
        """What the snapshot would change; changes nothing."""
        return self._send("check", snapshot)

    def apply(
        self,
        snapshot: Snapshot | dict[str, object] | str,
        digest: str,
        base: int | None,
        user: str,
        comment: str = "",
        client: str = "",
        confirm_within: int | None = None,
    ) -> ApplyStarted:
        """Start to apply. `digest` and `base` as check() gave them; `client` is the admin's address.

        `snapshot` may be the digest that check() gave, for as long as the applier knows it (refusal
        "unknown-snapshot"): of a thousand services the snapshot itself is megabytes.

        `confirm_within`: seconds within which it has to be confirmed, or everything is undone; None: as the change
        needs it. Follow progress() until its state is one of shapes.ENDED.
        """
        return self._send(
            "apply", snapshot, digest=digest, base=base, user=user, comment=comment, client=client,
            confirm_within=confirm_within,
        )  # fmt: skip

    def progress(self) -> RunStatus | None:
        """The last apply or repair; quick, so one may ask often."""
        return self._ask("progress")

    def confirm(self, apply: str = "", secret: str = "", user: str = "") -> RunStatus:
        """Keep what waits: by the secret alone, or by the apply's id and one's name. The run as it is then."""
        return self._ask("confirm", apply=apply, secret=secret, user=user)

    def roll_back(self, apply: str = "", secret: str = "", user: str = "") -> RunStatus:
        """Take back what waits, by the same proofs. Answers at once; follow progress()."""
        return self._ask("roll_back", apply=apply, secret=secret, user=user)

    def pair_choose(self, user: str) -> Nothing:
        """Of two configurations that the boxes of a pair got while they were apart, that of this box stays."""
        return self._ask("pair_choose", user=user)

    def diagnose(self, service: int) -> Diagnosis:
        """Look for the usual faults of a service that runs; takes some seconds and changes nothing."""
        return self._ask("diagnose", service=service)

    def try_check(self, snapshot: Snapshot | dict[str, object], service: int) -> list[Trial]:
        """Ask every real server of that service once, by its health check; nothing is applied."""
        return self._send("try_check", snapshot, service=service)

    def rule_counters(self) -> list[RuleCounter]:
        """How often each of the admin's firewall rules has matched since the rules were loaded last."""
        return self._ask("rule_counters")

    def events(self) -> list[Event]:
        """Which real servers left and came back, and why; the newest first, a thousand at the most."""
        return self._ask("events")

    def look(self) -> DriftStatus:
        """Compare the kernel with what runs, now; changes nothing. Refused with "busy" while something is changed."""
        return self._ask("look")

    def repair(self, user: str) -> RepairStarted:
        """Start to repair what differs. Follow status()["apply"] until its state is in ENDED."""
        return self._ask("repair", user=user)

    def hardware(self) -> MachineStatus:
        """What the hardware is, and how far it is set as planned; takes a second and changes nothing."""
        return self._ask("hardware")

    def tune(self, object: str = "", user: str = "") -> MachineStatus:
        """Carry out what is planned and differs, of one object ("eth0") or of all; the machine as it is then."""
        return self._ask("tune", object=object, user=user)

    def generations(self) -> list[GenerationEntry]:
        """The newest first."""
        return self._ask("generations")

    def generation(self, number: int, files: bool = False) -> GenerationEntry:
        """With the text of its snapshot; `files`: also what was rendered from it."""
        return self._ask("generation", number=number, files=files)

    def setup_open(self) -> SetupOpen:
        """Whether a set-up code is active. It costs next to nothing: strangers have it asked."""
        return self._ask("setup_open")

    def setup_check(self, code: str) -> CodeChecked:
        """Whether it is the active one. Who asks for strangers counts how often (accounts.limits)."""
        return self._ask("setup_check", code=code)

    def setup_done(self, code: str) -> Nothing:
        """Spend the code. A wrong one is refused with "wrong-code"."""
        return self._ask("setup_done", code=code)

    def new_setup_code(self) -> CodeMade:
        """Make another one; for root alone."""
        return self._ask("new_setup_code")

    def make_room(self) -> RoomMade:
        """On a full data partition. For root alone."""
        return self._ask("make_room")

    def slots(self) -> UpdateState:
        """Both slots, an install under way, and what became of the last update."""
        return self._ask("slots")

    def update_sources(self) -> list[BundleSource]:
        """Bundles on USB sticks."""
        return self._ask("update_sources")

    def update_check(self, source: str) -> BundleReview:
        """What installing would do; writes nothing. `source`: as in update_sources(), or "upload:" and its number."""
        return self._ask("update_check", source=source)

    def update_install(self, source: str, user: str) -> InstallStarted:
        """Start to write the bundle to the slot that does not run. Follow slots()["job"]."""
        return self._ask("update_install", source=source, user=user)

    def update_forget(self) -> Nothing:
        """Throw an upload away that was checked and not installed. It makes room for the next one."""
        return self._ask("update_forget")

    def update_seen(self) -> Nothing:
        """The admin knows that the last update failed."""
        return self._ask("update_seen")

    def boot_slot(self, slot: str, user: str) -> Nothing:
        """Restart into the other slot."""
        return self._ask("boot_slot", slot=slot, user=user)

    def reboot(self, user: str) -> Nothing:
        """Restart the box."""
        return self._ask("reboot", user=user)

    def certificate(self) -> Certificate:
        """The box's own one of the web page."""
        return self._ask("certificate")

    def page_key(self) -> PageKey:
        """The same with its private key, for a backup file."""
        return self._ask("page_key")

    def restore(self, certificate: str, key: str, number: int, user: str) -> Restored:
        """Root's part of a backup file. `number`: of its newest revision."""
        return self._ask("restore", certificate=certificate, key=key, number=number, user=user)

    def capacity(self) -> Capacity:
        """What was measured, what the box forwards now, and a measurement under way."""
        return self._ask("capacity")

    def capacity_watch(self, seconds: int, user: str) -> WatchStarted:
        """Start to count what is forwarded while somebody loads the box. Follow capacity()["job"]."""
        return self._ask("capacity_watch", seconds=seconds, user=user)

    def capacity_between(self, sender: str, receiver: str, user: str) -> WatchStarted:
        """Start to measure between two ports that a cable joins; answers as capacity_watch does."""
        return self._ask("capacity_between", sender=sender, receiver=receiver, user=user)

    def capacity_stop(self, user: str) -> Nothing:
        """End it; what lasted until then is kept."""
        return self._ask("capacity_stop", user=user)

    def pair(self) -> PairState:
        """Both boxes of the pair, as this one knows them."""
        return self._ask("pair")

    def pair_hand_over(self, user: str) -> PairState:
        """Let the other box lead; answers once it does."""
        return self._ask("pair_hand_over", user=user)

    def pair_drills(self) -> DrillState:
        """What hand-overs that were tried have shown, and whether one is under way."""
        return self._ask("pair_drills")

    def pair_drill(self, back: bool, user: str) -> DrillState:
        """Begin to try a hand-over, and with `back` one by the other box afterwards. Follow pair_drills()."""
        return self._ask("pair_drill", back=back, user=user)

    def pair_hold(self, hours: int, user: str) -> PairState:
        """Keep this box from leading for so many hours; 0: until it is released."""
        return self._ask("pair_hold", hours=hours, user=user)

    def pair_release(self, user: str) -> PairState:
        """Let this box lead again where the other one fails."""
        return self._ask("pair_release", user=user)

    def pair_leave(self, user: str) -> ApplyStarted:
        """Leave the pair, of which the other box goes on alone. Follow progress()."""
        return self._ask("pair_leave", user=user)

    def pair_alone(self, user: str) -> ApplyStarted:
        """Go on without the other box of the pair. Follow progress()."""
        return self._ask("pair_alone", user=user)

    def pair_along(self, stamps: dict[str, str], trouble: str = "") -> AlongState:
        """Say by their stamps which documents are here, and hear which ones the other box of the pair has."""
        return self._ask("pair_along", stamps=stamps, trouble=trouble)

    def pair_offer(self, name: str, text: str) -> Nothing:
        """A document that the other box wants."""
        return self._ask("pair_offer", name=name, text=text)

    def pair_bring(self, name: str) -> Brought:
        """A document of the other box; "not-offered" where that one has still to put it there."""
        return self._ask("pair_bring", name=name)

    def pair_update(self) -> Rolling:
        """The update of both boxes that is under way, or the last one."""
        return self._ask("pair_update")

    def pair_update_ready(self) -> Nothing:
        """Hear before a bundle is uploaded why both boxes could not be updated with any."""
        return self._ask("pair_update_ready")

    def pair_update_start(self, source: str, user: str) -> Rolling:
        """Bring both boxes to the version of this bundle. `source`: as for update_check()."""
        return self._ask("pair_update_start", source=source, user=user)

    def pair_update_choose(self, choice: Choice, user: str) -> Rolling:
        """Stop the update of both boxes, go on, go back, or leave the boxes as they are."""
        return self._ask("pair_update_choose", choice=choice, user=user)

    def pair_joining(self) -> Joining:
        """Whether the box waits for its second one, and which one has come."""
        return self._ask("pair_joining")

    def pair_invite(self, user: str) -> Joining:
        """Wait for the second box, with a new code."""
        return self._ask("pair_invite", user=user)

    def pair_replace(self, user: str) -> Joining:
        """Wait for a new box instead of the other one of the pair, with a new code."""
        return self._ask("pair_replace", user=user)

    def pair_join(self, address: str, code: str, user: str) -> Joining:
        """Become the second box of the one at this address, which shows this code; takes some seconds."""
        return self._ask("pair_join", address=address, code=code, user=user)

    def pair_forget(self, user: str) -> Joining:
        """End an invitation, and forget the box that has come."""
        return self._ask("pair_forget", user=user)

    def pair_probe(self, addresses: list[str]) -> Asked:
        """Ask with ARP who has these; takes a second or two."""
        return self._ask("pair_probe", addresses=addresses)

    def factory_reset(self, hostname: str, user: str) -> Nothing:
        """Forget all that the box has kept, and restart. `hostname`: that of the box, as a proof of intent."""
        return self._ask("factory_reset", hostname=hostname, user=user)

    def _send(self, verb: str, snapshot: Snapshot | dict[str, object] | str, **fields: object) -> Any:
        """Ask with a snapshot, of which only those services are sent that the applier does not know.

        Of a thousand they are megabytes, and a change is about few of them.
        """
        if isinstance(snapshot, str):
            return self._ask(verb, snapshot=snapshot, services=[], **fields)
        named, services = _parted(snapshot)
        for again in (True, False):
            missing = self._ask("missing", names=list(services))
            needed = [_plain(services[name]) for name in missing]
            try:
                return self._ask(verb, snapshot=named, services=needed, **fields)
            except ApplierRefused as refusal:
                if refusal.code != "unknown-snapshot" or not again:
                    raise  # else: it has been restarted, or has read others since


def _dial() -> Client:
    return Client(Paths.from_environment().socket)


dial: Callable[[], Client] = _dial  # tests and `make dev` have a pretended appliance answer here (tests/fake)


def connect() -> Client:
    return dial()


def _parted(snapshot: Snapshot | dict[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Plain data with names instead of services, and the service of each name."""
    if not isinstance(snapshot, dict):
        from lbconfig.model import canonical  # only here: to load the model takes a small box most of a second

        return canonical.named(snapshot), {canonical.service_name(one): one for one in snapshot.services}
    services = snapshot.get("services")
    if not isinstance(services, list):
        return snapshot, {}
    names = [name_of(one) for one in services]
    return {**snapshot, "services": names}, dict(zip(names, services, strict=True))


def _plain(service: object) -> object:
    if isinstance(service, dict):
        return service
    from lbconfig.model.snapshot import plain  # as above

    return plain(service)


if __name__ == "__main__":
    from applier.wire.cli import main

    sys.exit(main())
