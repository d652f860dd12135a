"""What is in the image, seen from inside the booted box."""

import base64
import gzip
from pathlib import Path

import pytest
from board.common import kernel_options, python_packages

pytestmark = pytest.mark.timeout(900)

MAKERS = ("gcc", "cc", "c++", "ld", "as", "make", "tcc", "pip", "cpan", "gdb", "strace")
DOORS = ("login", "su", "sudo", "sshd", "telnetd", "inetd", "httpd")
LOOK = """
import sqlite3
box, image = (
    sqlite3.connect(f"file:{file}", uri=True).execute
    for file in ("/data/web/fairlead.sqlite3", "/usr/lib/fairlead/new.sqlite3?immutable=1")
)
number = "PRAGMA user_version"
moments = "SELECT count(DISTINCT applied) FROM django_migrations"
print(*box(moments).fetchone(), box(number).fetchone() == image(number).fetchone() != (0,))
"""
FRAGMENTS = sorted(Path(kernel_options.__file__).parent.glob("linux/*.config"))


def test_no_file_runs_with_the_rights_of_its_owner(director):
    assert director.succeed(r"find / -xdev -type f \( -perm -4000 -o -perm -2000 \)") == ""


def test_nothing_on_the_box_makes_programs_or_lets_somebody_in(director):
    for program in (*MAKERS, *DOORS):
        director.fail(["sh", "-c", f"command -v {program}"])


def test_the_python_packages_are_those_of_the_other_image(director):
    folders = " ".join(f"/{place}/*.dist-info" for place in python_packages.PLACES)
    found = python_packages.installed(director.succeed(f"ls -d {folders} 2>/dev/null; true").replace("/", "\n").split())
    wish = python_packages.wanted(python_packages.REQUIREMENTS.read_text())
    assert list(python_packages.differences(wish, found)) == []


def test_the_database_of_a_new_box_is_the_one_of_the_image(director):
    """No migration was run: each would have noted when."""
    assert director.succeed(["python3", "-c", LOOK]) == "1 True\n"


def test_every_kernel_option_that_was_asked_for_is_there(director):
    if director.execute(["test", "-e", "/proc/config.gz"]).exit:
        pytest.skip("this kernel is Debian's; ours shows its configuration in /proc/config.gz")
    config = gzip.decompress(base64.b64decode(director.succeed("base64 /proc/config.gz"))).decode()
    fragments = [(path.name, path.read_text()) for path in FRAGMENTS]
    assert [str(one) for one in kernel_options.dropped(config, fragments)] == []
    assert len(dict(kernel_options.options(config))) > 1000
