"""A snapshot that uses everything, ways to change one field of it, and what validation says at one place."""

import dataclasses
import itertools

from lbconfig.model.firewall import Action, Firewall, RateLimit, Rule, RuleProtocol, Where
from lbconfig.model.snapshot import (
    CheckKind,
    Fallback,
    FallbackKind,
    Forwarding,
    HealthCheck,
    Interface,
    Management,
    Network,
    Protocol,
    RealServer,
    Scheduler,
    ServerState,
    Snapshot,
    VirtualService,
)
from lbconfig.validate.services import validate

WEB = VirtualService(
    3,
    "web",
    "10.0.2.100",
    80,
    check=HealthCheck(CheckKind.HTTP, path="/alive", host="www.example.org", expect="fine"),
    real_servers=(RealServer(7, "10.2.0.11", 8000), RealServer(8, "10.2.0.12", 8000, weight=2)),
)
DNS = VirtualService(
    4,
    "dns",
    "10.0.2.100",
    53,
    Protocol.UDP,
    Scheduler.RR,
    check=HealthCheck(CheckKind.PING),
    real_servers=(RealServer(9, "10.2.0.11", 53), RealServer(10, "10.2.0.12", 53, state=ServerState.DISABLED)),
)
NETWORK = Network(
    "lb1",
    "10.0.2.2",
    (Interface("eth0", addresses=("10.0.2.15/24",)), Interface("eth1", addresses=("10.2.0.1/24",))),
)
SAMPLE = Snapshot((WEB, DNS), NETWORK, Management(("10.0.2.0/24",)))

# Both kinds of NAT, for IPv4 and IPv6, of services with one port and with several.
EVERY_NAT = Snapshot(
    tuple(
        VirtualService(
            number,
            f"s{number}",
            vip,
            number,
            forwarding=forwarding,
            more_ports="443" if several else "",
            real_servers=(RealServer(number, rip, 0 if several else 80),),
        )
        for number, ((vip, rip), forwarding, several) in enumerate(
            itertools.product(
                [("10.0.2.100", "10.2.0.11"), ("2001:db8:1::100", "2001:db8:2::11")],
                [Forwarding.NAT, Forwarding.SNAT],
                [False, True],
            ),
            start=1,
        )
    ),
    NETWORK,
)

ROUTED = (Action.ALLOW, Where.THROUGH)
# One rule for each place where it can stand, with everything that stands beside the rules there.
EVERY_RULE = dataclasses.replace(
    EVERY_NAT,
    firewall=Firewall(
        tuple(
            Rule(number, f"r{number}", action, where, limit=limit, masquerade=(action, where) == ROUTED)
            for number, (where, (action, limit)) in enumerate(
                itertools.product(
                    Where, [(Action.REJECT, RateLimit()), (Action.ALLOW, RateLimit(5, each_source=True))]
                ),
                start=1,
            )
        )
    ),
)
# The same two where nothing is tracked.
NO_STATES = dataclasses.replace(
    EVERY_NAT, services=tuple(one for one in EVERY_NAT.services if one.forwarding is Forwarding.NAT)
)
RULES_NO_STATES = dataclasses.replace(
    NO_STATES, firewall=Firewall(tuple(one for one in EVERY_RULE.firewall.rules if one.where is not Where.THROUGH))
)
SORRY_PAGE = dataclasses.replace(
    NO_STATES,
    services=tuple(dataclasses.replace(one, fallback=Fallback(FallbackKind.PAGE)) for one in NO_STATES.services),
)


def with_rule(**fields) -> Snapshot:
    """Of one rule, number 5, "ssh"."""
    rule = dataclasses.replace(Rule(5, "ssh", protocol=RuleProtocol.TCP, ports="22"), **fields)
    return dataclasses.replace(SAMPLE, firewall=Firewall((rule,)))


def with_service(**fields) -> Snapshot:
    return dataclasses.replace(SAMPLE, services=(dataclasses.replace(WEB, **fields), DNS))


def with_check(**fields) -> Snapshot:
    return with_service(check=dataclasses.replace(WEB.check, **fields))


def with_server(**fields) -> Snapshot:
    first, second = WEB.real_servers
    return with_service(real_servers=(dataclasses.replace(first, **fields), second))


def with_network(**fields) -> Snapshot:
    return dataclasses.replace(SAMPLE, network=dataclasses.replace(NETWORK, **fields))


def with_interface(**fields) -> Snapshot:
    first, second = NETWORK.interfaces
    return with_network(interfaces=(dataclasses.replace(first, **fields), second))


def with_allow(*allow) -> Snapshot:
    return dataclasses.replace(SAMPLE, management=Management(allow))


def problems_at(snapshot, path):
    return [problem for problem in validate(snapshot) if problem.path == path]
