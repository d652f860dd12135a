"""The configuration of the sample box: three services, one server of which is disabled."""

from lbconfig.model.snapshot import (
    CheckKind,
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


def sample_snapshot() -> Snapshot:
    shop = VirtualService(
        id=1,
        name="shop",
        address="192.168.10.80",
        port=80,
        scheduler=Scheduler.WRR,
        check=HealthCheck(CheckKind.HTTP, path="/health", expect="ok"),
        real_servers=(
            RealServer(1, "10.2.0.11", 80, weight=2),
            RealServer(2, "10.2.0.12", 80),
            RealServer(3, "10.2.0.13", 80, state=ServerState.DISABLED),
        ),
    )
    mail = VirtualService(
        id=2,
        name="mail",
        address="192.168.10.25",
        port=25,
        scheduler=Scheduler.LC,
        real_servers=(RealServer(4, "10.2.0.21", 25), RealServer(5, "10.2.0.22", 25)),
    )
    names = VirtualService(
        id=3,
        name="names",
        address="192.168.10.53",
        port=53,
        protocol=Protocol.UDP,
        scheduler=Scheduler.RR,
        check=HealthCheck(CheckKind.OFF),
        real_servers=(RealServer(6, "10.2.0.31", 53), RealServer(7, "10.2.0.32", 53)),
    )
    interfaces = (Interface("eth0", addresses=("192.168.10.2/24",)), Interface("eth1", addresses=("10.2.0.1/24",)))
    return Snapshot(
        services=(shop, mail, names),
        network=Network(hostname="sample", gateway="192.168.10.1", interfaces=interfaces),
        management=Management(allow=("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")),
    )
