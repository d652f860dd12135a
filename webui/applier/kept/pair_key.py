"""The key pair by which the two boxes of a pair know each other. The private key never leaves its file but for wg."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from applier.base import durable
from applier.base.paths import Paths
from applier.host.host import Host, HostError, run

_KEY = re.compile("[A-Za-z0-9+/]{43}=")  # 32 bytes as base64
WHAT = "the key of this box for the other box of the pair"


@dataclass(frozen=True, slots=True)
class Fresh:
    """A new pair of keys that no disk has yet."""

    public: str
    private: str = field(repr=False)


def private(paths: Paths) -> str:
    """Raises HostError where there is none, or no good one."""
    try:
        text = paths.pair_key.read_text(errors="replace").strip()
    except FileNotFoundError:
        raise HostError(WHAT, None, f"{paths.pair_key} is not there; the pair has to be made anew") from None
    except OSError as error:
        raise HostError(WHAT, None, f"{paths.pair_key} cannot be read: {error.strerror}") from None
    # wg repeats a key that it cannot read in its message, and messages are logged.
    if not _KEY.fullmatch(text):
        raise HostError(WHAT, None, f"{paths.pair_key} is damaged; the pair has to be made anew")
    return text


def public(host: Host, paths: Paths) -> str:
    """What the other box may know. Raises HostError as `private` does."""
    return run(host, ["wg", "pubkey"], stdin=f"{private(paths)}\n").stdout.strip()


def make(host: Host, paths: Paths) -> str:
    """A new pair of keys instead of any that there was; the public one. Raises HostError, OSError."""
    made = fresh(host)
    keep(paths, made)
    return made.public


def fresh(host: Host) -> Fresh:
    """Raises HostError."""
    made = run(host, ["wg", "genkey"]).stdout
    return Fresh(run(host, ["wg", "pubkey"], stdin=made).stdout.strip(), made)


def keep(paths: Paths, made: Fresh) -> None:
    """Use it from now on instead of any that there was. Raises OSError."""
    paths.pair_key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable.replace(paths.pair_key, made.private.encode())
