"""The kernel's listing of the table: what it says, that what stays is the same object, and what is refused."""

import pytest

from applier.host.ipvs_listing import Entry, Listing, ListingError
from applier.service import health, shares
from lbconfig.model.snapshot import Agent, AgentKind, CheckKind, HealthCheck, RealServer, Snapshot, VirtualService
from lbconfig.wanted import table as ipvs

HEAD = """IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
"""
WEB = """TCP  C0A80A50:0050 wlc persistent 300 FFFFFFFF
  -> 0A020014:0050      Masq    1      0          0{end}
  -> 0A020015:0050      Masq    {weight:<6} 7          9{end}
"""
REST = """UDP  [fd00:0000:0000:0000:0000:0000:0000:0050]:0035 rr ops{space}
  -> [fd00:0000:0000:0000:0000:0000:0000:0011]:0035      Route   65535  0          3{end}
TCP  C0A80A50:01BB wrr{space}
FWM  0000000C wlc persistent 60 FFFFFF00
  -> 0A020016:0000      Tunnel  2      1          0{end}
"""


def listing(weight: int) -> str:
    return HEAD + (WEB + REST).format(weight=weight, space=" ", end=" " * 9)  # as the kernel pads them


def test_everything_is_read():
    mark = {("10.2.0.22", 0): Entry(2, 1, 0)}
    assert Listing()(listing(0)) == {
        ("tcp", "192.168.10.80", 80): {("10.2.0.20", 80): Entry(1), ("10.2.0.21", 80): Entry(0, 7, 9)},
        ("udp", "fd00::50", 53): {("fd00::11", 53): Entry(65535, 0, 3)},
        ("tcp", "192.168.10.80", 443): {},
        ("fwm", "", 12): mark,
        ("fwm6", "", 12): mark,
    }
    assert Listing()(HEAD) == {}


def test_what_did_not_change_is_the_same_object():
    read = Listing()
    before, after = (read(listing(weight)) for weight in (0, 3))
    changed = ("tcp", "192.168.10.80", 80)
    assert after[changed]["10.2.0.21", 80].weight == 3 and before[changed]["10.2.0.21", 80].weight == 0
    assert all(after[key] is before[key] for key in before if key != changed)


@pytest.mark.parametrize(
    "text",
    ["", "x", HEAD + "TCP  C0A80A50 wlc \n", HEAD + "XTP  C0A80A50:0050 wlc \n",
     HEAD + "TCP  C0A80A50:0050 wlc \n  -> x\n",
     HEAD + "TCP  C0A80A50:0050 wlc \n  -> 0A02001:0050      Masq    1      0          0\n"],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(ListingError):
        Listing()(text)


def test_the_health_of_what_did_not_change_is_the_same_object_and_never_stale():
    def snapshot(weight=1):
        check = HealthCheck(CheckKind.CONNECT, interval=10)
        return Snapshot(
            tuple(
                VirtualService(number, f"s{number}", "192.168.10.80", number, check=check,
                               real_servers=(RealServer(number, "10.2.0.20", 80, weight),))
                for number in (1, 2)
            )
        )  # fmt: skip

    one, told = snapshot(), health.Told()
    up, down = {("10.2.0.20", 80): Entry(1)}, {("10.2.0.20", 80): Entry(0)}
    both = {("tcp", "192.168.10.80", number): up for number in (1, 2)}
    first = told(one, both, 1000.0)
    assert first == health.Told()(one, both, 1000.0)
    for again, entries, seconds in (
        (one, both | {("tcp", "192.168.10.80", 2): down}, 1000.0), (one, both, 1.0), (one, both, None),
        (one, {}, 1000.0), (snapshot(2), both, 1000.0), (Snapshot(one.services[:1]), both, 1000.0), (one, both, 1000.0),
    ):  # fmt: skip
        assert told(again, entries, seconds) == health.Told()(again, entries, seconds)
    second = told(one, both | {("tcp", "192.168.10.80", 2): down}, 1000.0)
    third = told(one, both | {("tcp", "192.168.10.80", 2): down}, 1000.0)
    assert third["services"][0] is second["services"][0] and third["services"][1] is second["services"][1]


def test_what_the_checks_say_of_shares(tmp_path):
    said = shares.of_text(
        f"7 * 0 0 - - aside\n7 {ONE} 60 60 - - up\n7 {TWO} 0 100 drain - up\n7 {THREE} 100 100 - 12.5 kept\n"
        "7 10.2.0.14:80 0 100 maint - down\n7 10.2.0.15:80 0 100 - - well\nno line\n7 x y z - - up\n"
    )
    assert said[7][ONE] == shares.Said(60, "", "up") and len(said[7]) == 6
    servers = tuple(RealServer(number, f"10.2.0.{10 + number}", 80, 2) for number in range(1, 6))
    service = VirtualService(7, "s", "10.1.0.100", 80, agent=Agent(AgentKind.TEXT), real_servers=servers)
    weights = (120, 0, 200, 0, 0)
    table = {(one.address, 80): Entry(weight) for one, weight in zip(servers, weights, strict=True)}
    [told] = health.Told()(Snapshot((service,)), {ipvs.key(service): table}, 1000.0, said)["services"]
    assert told["aside"]
    assert [(one["health"], one["share"], one["agent"]) for one in told["real_servers"]] == [
        ("up", 60, ""), ("draining", 0, "drain"), ("kept", 100, ""), ("down", 0, "maint"),
        ("waiting", 0, ""),
    ]  # fmt: skip


ONE, TWO, THREE = "10.2.0.11:80", "10.2.0.12:80", "10.2.0.13:80"
