"""What the doctor makes of what the box says; tests/vm/test_forwarding.py has real servers with these faults."""

import dataclasses
import json
from pathlib import Path

import pytest

from applier.host.host import HostError, Output
from applier.service import doctor
from lbconfig.model.snapshot import (
    FACTORY,
    Forwarding,
    Interface,
    Network,
    Pair,
    PairBox,
    Protocol,
    RealServer,
    ServerState,
    Snapshot,
    Tuning,
    VirtualService,
)

NETWORK = Network(
    interfaces=(Interface("eth0", addresses=("10.1.0.1/24",)), Interface("eth1", addresses=("10.2.0.1/24",)))
)
VIP = "10.1.0.100"
HEAD = "Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Expires PEName PEData\n"


class Box:
    """`arp`: interface -> lines of arping; `ports`: (address, port) -> what connect says; `connections`: lines."""

    def __init__(self):
        self.arp = {}
        self.neighbours = {}
        self.ports = {}
        self.connections = ""
        self.mtu = {"eth0": "1500\n", "eth1": "1500\n"}
        self.asked = []

    def command(self, argv, stdin="", timeout=0):
        self.asked.append(list(argv))
        match argv:
            case ["ip", "-json", "address", "show"]:
                return Output(0, json.dumps([_link("eth0", "10.1.0.1", 24, VIP), _link("eth1", "10.2.0.1", 24)]), "")
            case ["ip", "-json", "neigh", "show", "dev", name]:
                return Output(0, json.dumps(self.neighbours.get(name, [])), "")
            case ["ip", "-json", "route", "get", _]:
                return Output(0, json.dumps([{"dev": "eth1"}]), "")
            case ["arping", "-I", name, *_]:
                return Output(0, self.arp.get(name, ""), "")
        raise HostError(" ".join(argv), None, "unknown")

    def connect(self, address, port, timeout):
        return self.ports.get((address, port), "open")

    def read(self, path: Path):
        if path == doctor.CONNECTIONS:
            return HEAD + self.connections
        return self.mtu.get(path.parent.name)


def _link(name, address, length, *vips):
    infos = [{"family": "inet", "local": address, "prefixlen": length}]
    infos += [{"family": "inet", "local": vip, "prefixlen": 32} for vip in vips]
    return {"ifname": name, "flags": ["UP"], "address": f"52:54:00:00:00:{name[-1]:0>2}", "addr_info": infos}


@pytest.fixture
def box():
    return Box()


def examine(box, forwarding=Forwarding.DIRECT, **options):
    servers = (RealServer(1, "10.2.0.11", 80), RealServer(2, "10.2.0.12", 80))
    service = VirtualService(1, "web", VIP, 80, forwarding=forwarding, real_servers=servers, **options)
    return doctor.examine(box, Snapshot((service,), NETWORK, FACTORY.management), service)


def connection(server, state, port=80, protocol="TCP"):
    last = f"{10 * 2**24 + 2 * 2**16 + server:08X}"
    return f"{protocol} 0A01000A D8F6 0A010064 {port:04X} {last} 0050 {state:11} 55\n"


def test_nothing_is_found_where_nothing_is_wrong(box):
    assert examine(box) == []
    assert examine(box, Forwarding.NAT) == []
    asked = [argv for argv in box.asked if argv[0] == "arping"]
    assert [[*argv[2:5:2], argv[-1]] for argv in asked[:2]] == [["eth0", "10.1.0.1", VIP], ["eth1", "10.2.0.1", VIP]]


def test_a_server_that_answers_arp_is_named_with_its_mac(box):
    mac = "02:00:00:00:00:0B"
    box.arp["eth1"] = (
        f"ARPING {VIP} from 10.2.0.1 eth1\n"
        f"Unicast reply from {VIP} [{mac}] 0.6ms\nUnicast reply from {VIP} [{mac}] 0.5ms\n"
        "Sent 2 probe(s) (1 broadcast(s))\nReceived 2 response(s)\n"
    )
    box.neighbours["eth1"] = [
        {"dst": "10.2.0.12", "lladdr": mac.lower(), "state": ["STALE"]},
        {"dst": "10.2.0.11", "state": ["FAILED"]},
    ]
    [finding] = examine(box)
    assert (finding["code"], finding["server"]) == ("arp", "10.2.0.12")
    assert mac.lower() in finding["message"]
    assert "script" in finding["advice"]


