"""The appliance as tests see it: a machine with an applier, a web page and a console."""

from __future__ import annotations

import dataclasses
import json
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request

from board.machines.machine import CommandFailed, Machine
from board.machines.spent import APPLYING, BOOTING, HEALTH, WEB, spent
from board.machines.wait import PATIENCE, WaitedInVain, until
from board.machines.world import SERVERS, SERVERS6

from applier.wire.client import Client
from applier.wire.errors import ApplierDown, ApplierRefused
from applier.wire.shapes import ENDED, RunStatus
from lbconfig.model import certificate
from lbconfig.model.snapshot import (
    FACTORY,
    CheckKind,
    HealthCheck,
    Interface,
    Management,
    Network,
    Protocol,
    RealServer,
    Scheduler,
    Snapshot,
    VirtualService,
    to_json,
)

VIP, VIP6 = "10.1.0.100", "2001:db8:1::100"
NETWORK = Network(
    interfaces=(
        Interface("eth0", dhcp=True),  # management: 10.0.2.15, where the host's browser comes in
        Interface("eth1", addresses=("10.2.0.1/24",)),  # the real servers' side
        Interface("eth2", addresses=("10.1.0.1/24",)),  # the clients' side
    )
)
QUICK = HealthCheck(CheckKind.CONNECT, interval=1, timeout=3, failures=1)
START = 300.0  # seconds that the box may take from power-on until all of it answers
APPLY = 180.0  # seconds that an apply may take
APPLIER = "/run/fairlead/applier.sock"
PYTHON = "PYTHONPATH=/usr/lib/fairlead/webui:/usr/lib/fairlead/python python3"  # with the code of the box
# The applier's answer to "progress" once the run's own state, which is the first one in it, is another than these.
FOLLOW = r"""
alarm $ARGV[1];
do {
    select undef, undef, undef, 0.2 if $_;
    socket(A, AF_UNIX, SOCK_STREAM, 0) && connect(A, pack_sockaddr_un($ARGV[0])) or die "$!\n";
    syswrite A, qq({"verb":"progress"}\n);
    $_ = <A>;
} while /^.*?"state": ?"(\w+)/ && $1 =~ /^(?:running|returning)$/;
print;
"""
ANSWER = 120.0  # seconds that a page may take; a busy host emulates slowly


def service(
    number: int,
    name: str,
    port: int = 80,
    servers: tuple[str, ...] = tuple(SERVERS),
    protocol: Protocol = Protocol.TCP,
    scheduler: Scheduler = Scheduler.RR,
    check: HealthCheck = QUICK,
    address: str = VIP,
    server_port: int = 0,
) -> VirtualService:
    """A virtual service over the world's servers; ids of real servers follow from the service's."""
    real = tuple(RealServer(number * 100 + int(one[-1]), SERVERS[one], server_port or port) for one in servers)
    return VirtualService(number, name, address, port, protocol, scheduler, check=check, real_servers=real)


def wish(*services: VirtualService) -> Snapshot:
    return dataclasses.replace(FACTORY, network=NETWORK, services=services)


def by_six(one: VirtualService, address: str = VIP6) -> VirtualService:
    """The same service over IPv6."""
    names = {server: name for name, server in SERVERS.items()}
    servers = tuple(dataclasses.replace(server, address=SERVERS6[names[server.address]]) for server in one.real_servers)
    return dataclasses.replace(one, address=address, real_servers=servers)


def wish6(*services: VirtualService) -> Snapshot:
    """With networks of both families, and the web page open to both."""
    first, *others = NETWORK.interfaces
    both = (
        dataclasses.replace(one, addresses=(*one.addresses, f"2001:db8:{one.addresses[0].split('.')[1]}::1/64"))
        for one in others
    )
    plain = wish(*services)
    return dataclasses.replace(
        plain,
        network=dataclasses.replace(NETWORK, interfaces=(first, *both)),
        management=Management((*plain.management.allow, "2001:db8:1::/64")),
    )


def browser() -> urllib.request.OpenerDirector:
    """Keeps cookies, and takes the certificate that the box has signed itself."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=context), urllib.request.HTTPCookieProcessor()
    )


@spent(WEB)
def read_page(opener: urllib.request.OpenerDirector, request: str | urllib.request.Request) -> tuple[int, str]:
    """HTTP status and text, also of a page that refuses."""
    try:
        with opener.open(request, timeout=ANSWER) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")


def _host(place: str) -> str:
    """Of "10.2.0.11:80" or "[2001:db8:2::11]:80"."""
    return place.rpartition(":")[0].strip("[]")


class ClientOutside(Client):
    """The applier's own client, outside the box: to load Python in there takes the one slow processor seconds."""

    def __init__(self, box: Machine, within: float) -> None:
        """`within`: seconds that each answer may take, and a run until its end."""
        super().__init__(APPLIER, within)
        self.box = box
        self.within = within

    def follow(self) -> RunStatus:
        """The run as soon as it is no longer on its way. Raises CommandFailed."""
        words = ["perl", "-MSocket", "-e", FOLLOW, APPLIER, f"{self.within:.0f}"]
        run = json.loads(self.box.succeed(words, self.within))["result"]
        if run is None:
            raise CommandFailed(f"{self.box.name}: the applier has restarted and knows nothing of the run")
        return run

    def _exchange(self, line: bytes) -> bytes:
        return self.box.exchange(APPLIER, line.decode().rstrip("\n"), self.within).encode()


