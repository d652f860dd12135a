"""What the product calls: every program with every option that it uses, and a harmless way to try them.

Two images run the same product with programs that were built by different people: a program may be there and lack an
option, as nft without JSON. A story tries these lines on the image (tests/vm/test_programs.py); a quick test sees that
no call of the product is missing here (tests/unit/test_called.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).parents[2]
PYTHON = ("webui/applier", "webui/command", "overlay/usr/lib/fairlead")
SHELL = ("overlay/etc/init.d", "overlay/etc/sv", "overlay/usr/share/fairlead", "overlay/usr/sbin")
RUNNERS = {"run", "command", "Popen", "_json"}  # functions whose argument is the list of a program and its words
WORK = "/run/tried"  # a folder in memory

# Program -> lines for sh; each exits with 0 only where the program and the options in it work. In this order.
TRIES: dict[str, tuple[str, ...]] = {
    "mke2fs": (
        f"dd if=/dev/zero of={WORK}/disk bs=1M count=8 2>/dev/null",
        f"mke2fs -q -F -t ext4 -L FAIRLEAD-DATA -m 0 -b 4096 -I 256 -i 16384 -E nodiscard {WORK}/disk",
    ),
    "e2fsck": (f"e2fsck -f -n {WORK}/disk", f"e2fsck -p {WORK}/disk"),
    "resize2fs": (f"resize2fs {WORK}/disk",),
    "blkid": (f"blkid {WORK}/disk | grep -q LABEL=.FAIRLEAD-DATA",),
    "arping": (
        "ip link add tried type veth peer name tried2 && ip link set tried up && ip link set tried2 up",
        "ip address add 192.0.2.1/24 dev tried",
        # Nobody answers, which ends with 1 as wrong options do.
        "arping -I tried -s 192.0.2.1 -c 2 -w 1 192.0.2.2 | grep -q Sent",
    ),
    "udhcpc": (
        "udhcpc -f -i tried -s /bin/true -t 1 -T 1 -A 1 -R -S -O ntpsrv -n 2>&1 | grep -q 'no lease'",
        "ip link del tried",
    ),
    "chpst": ("chpst -P true",),
    "chronyd": (f"touch {WORK}/chrony.conf && chronyd -p -d -U -u fairlead-time -f {WORK}/chrony.conf",),
    "cp": (f"cp -a /etc/hosts {WORK}/hosts", f"cp -Rp /etc/sv/. {WORK}/sv"),
    "rm": (f"rm -rf {WORK}/sv", f"rm -f {WORK}/hosts"),
    "env": ("env A=1 true",),
    "ethtool": (
        # By a pattern it asks netlink, which it can be built without.
        "ethtool -k '*' | grep -q 'Features for eth0'",
        "ethtool -l eth0",
        "ethtool -g eth0",
        "ethtool -c eth0",
        "ethtool -K eth0 gro on",
        # What a virtual card refuses is refused by the card; wrong options end with a word about the command line.
        "! ethtool -L eth0 combined 1 2>&1 | grep -q 'command line'",
        "! ethtool -G eth0 rx 256 2>&1 | grep -q 'command line'",
        "! ethtool -C eth0 rx-usecs 1 2>&1 | grep -q 'command line'",
    ),
    "fairlead-web-user": ("fairlead-web-user true",),
    "install": (f"install -d -o 990 -g 990 -m 750 {WORK}/installed",),
    "ip": (
        "ip -json -details address show dev lo | grep -q ifindex",
        "ip -json -6 rule show | grep -q table",
        "ip -json -4 rule show | grep -q table",
        "echo address show dev lo | ip -json -details -batch - | grep -q ifindex",
        "! echo link set nonexistent up | ip -force -batch - 2>&1 | grep -q unknown",
        # A rule of IPv6, there and away again.
        f"echo rule add from 2001:db8::9 lookup 9 preference 1001 >{WORK}/rules && ip -6 -batch {WORK}/rules",
        f"echo rule del from 2001:db8::9 lookup 9 preference 1001 >{WORK}/rules && ip -6 -batch {WORK}/rules",
        f": >{WORK}/rules && ip -batch {WORK}/rules",
    ),
    "ipvsadm": (
        "ipvsadm --set 0 0 0",
        # A service and servers of the kinds that the renderers write, and away again.
        "echo '-A -t 203.0.113.9:80 -s mh -p 60 -M 255.255.255.0 -b mh-fallback,mh-port' | ipvsadm -R",
        "echo '-a -t 203.0.113.9:80 -r 203.0.113.7:80 -m -w 1 -x 5 -y 2' | ipvsadm -R",
        "echo '-e -t 203.0.113.9:80 -r 203.0.113.7:80 -g -w 0' | ipvsadm -R",
        "echo '-d -t 203.0.113.9:80 -r 203.0.113.7:80' | ipvsadm -R",
        "echo '-a -t 203.0.113.9:80 -r 203.0.113.7:80 -i --tun-type gue --tun-port 6080 --tun-nocsum' | ipvsadm -R",
        "echo '-a -t 203.0.113.9:80 -r 203.0.113.8:80 -i --tun-type gre --tun-csum' | ipvsadm -R",
        "echo '-D -t 203.0.113.9:80' | ipvsadm -R",
        "echo '-A -f 4711 -6 -s rr -o' | ipvsadm -R; echo '-D -f 4711 -6' | ipvsadm -R",
    ),
    "keepalived": (
        "printf 'vrrp_instance a {\\ninterface eth0\\nvirtual_router_id 1\\nvirtual_ipaddress {\\n192.0.2.9\\n}\\n}\\n'"
        f" >{WORK}/keepalived.conf",
        "keepalived --config-test --dont-fork --dont-respawn --log-console --no-syslog"
        f" --use-file {WORK}/keepalived.conf --pid {WORK}/keepalived.pid --vrrp_pid {WORK}/vrrp.pid",
    ),
    "modprobe": ("modprobe -q -a ip_vs ip_vs_rr", "modprobe -a -b -q ip_vs", "modprobe -q -r ip_vs_mh"),
    "logger": ("logger -t tried -p daemon.err tried",),
    "mount": (
        f"mkdir -p {WORK}/m && mount -t tmpfs -o nosuid,nodev,noexec,size=1m tmpfs {WORK}/m",
        f"mkdir {WORK}/m/a {WORK}/m/b && mount --bind {WORK}/m/a {WORK}/m/b",
    ),
    "umount": (f"umount {WORK}/m/b", f"mount -o remount,ro {WORK}/m && umount {WORK}/m"),
    "mountpoint": ("mountpoint -q /proc",),
    "nft": (
        "nft -j list ruleset inet | grep -q nftables",
        "nft -j -t list ruleset inet | grep -q nftables",
        "echo 'table inet tried {}' | nft -c -f -",
    ),
    "nginx": ("setpriv --reuid 988 --regid 988 --clear-groups nginx -e stderr -t -q -c /etc/fairlead/sorry.conf",),
    "nice": ("nice -n 10 true",),
    "openssl": (
        f"printf '[req]\\nprompt=no\\ndistinguished_name=a\\nx509_extensions=b\\n[a]\\nCN=tried\\n[b]\\n"
        f"basicConstraints=CA:FALSE\\nsubjectAltName=IP:192.0.2.1\\n' >{WORK}/openssl.cnf",
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc -days 9"
        f" -config {WORK}/openssl.cnf -keyout {WORK}/key -out {WORK}/cert",
        f"openssl x509 -in {WORK}/cert -noout -pubkey",
        f"openssl pkey -in {WORK}/key -pubout -passin pass:",
    ),
    "python3": ("fairlead-web-user python3 -m gunicorn --config /etc/fairlead/gunicorn.conf.py --version",),
    "ping": ("ping -6 -c 1 -W 1 ::1",),
    "qemu-ga": ("qemu-ga -m virtio-serial -p /nonexistent -t /run --allow-rpcs=guest-info,guest-shutdown -D",),
    "rauc": ("rauc --conf=/etc/rauc/system.conf info --output-format=shell --help",),
    "readlink": ("readlink -f /etc/hosts",),
    "setpriv": (
        "setpriv --reuid 992 --regid 992 --clear-groups --no-new-privs --inh-caps=-all,+sys_time"
        " --ambient-caps=-all,+sys_time --bounding-set=-all,+sys_time true",
        "setpriv --reuid 991 --regid 991 --groups 990 true",
        "setpriv --reuid 990 --regid 990 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all true",
    ),
    "sha256sum": (
        f"echo a >{WORK}/a && cd {WORK} && sha256sum a >a.sha256 && sha256sum -c a.sha256",
        f"echo b >{WORK}/a && cd {WORK} && ! sha256sum -c a.sha256",
        f": >{WORK}/a.sha256 && cd {WORK} && ! sha256sum -c a.sha256",
    ),
    "sort": ("echo 2 b 1 | sort -k1,1 -k2,2 -k3,3n -r",),
    "sv": (
        "sv up /run/service/web",
        "sv status /run/service/web",
        # It waits: this one needs a second to end.
        f"mkdir {WORK}/slow",
        f"printf '#!/bin/sh\\ntrap \"sleep 1; exit\" TERM\\nwhile :; do sleep 0.1; done\\n' >{WORK}/slow/run",
        f"chmod +x {WORK}/slow/run",
        f"{{ setsid runsv {WORK}/slow >/dev/null 2>&1 & }}; sleep 1; sv status {WORK}/slow | grep -q ^run",
        f"sv -w 5 stop {WORK}/slow && sv status {WORK}/slow | grep -q ^down",
        f"sv exit {WORK}/slow",
    ),
    "sync": (f"sync {WORK}/cert {WORK}/key",),
    "sysctl": (f"echo nonexistent.key=1 >{WORK}/sysctl && sysctl -q -e -p {WORK}/sysctl",),
    "timeout": ("timeout 30 true",),
    "wg": (
        f"wg genkey >{WORK}/wg && wg pubkey <{WORK}/wg | grep -q =",
        "ip link add name tried0 mtu 1420 type wireguard",
        "printf '[Interface]\\nListenPort = 51820\\n' | wg syncconf tried0 /proc/self/fd/0",
        "wg show tried0 dump | grep -q 51820 && ip link delete dev tried0",
    ),
    "xargs": ("echo a | xargs echo",),
}
# They act for good, or are what a box that answers has running.
NOT_TRIED = {"reboot", "poweroff", "halt", "acpid", "klogd", "ldirectord", "syslogd", "runsvdir", "watchdog"}
KNOWN = TRIES.keys() | NOT_TRIED


def options_of(program: str, words: list[str]) -> set[str]:
    """The options among the words that follow a program, up to the next program that it starts."""
    found = set()
    for word in words:
        if word.rpartition("/")[2] in KNOWN - {program}:
            break
        if re.match(r"--?[a-zA-Z0-9]", word):
            found.add(word.partition("=")[0])
    return found


def in_shell(text: str) -> Iterator[tuple[str, set[str]]]:
    """Every known program that a script calls, with the options of that call."""
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    for part in re.split(r"[|;&\n()]|\bexec\b", text):
        words = part.replace("'", " ").replace('"', " ").split()
        for number, word in enumerate(words):
            if word in KNOWN:
                yield word, options_of(word, words[number + 1 :])


def in_python(text: str) -> Iterator[tuple[str, set[str]]]:
    """Every program that a module calls with a list of words, with the options in that list."""
    for node in ast.walk(ast.parse(text)):
        lists = [node] if isinstance(node, ast.List | ast.Tuple) and first(node) in KNOWN else []
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in RUNNERS:
            lists += [given for given in node.args if isinstance(given, ast.List) and first(given)]
        for given in lists:
            yield first(given), options_of(first(given), [constant(word) for word in given.elts[1:]])


def first(words: ast.List | ast.Tuple) -> str:
    return constant(words.elts[0]) if words.elts and isinstance(words.elts[0], ast.Constant) else ""


def constant(word: ast.expr) -> str:
    """The text of a constant, or the constant beginning of an f-string."""
    if isinstance(word, ast.JoinedStr) and word.values:
        word = word.values[0]
    return word.value if isinstance(word, ast.Constant) and isinstance(word.value, str) else ""


def calls() -> Iterator[tuple[Path, str, set[str]]]:
    """Every call in the sources of the product: where, which program, which options."""
    for folders, pattern, read in ((PYTHON, "*.py", in_python), (SHELL, "*", in_shell)):
        for folder in folders:
            for path in sorted((TOP / folder).rglob(pattern)):
                if path.is_file():
                    yield from ((path, program, options) for program, options in read(path.read_text()))
