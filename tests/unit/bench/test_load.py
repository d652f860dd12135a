"""The logs of clients, the way of averaging, and the programs that make load."""

import json
import socket
import subprocess
import time

import pytest
from bench.load import Log, best_third, collect, parse
from bench.neighbours import SERVERS, cpu_seconds
from board.machines.link import free_port
from board.machines.wait import until

from bench import compiled, peers, stage
from lbconfig.model.snapshot import Forwarding
from lbconfig.validate.services import validate

LINE = {
    "seconds": 2, "tried": 10, "replies": 8, "late": 1, "bytes": 9000, "errors": {"timeout": 1, "refused": 0},
    "median": 2.0, "p95": 3.0, "p99": 4.0, "longest": 5.0, "each": [[5, 5000], [3, 3000]],
}  # fmt: skip


def log(**changed) -> Log:
    return parse(json.dumps(LINE | changed))


def test_a_log_is_read():
    one = log()
    assert (one.rate, one.offered, one.failed, one.each) == (4.0, 5.0, 1, ((5, 5000), (3, 3000)))


@pytest.mark.parametrize("line", ["", "no json", "{}", "[1]", json.dumps(LINE | {"more": 1})])
def test_what_is_no_log_is_refused(line):
    with pytest.raises((ValueError, KeyError, TypeError)):
        parse(line)


def test_logs_of_clients_that_ran_together_become_one():
    one = collect([log(), log(replies=27, late=0, median=4.0, longest=9.0, each=[[20, 10], [7, 20]])])
    assert (one.tried, one.replies, one.late, one.bytes, one.longest) == (20, 35, 1, 18000, 9.0)
    assert one.errors == {"timeout": 2, "refused": 0}
    assert one.each == ((25, 5010), (10, 3020))
    assert one.median == pytest.approx((2.0 * 9 + 4.0 * 27) / 36)


def test_without_replies_there_are_no_times():
    assert collect([log(replies=0, late=0), log(replies=0, late=0)]).median == 0


def test_logs_of_different_runs_are_not_mixed():
    with pytest.raises(ValueError, match="same seconds"):
        collect([log(), log(seconds=3)])
    with pytest.raises(ValueError, match="no client"):
        collect([])


def test_haproxys_way_of_averaging():
    assert best_third(range(60)) == sum(range(35, 55)) / 20  # 5 best left out, 20 averaged
    assert best_third([1, 2, 3, 100]) == 3
    assert best_third([7, 9]) == 7
    with pytest.raises(ValueError, match="two seconds"):
        best_third([1])


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The folder of compiled programs, so that the test writes nothing elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "KEPT", tmp_path_factory.mktemp("programs"))
        try:
            compiled.program("load")
        except compiled.CannotCompile as error:
            if "not installed" not in str(error):
                raise
            pytest.skip("no compiler; make bench brings it")
        yield compiled


@pytest.fixture
def serving(programs, request):
    """A server on a port of its own, with the words that the test asks for."""
    with subprocess.Popen([programs.program("serve"), str(PORT), *getattr(request, "param", ())]) as server:
        wait_for_port()
        yield server
        server.kill()


PORT = free_port()


def wait_for_port() -> None:
    until("the server", lambda: socket.create_connection(("127.0.0.1", PORT)).close() is None, interval=0.02)


def loaded(*words: str) -> Log:
    done = subprocess.run([compiled.program("load"), *words], capture_output=True, text=True, timeout=30, check=True)
    return parse(done.stdout)


def test_what_is_offered_is_answered_in_whole(serving):
    one = loaded("-r", "200", "-s", "2", "/628", f"127.0.0.1:{PORT}")
    assert one.failed == 0 and one.tried == one.replies + one.late
    assert one.tried == pytest.approx(400, abs=100)  # a busy machine begins the last ones too late
    assert one.bytes > 628 * one.replies


def test_large_objects_come_whole(serving):
    one = loaded("-c", "2", "-s", "1", "/5000000", f"127.0.0.1:{PORT}")
    assert one.replies > 0 and one.failed == 0
    assert sum(size for _, size in one.each) > 5_000_000 * one.replies


@pytest.mark.parametrize("serving", [("100",)], indirect=True)
def test_a_server_held_to_a_rate_answers_no_more(serving):
    one = loaded("-r", "400", "-s", "3", "/628", f"127.0.0.1:{PORT}")
    assert one.rate <= 130
    assert one.errors["timeout"] > 300


def test_nobody_there_is_an_error_for_each(programs):
    one = loaded("-r", "50", "-s", "1", "/628", f"127.0.0.1:{PORT}")
    assert one.replies == 0 and one.errors["refused"] == one.tried > 0


@pytest.mark.parametrize("words", [(), ("/628",), ("-s", "0", "/628", "127.0.0.1:80"), ("/628", "nonsense:80")])
def test_wrong_words_are_refused(programs, words):
    done = subprocess.run([programs.program("load"), *words], capture_output=True, timeout=60, check=False)
    assert done.returncode == 2


def test_blocks_go_there_and_back(programs):
    pipe = programs.program("pipe")
    with subprocess.Popen([pipe, "serve", str(PORT)]) as server:
        wait_for_port()
        words = ["ask", "127.0.0.1", str(PORT), "0", str(time.time()), "0.2", "64", "100000"]
        done = subprocess.run([pipe, *words], capture_output=True, text=True, timeout=30, check=True)
        server.kill()
    (size, trips, seconds), (larger, *_) = (line.split() for line in done.stdout.splitlines())
    assert (size, larger) == ("64", "100000")
    assert int(trips) > 1 and float(seconds) > 0


def test_large_blocks_go_no_faster_than_a_card_would_send_them(programs):
    pipe = programs.program("pipe")
    with subprocess.Popen([pipe, "serve", str(PORT)]) as server:
        wait_for_port()
        words = ["ask", "127.0.0.1", str(PORT), "5000000", str(time.time()), "1", "1000000"]
        done = subprocess.run([pipe, *words], capture_output=True, text=True, timeout=30, check=True)
        server.kill()
    size, trips, seconds = map(float, done.stdout.split())
    assert size * trips * 2 / seconds < 6_000_000


def test_a_program_that_does_not_compile_says_why(monkeypatch, tmp_path):
    (tmp_path / "broken.c").write_text("int main(void) { return nothing; }")
    monkeypatch.setattr(compiled, "SOURCES", tmp_path)
    monkeypatch.setattr(compiled, "KEPT", tmp_path / "made")
    with pytest.raises(compiled.CannotCompile, match=r"broken\.c.*nothing|not installed"):
        compiled.program("broken")


def test_the_services_of_the_stage_are_valid_and_of_every_way():
    snapshot = stage.services((1, 4))
    assert validate(snapshot) == []
    ways = {(one.forwarding, len(one.real_servers)) for one in snapshot.services}
    assert ways == {(way, count) for way in stage.WAYS.values() for count in (1, 4)}
    assert {way for way, _ in ways} == {Forwarding.NAT, Forwarding.DIRECT, Forwarding.TUNNEL}
    assert len({one.address for one in snapshot.services}) == len(snapshot.services)


def test_the_other_balancers_get_all_servers():
    for one in peers.PEERS:
        assert all(address in one.file for address in SERVERS[: peers.SERVERS_USED]), one.name
        assert "{" not in one.start and "{" not in one.stop.replace("${", ""), one.name


def test_processor_time_of_a_process_is_read():
    work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; read -r line"
    with subprocess.Popen(["sh", "-c", work], stdin=subprocess.PIPE) as busy:
        until("some work", lambda: cpu_seconds(busy.pid) > 0, interval=0.02)
        busy.kill()
