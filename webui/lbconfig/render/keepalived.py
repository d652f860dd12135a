"""Who of a pair leads: keepalived's file. It elects, and holds no address (decision 82).

What it tells its fifo, the floater does: so nothing here changes with the services, and an apply that adds a VIP
reloads nothing. Facts of keepalived's that this file rests on:
- A group of instances has one role; what happens to one of them happens to all.
- Advertisements list the addresses of their instance, and an instance needs one. Each has one of its own on lo, which
  nobody can reach from outside and which both boxes know by the same number.
- `nopreempt` needs the state BACKUP, also of the box with the higher priority. That counts where nobody leads yet, and
  where both did while they could not hear each other. 254 and 251 make the peer wait a hundredth of an advertisement.
- An interface that is down makes its instance FAULT, and with it the group. The cable does not count: it is down on
  both boxes when one of them dies (`dont_track_primary`).
- With `timer_expired_backup` a process that stood still stands by first: the peer has taken over meanwhile.
- Without `vrrp_rlimit_rttime` a program of a real-time class is killed after ten milliseconds of work.
"""

from __future__ import annotations

from lbconfig.model.addresses import version
from lbconfig.model.pair import Pair
from lbconfig.model.snapshot import Snapshot
from lbconfig.pair import Heartbeat, Sides, heartbeats, sides

FOLDER = "/run/fairlead"
FIFO = f"{FOLDER}/vrrp.fifo"  # what becomes of the group; the floater reads it
HOLD = f"{FOLDER}/hold"  # 0, or another number for a box that must not lead
PRIORITIES = (254, 251)
GROUP = "pair"


def render(snapshot: Snapshot) -> str:
    """In keepalived.conf(5) syntax. `snapshot` is the view of a box of a pair; of one that is alone it is empty."""
    both = sides(snapshot)
    if snapshot.pair is None or both is None:
        return ""
    beats = heartbeats(snapshot.pair, both.number)
    lines = [
        *_block(
            "global_defs",
            f"router_id {both.own.name}",
            "vrrp_version 3",
            "vrrp_rt_priority 50",
            "vrrp_rlimit_rttime 5000000",
            f"vrrp_notify_fifo {FIFO}",
        ),
        *_block("track_file hold", f"file {HOLD}", "weight 0"),
        *_block(
            f"vrrp_sync_group {GROUP}",
            *_block("group", *(beat.interface for beat in beats)),
            *_block("track_file", "hold"),
        ),
        *(line for beat in beats for line in _instance(snapshot.pair, both, beat)),
    ]
    return "".join(f"{line}\n" for line in lines)


def _instance(pair: Pair, both: Sides, beat: Heartbeat) -> list[str]:
    return _block(
        f"vrrp_instance {beat.interface}",
        "state BACKUP",
        "nopreempt",
        f"interface {beat.interface}",
        *(["dont_track_primary"] if beat.cable else []),
        f"virtual_router_id {beat.number}",
        f"priority {PRIORITIES[both.number]}",
        f"advert_int {pair.advert / 1000:g}",
        "timer_expired_backup 254",
        f"unicast_src_ip {beat.address}",
        *_block("unicast_peer", beat.peer),
        *_block("virtual_ipaddress", f"{_nobodys(beat)} dev lo"),
    )


def _nobodys(beat: Heartbeat) -> str:
    """The address of an instance, of the same family as its advertisements."""
    return f"fe80::fa1:{beat.number:x}/128" if version(beat.address) == 6 else f"169.254.255.{beat.number}/32"


def _block(head: str, *lines: str) -> list[str]:
    return [f"{head} {{", *(f"    {line}" for line in lines), "}"]
