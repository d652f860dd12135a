"""A model of the box, behind the one door: it understands the commands and can fail at any of them.

`violations` lists what must never happen, e.g. a write to the IPVS table while ldirectord runs.
"""

import errno
import itertools
import json
import re
import socket
from pathlib import Path

import netlink_bytes as nl
from kernel_model import KernelModel
from pair_model import PairModel

from applier.base.paths import Paths
from applier.host import ipvs_listing
from applier.host.host import COMMAND_TIMEOUT, PROC_SYS, HostError, Output, Process
from lbconfig.model.certificate import first
from lbconfig.wanted import settings as sysctl

OF_A_PAIR = ("sync_version", "sync_threshold", "sync_refresh_period", "sync_retries", "sync_sock_size", "backup_only")
PROTOCOLS = {"-t": "tcp", "-u": "udp"}
BACKLOG = "net/core/somaxconn"  # the one setting of the hardware's table that this kernel has
NUMBERS = {"tcp": socket.IPPROTO_TCP, "udp": socket.IPPROTO_UDP}


class ModelHost:
    bad_web = ""  # a text: nginx cannot work with what has it

    def __init__(self, paths: Paths, links=("eth0", "eth1", "eth2")) -> None:
        self.paths = paths
        self.clock = 1000.0
        self.rules: str | None = None
        self.joined: set[str] = set()  # addresses that the rules let in besides
        self.settings = {"kernel/hostname": "(none)"}
        self.settings |= {setting.key: "0" for setting in sysctl.settings()}
        self.settings |= {f"net/ipv4/vs/{name}": "0" for name in OF_A_PAIR}
        self.kernel = KernelModel(links)
        self.links = self.kernel.links
        self.sent: list[tuple[str, bytes]] = []  # interface and frame
        self.pair = PairModel(self)
        for name in ("all", "default", *links):
            self._settings_of(name)
        self.by_hand: set[tuple[str, int]] = set()  # servers in the table that the firewall need not know of
        self.active: dict[tuple[str, int], float] = {}  # until then a server has a connection that is established
        self.timeouts = (900, 120, 300)
        self.table: dict = {}  # (protocol, address, port) -> [scheduler, {place: weight}]
        self.files: dict[Path, str] = {PROC_SYS / BACKLOG: "128"}
        self.modes: dict[Path, int] = {}  # of all that was ever put
        self.web: str | None = None  # what nginx runs with; None: it waits for its file
        self.deaf_web = ""  # a text: of what has it nginx says that it can, and keeps what it runs with
        self.spawner = True  # whether the program answers that starts ldirectord
        self.bad_checks = ""  # why ldirectord cannot read a file
        self.director_pid: int | None = None
        self.director_since = 0.0
        self.dead: set[tuple[str, int]] = set()
        self.dies_at_start = False
        self.unkillable = False
        self.bad_rules = False
        self.violations: list[str] = []
        self.log: list[str] = []
        self.changes = 0  # how many changes were asked for so far
        self.fail_at: int | None = None  # the n-th of them fails …
        self.fail_how = "before"  # … before it is done, or after it was done, or half way
        self.fail_forever = False
        self.pids = itertools.count(100)

    # --- faults ----------------------------------------------------------------------------------

    def change(self, name, action, half=None):
        """Count a change, and fail where the test wants it."""
        number = self.changes
        self.changes += 1
        self.log.append(name)
        due = self.fail_at is not None and (number == self.fail_at or (self.fail_forever and number >= self.fail_at))
        if not due:
            return action()
        if self.fail_how == "after":
            action()
        elif self.fail_how == "half" and half is not None:
            half()
        raise HostError(name, None, "the test wanted this to fail")

    def state(self) -> dict:
        """All that an undo must put back, with health checks having had their say."""
        self.check_health()
        return {
            "rules": self.rules,
            "settings": dict(self.settings),
            "network": self.kernel.state(),
            "timeouts": self.timeouts,
            "table": {key: (scheduler, dict(places)) for key, (scheduler, places) in self.table.items()},
            "files": {str(path): text for path, text in self.files.items() if self.paths.candidate not in path.parents},
            "director": self.director_pid is not None,
            "web": self.web,
            "pair": self.pair.state(),
        }

    # --- the door --------------------------------------------------------------------------------

    def command(self, argv, stdin="", timeout=COMMAND_TIMEOUT):
        match list(argv):
            case ["ip", "-json", "-details", "-batch", "-"]:
                return Output(0, self.kernel.several(stdin), "")
            case ["ip", "-json", *words]:
                return Output(0, json.dumps(self.kernel.json(words)), "")
            case ["ip", *options, "-batch", "-"]:
                lines, forced = stdin.splitlines(), "-force" in options
                half = lines[: len(lines) // 2]
                return self.change(f"ip {lines}", lambda: self._ip(lines, forced), lambda: self._ip(half, forced))
            case ["wg", *words]:
                return self.pair.wg(words, stdin)
            case ["nft", "list", "tables"]:
                return Output(0, "table inet fairlead\n" if self.rules else "", "")
            case ["nft", "-j", "list", "ruleset", "inet"]:
                ours = {"family": "inet", "table": "fairlead", "handle": self.changes, "expr": self.rules}
                return Output(0, json.dumps({"nftables": [{"rule": ours}] if self.rules else []}), "")
            case ["nft", "-c", "-f", path]:
                return self.change("nft -c", lambda: self._nft(path, check=True))
            case ["nft", "-f", path]:
                return self.change("nft -f", lambda: self._nft(path))
            case ["nft", "add", "element", "inet", "fairlead", "joined" | "joined6", element]:
                self.joined.add(element.strip("{ }"))
                return Output(0, "", "")
            case ["nft", "flush", "set", "inet", "fairlead", "joined" | "joined6"]:
                self.joined.clear()
                return Output(0, "", "")
            case ["ipvsadm", "-R"]:
                lines = stdin.splitlines()
                half = lines[: len(lines) // 2]
                return self.change(f"ipvsadm {lines}", lambda: self._ipvsadm(lines), lambda: self._ipvsadm(half))
            case ["ipvsadm", "--set", *seconds]:
                return self.change(f"ipvsadm --set {seconds}", lambda: self._set_timeouts(seconds))
            case ["sv", *words, folder] if Path(folder).name in self.pair.services:
                return self.pair.sv(Path(folder).name, words[-1])
            case ["sv", "up", folder] if Path(folder).name == "ldirectord":
                self.spawner = True
                return Output(0, "", "")
            case ["sv", "status", folder] if Path(folder).name == "nginx":
                return Output(0, f"run: {folder}: (pid 77) 5s\n", "")
            case ["sv", "hup", folder] if Path(folder).name == "nginx":
                return self.change("sv hup nginx", self._reload_web)
            case [program, "-t", "-q"] if program == f"{self.paths.services}/nginx/run":
                return self.change("nginx -t", self._test_web)
            case ["sv", "down", folder] if Path(folder).name == "later":
                return self.change("sv down later", lambda: Output(0, "", ""))
            case ["sv", "-w", "5", "restart" | "stop", folder] if Path(folder).name == "time":
                return self.change(f"sv {Path(folder).name}", lambda: Output(0, "", ""))
            case ["sv", "term", folder] if Path(folder).name == "time":
                return self.change("sv term time", lambda: Output(0, "", ""))
            case ["sv", "-w", "5", "stop", folder]:
                return self.change(f"sv stop {folder}", lambda: Output(0, "", ""))
        raise AssertionError(f"the model does not know {argv}")

    def ask(self, path, line, timeout):
        """What the program says that starts ldirectord, or the floater."""
        if path == self.paths.floater:
            return self.pair.obey(line)
        assert path == self.paths.checker
        if not self.spawner:
            raise HostError(f"{path.name}: {line}", None, "Connection refused")
        match line.split():
            case ["state"]:
                seconds = int(self.clock - self.director_since)
                return f"down 0 {seconds}" if self.director_pid is None else f"watching {self.director_pid} {seconds}"
            case ["read", file]:
                return self._ordered("ldirectord read", lambda: self._read_checks(Path(file)))
            case ["start"]:
                return self._ordered("ldirectord start", lambda: self._direct("start"))
            case ["stop"]:
                return self.change("ldirectord stop", lambda: self._direct("stop"))
        raise AssertionError(f"the model does not know {line}")

    def _ordered(self, name, action):
        try:
            return self.change(name, action)
        except HostError as error:
            return f"bad {error}"

    def _read_checks(self, path):
        return f"bad {self.bad_checks}" if self.bad_checks else "good" if path in self.files else "bad no such file"

    def netlink(self, request):
        command = request[16]
        if request[4:6] == (16).to_bytes(2, "little"):
            return [nl.family()]
        if command == 4 and not int.from_bytes(request[6:8], "little") & 0x300:
            key = self._named_service(request)
            if key not in self.table:
                return [nl.error(errno.ESRCH)]
            return [nl.message(4, nl.service(NUMBERS[key[0]], *key[1:], self.table[key][0]), flags=0)]
        if command == 4:
            found = [
                nl.message(4, nl.service(NUMBERS[protocol], address, port, scheduler))
                for (protocol, address, port), (scheduler, _) in self.table.items()
            ]
            return [*found, nl.DONE]
        if command in (9, 10, 11):
            return self.pair.netlink(command, request)
        if command == 13:
            return [nl.message(13, nl.timeouts(*self.timeouts), flags=0)]
        _, places = self.table[self._named_service(request)]
        servers = [nl.dest(*place, weight, active=self._active(place)) for place, weight in places.items()]
        return [b"".join(nl.message(8, server) for server in servers), nl.DONE]

    @staticmethod
    def _named_service(request):
        protocol = {6: "tcp", 17: "udp"}[int.from_bytes(request[36:38], "little")]
        return protocol, socket.inet_ntoa(request[44:48]), int.from_bytes(request[64:66], "big")

    def _active(self, place):
        return int(self.active.get(place, 0) > self.clock)

    def read(self, path):
        if path == ipvs_listing.PATH:
            return self._listing()
        return self.files.get(path)

    def _listing(self):
        """As net/netfilter/ipvs/ip_vs_ctl.c writes it."""

        def place(address, port):
            return f"{int.from_bytes(socket.inet_aton(address), 'big'):08X}:{port:04X}"

        lines = [
            "IP Virtual Server version 1.2.1 (size=4096)",
            "Prot LocalAddress:Port Scheduler Flags",
            "  -> RemoteAddress:Port Forward Weight ActiveConn InActConn",
        ]
        for (protocol, address, port), (scheduler, places) in self.table.items():
            lines.append(f"{protocol.upper()}  {place(address, port)} {scheduler} ")
            lines += [
                f"  -> {place(*one)}      {'Masq':<7} {weight:<6} {self._active(one):<10} {0:<10}"
                for one, weight in places.items()
            ]
        return "".join(f"{line}\n" for line in lines)

    def names(self, folder):
        return []  # a machine that says next to nothing of itself; hardware_box.py has another

    def tell(self, path, text):
        assert path in self.files, path
        self.change(f"tell {path}", lambda: self.files.__setitem__(path, text))

    def setting(self, key):
        return self.settings.get(key)

    def set(self, key, value):
        assert key in self.settings, key
        self.change(f"set {key}={value}", lambda: self._set(key, value))

    def _set(self, key, value):
        self.settings[key] = value

    def _settings_of(self, name):
        """What the kernel gives each interface of its own."""
        self.settings[f"net/ipv4/conf/{name}/send_redirects"] = "1"
        self.settings[f"net/ipv4/conf/{name}/rp_filter"] = "0"
        for key, value in (("accept_ra", 1), ("autoconf", 1), ("accept_redirects", 1), ("disable_ipv6", 0)):
            self.settings[f"net/ipv6/conf/{name}/{key}"] = str(value)
        self.settings[f"net/ipv6/conf/{name}/forwarding"] = "0"

    def _set_timeouts(self, seconds):
        self.timeouts = tuple(map(int, seconds))
        return Output(0, "", "")

    def put(self, path, text, mode=0o644):
        def write():
            self.modes[path] = mode
            if text is None:
                self.files.pop(path, None)
            else:
                self.files[path] = text
                # It starts as soon as there is something that it can work with.
                if path == self.paths.hold:
                    self.pair.elect()
                if path == self.paths.web and self.web is None and self._test_web().exit == 0:
                    self.web = text

        self.change(f"put {path.name}", write)

    def add_service(self, folder, template):
        self.change(f"add {folder.name}", lambda: self.files.__setitem__(folder / "run", "dhcp"))

    def remove_service(self, folder):
        self.change(f"remove {folder.name}", lambda: self.files.pop(folder / "run", None))

    def connect(self, address, port, timeout):
        return "open" if address == "127.0.0.1" and f"listen {port} " in (self.web or "") else "refused"

    def certificate(self, address, port, timeout):
        assert self.connect(address, port, timeout) == "open"
        named = re.search(r"ssl_certificate (.*);", self.web)
        return first(self._named(named[1])).fingerprint if named else "of the box itself"

    def _named(self, place):
        """What nginx reads there: the renderer knows where a real box has it."""
        return self.files.get(self.paths.certificates / Path(place).name, "")

    def _reload_web(self):
        text = self.files[self.paths.web]
        if not (self.deaf_web and self.deaf_web in text):
            self.web = text
        return Output(0, "", "")

    def _test_web(self):
        text = self.files[self.paths.web]
        absent = any(not self._named(place) for place in re.findall(r"ssl_certificate (.*);", text))
        bad = absent or (self.bad_web and self.bad_web in text)
        return Output(1, "nginx: [emerg] unexpected end of file", "") if bad else Output(0, "", "")

    def send(self, interface, frame):
        assert self.links[interface].up, f"{interface} cannot send"
        self.sent.append((interface, frame))

    def processes(self):
        if self.director_pid is None:
            return []
        argv = (f"ldirectord: checks {self.paths.ldirectord}",)
        return [Process(self.director_pid, self.director_pid, argv)]

    def kill_group(self, group):
        def kill():
            self.director_pid = None

        self.change(f"kill {group}", kill)

    def now(self):
        return self.clock

    def sleep(self, seconds):
        self.clock += seconds
        self.check_health()

    # --- what is behind it ---------------------------------------------------------------------------

    def check_health(self):
        """What ldirectord does: weights of checked servers, by its own file."""
        if self.director_pid is None:
            return
        if self.dies_at_start:
            self.director_since = self.clock
            self.director_pid = next(self.pids)
            return
        for key, reals, fallback, leave in _blocks(self.files.get(self.paths.ldirectord, "")):
            if key not in self.table:
                self.violations.append(f"ldirectord misses {key}")
                continue
            places = self.table[key][1]
            for place, weight in reals:
                if place not in places and not leave:
                    self.violations.append(f"ldirectord misses {place} of {key}")
                if leave and place in self.dead:
                    places.pop(place, None)
                else:
                    places[place] = 0 if place in self.dead else weight
            if fallback:
                places.pop(fallback, None)
                if all(place in self.dead for place, _ in reals):
                    places[fallback] = 1

    def _direct(self, verb):
        if verb == "stop":
            if not self.unkillable:
                self.director_pid = None
            return "down"
        if self.paths.ldirectord not in self.files:
            self.violations.append("ldirectord is started without its file")
        if self.director_pid is None:
            self.director_pid, self.director_since = next(self.pids), self.clock
        return "run"

    def _nft(self, path, check=False):
        text = self.files[Path(path)]
        if self.bad_rules and "management_v4" in text:
            return Output(1, "", "Error: No such file or directory; did you mean a kernel with nft_limit?")
        if not check:
            self.rules = text
            self.joined.clear()
            self._check_rules()
        return Output(0, "", "")

    def _check_rules(self):
        """What IPVS has, the rules of the firewall let pass; those of a box that is closed do not."""
        if self.rules is None or "set replies" not in self.rules:
            return
        for (protocol, address, port), (_, places) in self.table.items():
            wanted = [
                f"{address} . {protocol} . {port}",
                *(f"{one} . {protocol} . {at}" for one, at in {*places} - self.by_hand),
            ]
            gone = [element for element in wanted if element not in self.rules]
            self.violations += [f"the firewall stops {element}, which IPVS still has" for element in gone]

    def _ip(self, lines, force=False):
        if self.rules is None and any("address add" in line for line in lines):
            self.violations.append("an address without a firewall")
        before = {*self.links}
        code, said = self.kernel.batch(lines, force)
        self.pair.look()
        for name in {*self.links} - before:
            self._settings_of(name)
            self._inherit(name)
        for key in [
            key for key in self.settings if len(key.split("/")) == 5 and key.split("/")[3] in before - {*self.links}
        ]:
            del self.settings[key]
        return Output(code, "", said)

    def _inherit(self, name):
        for key in [key for key in self.settings if f"/conf/{name}/" in key]:
            self.settings[key] = self.settings[key.replace(f"/conf/{name}/", "/conf/default/")]

    def _ipvsadm(self, lines):
        if self.director_pid is not None:
            self.violations.append("the table is written while ldirectord runs")
        status = 0
        for line in lines:
            words = line.split()
            address, _, port = words[2].rpartition(":")
            key = (PROTOCOLS[words[1]], address.strip("[]"), int(port))
            options = dict(itertools.pairwise(words))
            status = 0
            try:
                self._ipvsadm_line(words[0], key, options)
            except (KeyError, AssertionError):
                status = 1  # ipvsadm goes on, and reports the last line only
        self._check_rules()
        return Output(status, "", "Memory allocation problem" if status else "")

    def _ipvsadm_line(self, verb, key, options):
        if verb == "-A":
            assert key not in self.table
            self.table[key] = [options["-s"], {}]
        elif verb == "-E":
            self.table[key][0] = options["-s"]
        elif verb == "-D":
            del self.table[key]
        else:
            address, port = options["-r"].split(":")
            places = self.table[key][1]
            place = (address, int(port))
            if verb == "-d":
                del places[place]
            else:
                assert (place in places) == (verb == "-e")
                places[place] = int(options["-w"])


def _blocks(text):
    """Key of the service, its servers and their weights, fallback, whether dead ones leave: of each block."""
    for block in re.split(r"\n(?=virtual=)", text)[1:]:
        address, port = re.match(r"virtual=(.*):(\d+)", block).groups()
        protocol = re.search(r"protocol=(\w+)", block)[1]
        reals = re.findall(r"real=([\d.]+):(\d+) masq (\d+)", block)
        fallback = re.search(r"fallback=([\d.]+):(\d+)", block)
        yield (
            (protocol, address, int(port)),
            [((a, int(p)), int(w)) for a, p, w in reals],
            (fallback[1], int(fallback[2])) if fallback else None,
            "quiescent=no" in block,
        )
