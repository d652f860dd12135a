"""The shapes of the answers, as they come out of `applier.wire.client` and `tests.fake`.

All times of day are text in UTC, "2026-01-31T12:00:00Z"; all durations are seconds.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from applier.wire.shapes_capacity import LoadStatus
from applier.wire.shapes_pair import PairLine
from lbconfig.model import problem as model

Health = Literal["up", "down", "checking", "draining", "disabled", "unchecked", "kept", "waiting"]
StepState = Literal["waiting", "running", "done", "failed", "undone", "skipped"]

# waiting: all steps are done; without a confirmation in time everything is undone. returning: that happens now.
# done: the new configuration runs and is confirmed.
# not confirmed: nobody confirmed it in time, or somebody took it back; the box runs again what it ran before.
# rolled back: something failed, and the box runs again what it ran before.
# failed: something failed, and putting it back failed as well; a fault says what is left.
RunState = Literal["running", "waiting", "returning", "done", "rolled back", "not confirmed", "failed"]
RunKind = Literal["apply", "repair"]  # repair: to what should run already
ENDED: frozenset[str] = frozenset({"done", "rolled back", "not confirmed", "failed"})  # of the states above

# applying, waiting: under way. interrupted: the power or the daemon went away in the middle of it.
# damaged: its files cannot be read any more. not chosen: it ran while the boxes of a pair were apart, and then
# somebody chose the other box's.
Outcome = Literal[
    "applying", "waiting", "confirmed", "rolled back", "not confirmed", "failed", "interrupted", "damaged", "not chosen"
]
Ending = Literal["rolled back", "not confirmed", "failed"]  # of a run and of its generation, where it was put back
UNDER_WAY: frozenset[str] = frozenset({"applying", "waiting"})  # of the outcomes above


class Problem(TypedDict):
    object: str  # "virtual service 'web'"
    field: str  # "port"
    message: str  # a sentence without the object
    path: str  # "services[id=3].port"


def of_problem(problem: model.Problem) -> Problem:
    """What validation found, as an answer has it."""
    return {"object": problem.object, "field": problem.field, "message": problem.message, "path": problem.path}


class Refusal(TypedDict):
    """Why the applier said no; applier.wire.errors.ApplierRefused is made of it."""

    code: str
    message: str  # a sentence for the admin
    problems: list[Problem]  # empty where there is none to name


class Fault(TypedDict):
    code: str  # "data-full"
    message: str  # a sentence for the admin
    since: str


class RealServerStatus(TypedDict):
    id: int
    address: str
    port: int
    weight: int  # in the kernel's table; 0 also when it is not in the table
    active: int
    inactive: int
    share: int | None  # per cent of its weight, by the load; None: its weight stays as it is
    agent: str  # what its agent wants, such as "drain"; empty: connections
    health: Health  # kept: it fails, and stays for want of others; waiting: it is well, and too few others are
    since: str  # of "down": when the checks said so; empty: nobody knows
    reason: str  # of "down": the check's own words, "503 Service Unavailable"; empty: nobody knows


class Event(TypedDict):
    """A real server left, is kept though it fails, or came back; or a whole service stands aside or serves again."""

    when: str
    service: int
    name: str  # of the service, at that time
    server: str  # "": the service as a whole
    port: int  # 0: of no server alone, or the port that the client asked for
    state: Literal["up", "down", "kept", "aside"]
    reason: str  # the check's own words, or how many servers are well
    failures: int  # checks that failed one after the other
    seconds: float  # that the last check took


class FallbackStatus(TypedDict):
    address: str
    port: int
    serves: bool  # it is in the table: all real servers are down
    health: Literal["up", "down", "checking", "unchecked"]
    since: str  # of "down": when the checks said so; empty: nobody knows
    reason: str  # of "down": the check's own words; empty: nobody knows
    active: int
    inactive: int


class ServiceStatus(TypedDict):
    id: int
    name: str
    table: bool  # the kernel's table has it
    real_servers: list[RealServerStatus]
    fallback: FallbackStatus | None
    aside: bool  # too few servers are up, so none serves


class RunningStatus(TypedDict):
    services: list[ServiceStatus]


class InterfaceStatus(TypedDict):
    name: str
    mac: str
    up: bool
    addresses: list[str]  # "10.1.0.2/24", with those that DHCP brought and the VIPs
    kind: str  # "", "vlan", "bond", "bridge"
    master: str  # the bond or bridge that it is a member of
    mtu: int  # bytes
    speed: int  # Mbit/s; 0: not known


class StepStatus(TypedDict):
    name: str
    title: str
    state: StepState
    seconds: float
    detail: str


class ConfirmStatus(TypedDict):
    within: int  # seconds
    reasons: list[str]  # sentences: why the change may cut the admin off; empty: the admin asked for it
    addresses: list[str]  # where the web UI is reached after the change
    dhcp: list[str]  # interfaces of which DHCP will bring one more
    left: float | None  # seconds; None: it does not wait, yet or any more
    waited: float | None  # seconds since the last step ended


class RunStatus(TypedDict):
    id: str
    kind: RunKind
    user: str
    state: RunState
    steps: list[StepStatus]
    generation: int | None
    message: str
    confirm: ConfirmStatus | None  # None: it is confirmed as soon as everything runs


class DataStatus(TypedDict):
    total: int  # bytes; 0 when there is no data partition
    free: int


class Difference(TypedDict):
    """Something that is not as the running configuration says."""

    where: Literal["table", "firewall", "links", "addresses", "routes", "settings", "checks", "pair"]
    object: str  # "virtual service 'web'"
    wanted: str  # what should be
    present: str  # what is
    why: str  # a sentence: why it matters
    disturbs: str  # a sentence: what repairing it does to connections; empty: nothing


class DriftStatus(TypedDict):
    """Where the box does not run what it should, as it was looked at last."""

    looked: str  # when; empty: not since the system was changed last
    count: int
    differences: list[Difference]  # the first hundred
    fresh: int  # more that were seen this once; they are told if they are still there a moment later
    trouble: str  # sentences: what could not be compared, and why


class Status(TypedDict):
    version: str
    generation: int | None  # what runs; None: the factory configuration
    confirmed: int | None  # what the next boot loads; None: nothing was ever confirmed
    # What runs, as plain data (lbconfig.model.snapshot.from_data reads it), only to be read; None: the caller has it.
    snapshot: dict[str, Any] | None
    digest: str  # lbconfig.model.snapshot.digest of it
    box: int | None  # of a pair: which of its boxes this one is (0, 1); None: it is alone
    running: RunningStatus
    interfaces: list[InterfaceStatus]
    faults: list[Fault]
    setup_code_active: bool
    apply: RunStatus | None  # the one under way, or the last one since the daemon started
    start: RunStatus | None  # the daemon's own way to the confirmed generation, at boot
    data: DataStatus
    uptime: float
    update: UpdateOutcome | None  # what became of the last update
    drift: DriftStatus
    load: LoadStatus | None  # None: what this hardware can do was never measured
    pair: PairLine | None  # None: the box is in no pair


SlotName = Literal["A", "B"]


class SlotConfiguration(TypedDict):
    number: int  # of the generation that it loads when it starts; 0: none, it is as delivered
    created: str
    comment: str


class SlotStatus(TypedDict):
    name: SlotName
    booted: bool
    next: bool  # starts at the next restart
    version: str  # empty: nothing that can be started
    good: bool  # it came up at least once since it was installed
    can_start: bool
    installed: str  # a time; empty: not by an update
    user: str
    configuration: SlotConfiguration | None  # None: it takes along what the running slot has


class UpdateJob(TypedDict):
    id: str
    user: str
    version: str
    slot: str
    state: Literal["running", "done", "failed"]
    percent: int
    message: str  # what it does, or how it ended


class UpdateOutcome(TypedDict):
    slot: str
    version: str
    from_version: str
    user: str
    kind: Literal["update", "return"]  # return: to what the slot held already
    state: Literal["installed", "trying", "good", "failed"]
    since: str
    seen: bool
    sentence: str


class UpdateState(TypedDict):
    present: bool  # False: this box has no slots, so it cannot be updated
    slots: list[SlotStatus]  # empty where there are none
    limit: int  # bytes of the largest bundle that fits; 0 where there are no slots
    job: UpdateJob | None  # the install under way, or the last one since the daemon started
    outcome: UpdateOutcome | None
    restart_seconds: float | None  # from the kernel's start until the box forwarded, the last time; None: not known


class BundleSource(TypedDict):
    source: str  # give it to update_check and update_install
    name: str
    stick: str
    size: int
    version: str
    build: str
    problem: str  # why it cannot be installed; empty: it can


class BundleReview(TypedDict):
    source: str
    version: str
    build: str
    size: int  # bytes of the image
    slot: str  # where it would go
    replaces: str  # the version that is there now; empty: none
    older: bool  # than the one that runs
    notes: list[str]  # what an admin should know first


class Change(TypedDict):
    kind: Literal["added", "changed", "removed"]
    object: str
    sentences: list[str]
    impact: str | None


class Reach(TypedDict):
    """Whether the change may cut the admin off, and where the box is reached after it."""

    reasons: list[str]  # sentences; not empty: a confirmation will be asked for
    addresses: list[str]  # of the box, without VIPs
    dhcp: list[str]  # interfaces of which DHCP will bring one more


class ServiceImpact(TypedDict):
    id: int
    name: str
    kept: int  # connections that are open now
    closed: int
    refused: bool  # new connections may be refused for a moment
    sentence: str  # empty: nothing to say


class Impact(TypedDict):
    kept: int
    closed: int
    sentence: str  # all together
    services: list[ServiceImpact]  # every one that runs


class MissingCard(TypedDict):
    name: str
    sentence: str  # "eth2 (10.2.0.1/24) is not in this box."


class FreeCard(TypedDict):
    name: str
    about: str  # "52:54:00:00:00:03, 1000 Mbit/s"


class Review(TypedDict):
    problems: list[Problem]  # not empty: diff and changes are empty, digest is ""
    digest: str  # of all files; give it back to apply()
    snapshot: str  # its digest, by which apply() knows it for a while
    diff: dict[str, str]  # only the files that change
    changes: list[Change]
    base: int | None  # give it back to apply()
    reach: Reach | None  # None where there are problems
    impact: Impact | None  # None as well where the kernel's table cannot be read
    missing_cards: list[MissingCard]  # network cards that the configuration names and the box does not have
    other_box: str  # why the other box of the pair was not asked; empty: it was, or there is none
    free_cards: list[FreeCard]  # cards that can be taken instead: nothing uses them; empty where none is missing


class Finding(TypedDict):
    kind: Literal["fault", "note"]
    code: str  # "arp", "port", "no-answer", "mtu"
    server: str  # the address of the real server that it is about; "": of none
    message: str  # what was seen
    advice: str  # what to do


class Trial(TypedDict):
    """One server, asked once."""

    server: str
    port: int
    fallback: bool  # the fallback server, which comes last
    state: Literal["up", "down"]
    seconds: float
    message: str  # the reason, as ldirectord has it; "" where it has none
    sent: str  # of HTTP: what was asked, redirects included
    received: str  # of HTTP: what came back, its first 4000 characters


class Diagnosis(TypedDict):
    looked_at: list[str]  # "whether the servers' ports are open"
    findings: list[Finding]  # empty: nothing was found


class RuleCounter(TypedDict):
    """Of a firewall rule of the admin that runs; since the rules were loaded last."""

    id: int
    packets: int  # that it matched; of rules that know what is open, the first of each connection
    bytes: int
    over: int  # of these, packets dropped because they were above its limit


class GenerationEntry(TypedDict):
    number: int
    user: str
    comment: str
    created: str
    outcome: Outcome
    seconds: float
    steps: list[StepStatus]
    text: NotRequired[str]  # generation() only: of its snapshot, for lbconfig.migrate.read
    files: NotRequired[dict[str, str]]  # generation() only, where they are asked for


class Nothing(TypedDict):
    """The answer where it is all that there is to say that something was done."""


class PairTold(TypedDict):
    """What a box of a pair has to say to the other one, for the process that carries it there."""

    pair: str
    box: int
    seen: int  # to be given back with the next question
    said: dict[str, object]  # agreement_lines.plain_said
    beat: dict[str, object]
    fetch: str  # the id of a revision that the other box is asked for; "": none
    whole: bool  # with all its services, none by its name alone


class ApplyStarted(TypedDict):
    apply: str  # the id of the run
    secret: str  # by which it is confirmed; "": no confirmation will be asked for
    confirm_within: int  # seconds; 0: no confirmation will be asked for


class RepairStarted(TypedDict):
    apply: str  # the id of the run


class InstallStarted(TypedDict):
    job: str  # its id


class SetupOpen(TypedDict):
    open: bool  # a set-up code is active


class CodeChecked(TypedDict):
    valid: bool


class CodeMade(TypedDict):
    code: str


class RoomMade(TypedDict):
    freed: int  # bytes
    free: int


class Certificate(TypedDict):
    certificate: str  # PEM; empty: the box has none of its own


class PageKey(TypedDict):
    certificate: str
    key: str  # PEM


class Restored(TypedDict):
    certificate: bool  # whether it changed
