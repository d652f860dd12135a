"""How often each rule of the admin has matched, from what nft prints."""

import dataclasses
import json
import shutil
import subprocess

import pytest
from tests.fake.appliance import sample_snapshot

from applier.host.host import Output
from applier.parts import firewall
from applier.wire.errors import ApplierRefused
from lbconfig.model.firewall import Action, Firewall, RateLimit, Rule, RuleProtocol, Where
from lbconfig.render import nftables


class NftSays:
    """A host on which only nft can be asked."""

    def __init__(self, text: str, exit_code: int = 0) -> None:
        self.output = Output(exit_code, text, "Error: No such file or directory")
        self.asked: list[list[str]] = []

    def command(self, argv, stdin="", timeout=0):
        self.asked.append(list(argv))
        return self.output


def rule(comment: str, packets: int, size: int = 60) -> dict:
    counter = {"counter": {"packets": packets, "bytes": packets * size}}
    return {"rule": {"comment": comment, "expr": [{"match": {}}, counter, {"accept": None}]}}


def test_counters_of_all_lines_of_a_rule_are_added():
    listed = [{"metainfo": {}}, {"set": {"name": "vips"}}, rule("rule 7", 5), rule("rule 7", 2), rule("rule 7 over", 3)]
    listed += [rule("rule 12", 0), {"rule": {"expr": [{"counter": {"packets": 9, "bytes": 9}}]}}, rule("rulebook", 4)]
    host = NftSays(json.dumps({"nftables": listed}))
    assert firewall.counters(host) == [
        {"id": 7, "packets": 7, "bytes": 420, "over": 3},
        {"id": 12, "packets": 0, "bytes": 0, "over": 0},
    ]
    assert host.asked == [["nft", "-j", "-t", "list", "table", "inet", "fairlead"]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[]",
        '{"nftables": 5}',
        '{"nftables": ["a"]}',
        '{"nftables": [{"rule": {"comment": "rule 1", "expr": []}}]}',
        '{"nftables": [{"rule": {"comment": "rule 1", "expr": [{"counter": {}}]}}]}',
        '{"nftables": [{"rule": {"comment": 5}}]}',
    ],
)
def test_what_cannot_be_read_is_refused_in_words(text):
    with pytest.raises(ApplierRefused) as caught:
        firewall.counters(NftSays(text))
    assert caught.value.code == "no-counters"


def test_no_table_is_refused_in_words():
    with pytest.raises(ApplierRefused, match="The firewall cannot be read"):
        firewall.counters(NftSays("", 1))


def test_nft_itself_prints_what_is_read():
    """The rendered rules, loaded in a namespace of their own and listed."""
    nft = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin")
    alone = ["unshare", "--user", "--map-root-user", "--net"]
    if nft is None or subprocess.run([*alone, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no nft, or no namespaces here")
    rules = (
        Rule(1, "ssh", sources=("10.0.0.0/8", "2001:db8::/32"), protocol=RuleProtocol.TCP, ports="22"),
        Rule(2, "few", where=Where.SERVICES, limit=RateLimit(5, each_source=True)),
        Rule(3, "no", Action.REJECT, Where.THROUGH, log=True),
    )
    text = nftables.render(dataclasses.replace(sample_snapshot(), firewall=Firewall(rules)))
    script = f"{nft} -f - && {nft} -j -t list table inet fairlead"
    done = subprocess.run([*alone, "sh", "-c", script], input=text, capture_output=True, text=True, check=True)
    found = firewall.counters(NftSays(done.stdout))
    assert sorted(one["id"] for one in found) == [1, 2, 3]
    assert "services" in done.stdout and "192.168.10.80" not in done.stdout  # the sets, without what is in them