class Director(Machine):
    url = ""  # of the web page, from the host
    answered = 0  # characters that the console had shown when something was typed last

    # --- the applier ---

    def applier(self, *words: str, timeout: float = APPLY) -> str:
        return self.succeed(["fairlead-applier", *words], timeout)

    def status(self) -> dict:
        return json.loads(self.exchange(APPLIER, json.dumps({"verb": "status", "known": []}), APPLY))["result"]

    def faults(self) -> str:
        """One sentence a line; empty where all is well."""
        return "".join(f"{one['message']}\n" for one in self.status()["faults"])

    @spent(APPLYING)
    def apply(self, snapshot: Snapshot, within: float = APPLY) -> RunStatus:
        """Check, apply, wait for the end; the run. Raises CommandFailed when it was refused or put back.

        `within`: seconds that each answer may take, and the run until its end.
        """
        applier = ClientOutside(self, within)
        try:
            review = applier.check(snapshot)
            if review["problems"]:
                raise CommandFailed(f"{self.name}: problems: {review['problems']}")
            applier.apply(review["snapshot"], review["digest"], review["base"], "test")
            run = applier.follow()
            while run["state"] not in ENDED:
                if run["state"] == "waiting":
                    applier.confirm(apply=run["id"], user="test")
                run = applier.follow()
        except ApplierDown as error:
            raise CommandFailed(f"{self.name}: {error}") from error
        except ApplierRefused as error:
            raise CommandFailed(f"{self.name}: {error.in_full}") from error
        if run["state"] != "done":
            raise CommandFailed(f"{self.name}: {json.dumps(run)}")
        return run

    @spent(APPLYING)
    def apply_unconfirmed(self, snapshot: Snapshot, within: int) -> dict:
        """Apply what nobody confirms within so many seconds, and wait until the box went back; the run."""
        self.write("/run/wish.json", to_json(snapshot))
        words = ["fairlead-applier", "apply", "/run/wish.json", "--user", "test"]
        done = self.execute([*words, "--confirm-within", str(within), "--wait"], 2 * APPLY + within)
        if done.exit != 1 or not done.output:
            raise CommandFailed(f"{self.name}: nothing was put back: {done.exit}\n{done.output}{done.errors}")
        return json.loads(done.output)

    def diagnose(self, service: int = 1) -> list[tuple[str, str]]:
        """(code, address of the real server) of everything that the doctor finds."""
        found = json.loads(self.applier("diagnose", str(service)))["findings"]
        return [(one["code"], one["server"]) for one in found]

    def try_check(self, snapshot: Snapshot, service: int = 1) -> dict[str, dict]:
        """Address of each real server -> what became of the one question."""
        self.write("/run/wish.json", to_json(snapshot))
        return {one["server"]: one for one in json.loads(self.applier("try-check", "/run/wish.json", str(service)))}

    @spent(APPLYING)
    def refuses(self, snapshot: Snapshot) -> str:
        """Try to apply it; what the applier said. Raises CommandFailed when it took it."""
        self.write("/run/wish.json", to_json(snapshot))
        return self.fail(["fairlead-applier", "apply", "/run/wish.json", "--user", "test"], APPLY)

    @spent(APPLYING)
    def start_apply(self, snapshot: Snapshot, step: str) -> None:
        """Start to apply it and come back as soon as that step of it is done."""
        self.write("/run/wish.json", to_json(snapshot))
        done = f"grep -c 'applier: INFO step {step}:' /var/log/messages"
        before = int(self.execute(done).output)
        self.succeed("fairlead-applier apply /run/wish.json --user test >/run/apply.log 2>&1 &")
        until(f"the step {step}", lambda: int(self.execute(done).output) > before, APPLY, 0.05)

    def has_started(self) -> bool:
        """Whether the configuration that the box starts with is in place."""
        # Read from the log: asking the applier takes a second of the one slow processor that starts it.
        self.succeed("grep -q 'applier: [A-Z]* start:' /var/log/messages")
        return self.status()["start"]["state"] != "running"

    def python(self, program: str) -> str:
        """What a program that imports the code of the box prints."""
        self.write("/run/program.py", program)
        return self.succeed(f'{PYTHON} -c "$(cat /run/program.py)"').strip()

    # --- the kernel's table ---

    def weights(self) -> dict[tuple[str, str], int]:
        """(virtual service, real server) -> weight, both as "10.1.0.100:80"."""
        found, service = {}, ""
        for line in self.succeed(["ipvsadm", "-Ln"]).splitlines():
            words = line.split()
            if words[0] in ("TCP", "UDP", "FWM"):
                service = words[1]
            elif words[0] == "->" and service:
                found[service, words[1]] = int(words[3])
        return found

    def healthy(self) -> set[str]:
        """The names of the real servers that get connections from every service that has them."""
        found: dict[str, list[int]] = {name: [] for name in SERVERS}
        for (_, server), weight in self.weights().items():
            for name, weights in found.items():
                if _host(server) in (SERVERS[name], SERVERS6[name]):
                    weights.append(weight)
        return {name for name, weights in found.items() if weights and all(weights)}

    @spent(HEALTH)
    def wait_until_healthy(self, *names: str, timeout: float = PATIENCE) -> None:
        try:
            until(f"{names} up", lambda: set(names) <= self.healthy(), timeout)
        except WaitedInVain as vain:
            raise WaitedInVain(f"{vain}\n{self.weights()}") from None

    @spent(HEALTH)
    def wait_until_gone(self, name: str, timeout: float = PATIENCE) -> None:
        """Until no service gives this server new connections."""
        places = (SERVERS[name], SERVERS6[name])

        def gone() -> bool:
            return not any(weight for (_, server), weight in self.weights().items() if _host(server) in places)

        until(f"{name} gone", gone, timeout)

    def checker(self) -> int:
        """The process that checks, which the program of that service has started."""
        [checker] = self.children(self.supervised("ldirectord"))
        return checker

    def supervised(self, service: str) -> int:
        """The process that runit has started for a service."""
        return int(self.read(f"/run/service/{service}/supervise/pid"))

    def children(self, parent: int) -> list[int]:
        """The processes that it has started."""
        said = self.succeed(["ps", "-o", "pid,ppid"]).split()[2:]
        return [int(one) for one, above in zip(said[::2], said[1::2], strict=True) if int(above) == parent]

    def began(self, process: int) -> int:
        """When it was started, in hundredths of a second since the boot; proc_pid_stat(5): a name may have blanks."""
        return int(self.read(f"/proc/{process}/stat").rpartition(")")[2].split()[19])

    # --- the web page and the console ---

    def setup_code(self) -> str:
        return self.read("/run/fairlead/setup-code").strip()

    def choose(self, title: str) -> None:
        """Pick that line of the console's menu, and say yes to its warning."""
        self.pick(title)
        self.answer("Type yes to go on", "yes")

    def pick(self, title: str) -> None:
        """Type the number of that line of the console's menu."""
        self.type("\n")
        screen = self.wait_for_console(f"  {title}")
        number = next(line.split()[0] for line in screen.splitlines() if line.strip().endswith(f"  {title}"))
        self.answered = len(self.console)
        self.type(f"{number}\n")

    def answer(self, question: str, line: str) -> str:
        """Wait for a question that came after what was typed last, and answer; what the console showed until then."""
        shown = until(f"{question!r} on the console", lambda: self.shown_since(question))
        self.answered = len(self.console)
        self.type(f"{line}\n")
        return shown

    def shown_since(self, text: str) -> str:
        """What the console showed after the last answer, when it has the text in it."""
        shown = self.console[self.answered :]
        return shown if text in shown else ""

    def page(self, path: str = "/") -> tuple[int, str]:
        """HTTP status and text of a page, as a browser on the host gets it after redirects."""
        return read_page(browser(), self.url + path)

    def set_up(self, user: str, password: str) -> tuple[int, str]:
        """Enter the set-up code and the first admin; HTTP status and text of the page that follows.

        Where the form itself is refused: of the page that comes in its place.
        """
        one, address = browser(), f"{self.url}/set-up/"
        status, form = read_page(one, address)
        if status != 200:
            return status, form
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
        assert token, form
        values = {"csrfmiddlewaretoken": token[1], "code": self.setup_code(), "username": user}
        values |= {"password": password, "again": password}
        body = urllib.parse.urlencode(values).encode()
        return read_page(one, urllib.request.Request(address, body, {"Referer": address}))

    @spent(BOOTING)
    def wait_until_started(self, timeout: float = START) -> None:
        """Until the configuration that the box starts with is in place."""
        self.wait_for_agent(timeout)
        until("the applier", self.has_started, timeout, 0.3, (CommandFailed, OSError))

    @spent(BOOTING)
    def wait_until_up(self, timeout: float = START) -> float:
        """The same, and until the web page answers; seconds since power-on."""
        self.wait_until_started(timeout)
        until("the web page", lambda: self.page()[0] not in (502, 504), timeout, 1)
        return time.monotonic() - self.started

    def own_certificate(self) -> str:
        """As it is once it names all addresses of the box, for which it may be made anew (decision 52)."""

        def fits() -> str:
            text = self.read("/data/tls/cert.pem")
            listed = self.succeed("ip -o address show scope global").splitlines()
            own = {line.split()[3] for line in listed}
            wanted = {one.partition("/")[0] for one in own if not one.endswith(("/32", "/128"))}
            shown = certificate.first(text)
            return text if shown and wanted <= {*shown.names} else ""

        return until("a certificate for the box's addresses", fits, 180)

    def log(self) -> str:
        return self.read("/var/log/messages")