def test_a_stranger_that_answers_arp_is_no_real_server(box):
    box.arp["eth0"] = f"Unicast reply from {VIP} [02:00:00:00:00:99] 0.6ms\n"
    [finding] = examine(box)
    assert finding["server"] == ""
    assert "02:00:00:00:00:99" in finding["message"]
    assert f"take {VIP} away from it" in finding["advice"]


def test_the_box_s_own_cards_are_nobody_else(box):
    box.arp["eth1"] = f"Unicast reply from {VIP} [52:54:00:00:00:00] 0.6ms\n"
    assert examine(box) == []


@pytest.mark.parametrize(
    ("answer", "words"), [("refused", "refuses connections to port 80"), ("no route to host", "no route to host")]
)
def test_a_closed_port(box, answer, words):
    box.ports["10.2.0.11", 80] = answer
    [finding] = examine(box)
    assert (finding["code"], finding["server"]) == ("port", "10.2.0.11")
    assert words in finding["message"]


@pytest.mark.parametrize(
    ("forwarding", "advice"),
    [
        (Forwarding.NAT, "must be this box (10.2.0.1)"),
        (Forwarding.SNAT, "firewall on the server"),
        (Forwarding.DIRECT, "“verify”"),
        (Forwarding.TUNNEL, "“verify”"),
    ],
)
def test_clients_that_wait_for_an_answer(box, forwarding, advice):
    box.mtu["eth1"] = "9000"
    box.connections = (
        connection(11, "SYN_RECV") * 3 + connection(12, "ESTABLISHED") * 9 + connection(12, "SYN_RECV") * 3
    )
    [finding] = examine(box, forwarding)
    assert (finding["code"], finding["server"]) == ("no-answer", "10.2.0.11")
    assert "3 clients" in finding["message"]
    assert advice in finding["advice"]


def test_in_a_pair_the_gateway_is_the_floating_address_and_the_box_that_leads_answers_arp(box):
    own = Interface("eth1", addresses=("10.2.0.2/24",), floating=("10.2.0.1/24",))
    network = Network("lb1", interfaces=(NETWORK.interfaces[0], own))
    pair = Pair("0" * 32, tuple(PairBox(network, Tuning(), "eth2", "192.0.2.1/30", "") for _ in (0, 1)))
    service = VirtualService(1, "web", VIP, 80, real_servers=(RealServer(1, "10.2.0.11", 80),))
    standing_by = dataclasses.replace(service, address="10.1.0.105")
    box.connections = connection(11, "SYN_RECV") * 3
    snapshot = Snapshot((service, standing_by), network, pair=pair)
    [finding] = doctor.examine(box, snapshot, service)
    assert "must be this box (10.2.0.1)" in finding["advice"]
    box.arp["eth0"] = f"Unicast reply from {standing_by.address} [02:00:00:00:00:99] 0.6ms\n"
    assert not [one for one in doctor.examine(box, snapshot, standing_by) if one["code"] == "arp"]


def test_two_that_wait_are_an_accident_and_other_services_do_not_count(box):
    box.connections = connection(11, "SYN_RECV") * 2 + connection(11, "SYN_RECV", port=81) * 9
    box.connections += connection(11, "UDP", protocol="UDP") * 9 + "rubbish\n"
    assert examine(box) == []
    box.connections = connection(11, "SYN_RECV") * 9
    assert examine(box, protocol=Protocol.UDP) == []


def test_a_narrow_tunnel_is_a_note_and_comes_last(box):
    box.ports["10.2.0.12", 80] = "refused"
    found = examine(box, Forwarding.TUNNEL)
    assert [(one["kind"], one["code"]) for one in found] == [("fault", "port"), ("note", "mtu"), ("note", "mtu")]
    assert "1480 bytes" in found[1]["message"]
    assert "advmss 1440" in found[1]["advice"]
    box.mtu["eth1"] = "1600\n"
    assert [one["code"] for one in examine(box, Forwarding.TUNNEL)] == ["port"]


@pytest.mark.parametrize(("forwarding", "room"), [(Forwarding.GRE, 1476), (Forwarding.GUE, 1468)])
def test_other_tunnels_take_more_room(box, forwarding, room):
    found = examine(box, forwarding)
    assert [f"{room} bytes" in one["message"] for one in found] == [True, True]


def test_servers_out_of_the_table_are_not_looked_at(box):
    box.ports["10.2.0.11", 80] = box.ports["10.2.0.12", 80] = "refused"
    service = VirtualService(
        1, "web", VIP, 80, real_servers=(RealServer(1, "10.2.0.11", 80, state=ServerState.DISABLED),)
    )
    assert doctor.examine(box, Snapshot((service,), NETWORK), service) == []
