"""Settings that depend on the machine and not on what is balanced: one table, each line with its reason and source.

Those that depend on the configuration are in lbconfig/wanted/settings.py; no key is in both.
Sizes follow the memory: what a flood can fill must leave room for everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lbconfig.hardware.facts import Machine
from lbconfig.model.problem import quote
from lbconfig.model.tuning import SettingChoice

LISA = "O'Rourke and Keefe, Performance Evaluation of Linux Virtual Server, LISA 2001"
IP_DOC = "Linux, Documentation/networking/ip-sysctl.rst"
NET_DOC = "Linux, Documentation/admin-guide/sysctl/net.rst"
FS_DOC = "Linux, Documentation/admin-guide/sysctl/fs.rst"
TRACK_DOC = "Linux, Documentation/networking/nf_conntrack-sysctl.rst"
TABLE_SIZE = "module/ip_vs/conn_tab_bits"
AT_START = "It takes effect when the box restarts."  # what Tunable.at_start means to an admin
MODULE = "module/"  # begins the key of a module's parameter
_LAST_FREE_PORT = 64502  # the one after it is that of the sorry page (snapshot.SORRY_PORT)
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Tunable:
    key: str  # below /proc/sys, with slashes; or "module/NAME/PARAMETER"
    value: Callable[[Machine], tuple[int, ...]]
    lowest: int  # that an admin may set, of each of its numbers
    highest: int
    reason: str
    source: str

    @property
    def at_start(self) -> bool:
        """Whether a change waits for the next start of the box: the kernel takes it with the module."""
        return self.key.startswith(MODULE)

    @property
    def path(self) -> str:
        if not self.at_start:
            return f"/proc/sys/{self.key}"
        _, module, parameter = self.key.split("/")
        return f"/sys/module/{module}/parameters/{parameter}"


@dataclass(frozen=True, slots=True)
class Wanted:
    tunable: Tunable
    standard: str  # of the table, for this machine
    value: str  # what it should be

    @property
    def key(self) -> str:
        return self.tunable.key


def _always(*numbers: int) -> Callable[[Machine], tuple[int, ...]]:
    return lambda machine: numbers


def _power_of_two(number: int) -> int:
    """The smallest that is not less."""
    return 1 << max(0, number - 1).bit_length()


def _tracked(machine: Machine) -> tuple[int, ...]:
    """About 320 bytes each (struct nf_conn): at most a sixteenth of the memory."""
    return (min(max(_power_of_two(machine.memory * 128), 1 << 16), 1 << 21),)


def _files(machine: Machine) -> tuple[int, ...]:
    return (max(150_000, machine.memory * 100),)


def _table_bits(machine: Machine) -> tuple[int, ...]:
    """As many rows as the kernel itself allows for the memory: half of it, 512 bytes a connection, four in a row."""
    return (min(max((max(machine.memory, 1) - 1).bit_length() + 8, 12), 22),)


def _neighbours(factor: int) -> Callable[[Machine], tuple[int, ...]]:
    """One takes about 400 bytes: the largest of the three sizes stays below a hundredth of the memory."""
    return lambda machine: (factor * (1024 if machine.memory < 2048 else 4096),)


_ROW = Tunable
TABLE: tuple[Tunable, ...] = (
    _ROW(
        "net/core/rmem_max", _always(5 * _MB), 212_992, 256 * _MB,
        "The most that a program may ask for: bursts of health checks' answers and of the kernel's messages fit.",
        f"{LISA} (5 MB)",
    ),
    _ROW(
        "net/core/wmem_max", _always(5 * _MB), 212_992, 256 * _MB,
        "The same for what is sent.", f"{LISA} (5 MB)",
    ),
    _ROW(
        "net/core/rmem_default", _always(212_992), 65_536, 16 * _MB,
        "2001 gave every socket 5 MB. Since 2.6.17 TCP's buffers grow by themselves, and what is balanced passes no "
        "socket: more would only be memory for a flood of UDP to fill.", f"{LISA} (5 MB); {IP_DOC}, tcp_rmem",
    ),
    _ROW(
        "net/ipv4/tcp_rmem", _always(4096, 131_072, 6 * _MB), 4096, 256 * _MB,
        "Least, first and most of a connection to the box itself: an update of 100 MB is received at wire speed.",
        f"{IP_DOC}, tcp_rmem",
    ),
    _ROW(
        "net/ipv4/tcp_wmem", _always(4096, 16_384, 4 * _MB), 4096, 256 * _MB,
        "The same for what the web page and the sorry page send.", f"{IP_DOC}, tcp_wmem",
    ),
    _ROW(
        "net/core/somaxconn", _always(4096), 128, 65_535,
        "Clients that wait for the sorry page when all servers have just died.", f"{IP_DOC}, somaxconn",
    ),
    _ROW(
        "net/ipv4/tcp_max_syn_backlog", _always(4096), 128, 1 << 20,
        "Handshakes that are under way with the box itself; above it SYN cookies answer.",
        f"{IP_DOC}, tcp_max_syn_backlog",
    ),
    _ROW(
        "net/core/netdev_max_backlog", _always(4096), 1000, 100_000,
        "Packets that wait for another CPU where they are spread by software (RPS); 1000 of 64 bytes are there within "
        "a millisecond at 1 Gbit/s. More would only wait longer.",
        f"{NET_DOC}, netdev_max_backlog",
    ),
    _ROW(
        "net/core/netdev_budget", _always(600), 300, 10_000,
        "Packets of one round over all cards; with 300 several cards squeeze each other (softnet_stat).",
        f"{NET_DOC}, netdev_budget",
    ),
    _ROW(
        "net/core/netdev_budget_usecs", _always(8000), 8000, 100_000,
        "Longest time of a round in µs; two ticks of the clock is the least that the kernel takes.",
        f"{NET_DOC}, netdev_budget_usecs",
    ),
    _ROW(
        "net/ipv4/ip_early_demux", _always(0), 0, 1,
        "No socket is looked up for each packet before it is known where it goes: nearly all belong to no socket here.",
        f"{IP_DOC}, ip_early_demux",
    ),
    _ROW(
        "net/ipv4/ip_local_port_range", _always(32_768, 60_999), 1024, _LAST_FREE_PORT,
        "Ports of the health checks. 2001's clients needed 1024 to 65535 because each port was used for one server at "
        "a time; now each server may see them all. Below begin the ports of services, above is that of the sorry page.",
        f"{LISA} (1024 to 65535); {IP_DOC}, ip_local_port_range",
    ),
    _ROW(
        "net/ipv4/tcp_tw_reuse", _always(1), 0, 2,
        "Thousands of health checks a minute use their ports again after a second instead of a minute.",
        f"{IP_DOC}, tcp_tw_reuse",
    ),
    _ROW(
        "net/ipv4/tcp_fin_timeout", _always(30), 5, 120,
        "Seconds that a half closed connection to the box itself is kept.", f"{IP_DOC}, tcp_fin_timeout",
    ),
    _ROW(
        "net/ipv4/tcp_slow_start_after_idle", _always(0), 0, 1,
        "A page that asks every two seconds is answered in one go.", f"{IP_DOC}, tcp_slow_start_after_idle",
    ),
    _ROW(
        "net/netfilter/nf_conntrack_max", _tracked, 16_384, 1 << 24,
        "Connections that the firewall knows (web page, health checks, source NAT); a full table drops packets.",
        f"{TRACK_DOC}, nf_conntrack_max",
    ),
    _ROW(
        "net/netfilter/nf_conntrack_buckets", _tracked, 16_384, 1 << 24,
        "A row for each of them: with fewer, every packet walks a chain.", f"{TRACK_DOC}, nf_conntrack_buckets",
    ),
    *(
        _ROW(
            f"net/{family}/neigh/default/gc_thresh{place}", _neighbours(factor), 64, 1 << 20, reason,
            f"{IP_DOC}, neigh/default/gc_thresh{place}",
        )
        for family in ("ipv4", "ipv6")
        for place, factor, reason in (
            (1, 1, "So many neighbours (servers, clients of the same network) are never forgotten to make room."),
            (2, 4, "Above so many the oldest are forgotten after five seconds."),
            (3, 8, "The most: above it a machine of the same network cannot be reached at all."),
        )
    ),
    _ROW(
        "fs/file-max", _files, 65_536, 1 << 40,
        "Open files of all programs: a connection of the sorry page is one, or two.", f"{LISA} (150,000); {FS_DOC}",
    ),
    _ROW(
        "fs/nr_open", _always(1_048_576), 65_536, 1 << 30,
        "Open files that a single program may be allowed.", f"{FS_DOC}, nr_open",
    ),
    _ROW(
        TABLE_SIZE, _table_bits, 8, 27,
        "Rows of the table of balanced connections, as a power of two; a kernel whose table grows by itself "
        "(conn_lfactor) takes it for the most. It is taken at the start of the box.",
        "Linux, net/netfilter/ipvs/Kconfig, IP_VS_TAB_BITS",
    ),
)  # fmt: skip
BY_KEY = {row.key: row for row in TABLE}


def standard(tunable: Tunable, machine: Machine) -> str:
    return " ".join(str(number) for number in tunable.value(machine))


def wanted(machine: Machine, choices: Iterable[SettingChoice] = ()) -> tuple[Wanted, ...]:
    """In the order of the table. The choices must be valid (`problem`)."""
    chosen = {one.key: one.value for one in choices}
    return tuple(
        Wanted(row, usual := standard(row, machine), " ".join(chosen.get(row.key, usual).split())) for row in TABLE
    )


def problem(choice: SettingChoice) -> tuple[str, str] | None:
    """Field and sentence about what is wrong with it."""
    row = BY_KEY.get(choice.key)
    if row is None:
        return "key", f"{quote(choice.key)} is no setting that can be chosen here"
    count = len(row.value(Machine((), 1024)))
    words = choice.value.split(" ")
    if len(words) != count or not all(word.isascii() and word.isdecimal() and len(word) < 15 for word in words):
        many = "a whole number" if count == 1 else f"{count} whole numbers with a blank between them"
        return "value", f"must be {many}, not {quote(choice.value)}"
    numbers = [int(word) for word in words]
    if not all(row.lowest <= one <= row.highest for one in numbers):
        return "value", f"must be {row.lowest} to {row.highest}, not {quote(choice.value)}"
    if numbers != sorted(numbers):
        return "value", f"must not go down from one number to the next, as {quote(choice.value)} does"
    return None
