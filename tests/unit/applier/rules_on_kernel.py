"""In a network namespace of its own: what the kernel lists of some golden rule sets, before and after it is touched.

Prints one line a case; ends with 1 where a change by hand was not seen, or something else was taken for one.
"""

import subprocess
import sys
from pathlib import Path

from applier.base.paths import Paths
from applier.host.host import Live
from applier.parts import firewall

GOLDEN = Path(__file__).parents[2] / "golden"
CASES = ("rules-of-the-admin", "several-ports-and-ipv6", "four-ways-to-forward")
BY_HAND = (
    "add rule inet fairlead input accept",
    "insert rule inet fairlead forward drop",
    "add element inet fairlead management_v4 { 203.0.113.7 }",
    "delete element inet fairlead management_v4 { %s }",
    "add chain inet fairlead mine { type filter hook input priority -300; policy accept; }",
    "chain inet fairlead input { policy accept; }",
    "flush chain inet fairlead input",
    "flush set inet fairlead management_v4",
    "delete table inet fairlead",
)
OF_ITSELF = (
    "table inet somebody_else { chain input { type filter hook input priority 0; policy accept; }; }",
    "add element inet fairlead joining { 64505 timeout 600s }",
)


def nft(text: str) -> None:
    subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)


def load(folder: Path, file: Path) -> str:
    """As the step does; the rules."""
    rules = file.read_text()
    firewall.load(Live(), file)
    paths = Paths(run=folder)
    firewall.note(Live(), paths, rules)
    Live().put(paths.nftables, rules)
    return rules


def main(folder: Path) -> int:
    wrong = 0
    paths = Paths(run=folder)
    for file in (GOLDEN / case / "expected/nftables.conf" for case in CASES):
        rules = load(folder, file)
        listed = rules.partition("\tset management_v4 {")[2]
        allowed = next(line.strip(" \t,") for line in listed.splitlines() if line.startswith("\t\t\t"))
        grown = [line.split()[1] for line in rules.splitlines() if line.startswith("\tset rule_") and "rate" in line]
        of_itself = [
            *OF_ITSELF,
            *(f"add element inet fairlead {one} {{ 192.0.2.1 }}" for one in grown if "6" not in one),
        ]
        for text in of_itself:
            nft(text)
            wrong += _said(file, text, firewall.altered(Live(), paths, rules), None)
        again = firewall.fingerprint(Live())
        load(folder, file)
        wrong += _said(file, "loaded again", None if firewall.fingerprint(Live()) == again else "another", None)
        for text in (one.replace("%s", allowed) for one in BY_HAND):
            nft(text)
            gone = text.startswith("delete table")
            wanted = "not there" if gone else "changed since they were loaded"
            wrong += _said(file, text, firewall.altered(Live(), paths, rules), wanted)
            load(folder, file)
    return 1 if wrong else 0


def _said(file: Path, what: str, said: str | None, wanted: str | None) -> int:
    print(f"{file.parents[1].name}: {what}: {said}")
    if said != wanted:
        print(f"{file.parents[1].name}: {what}: {said!r}, not {wanted!r}", file=sys.stderr)
    return int(said != wanted)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
