"""The services of the box, as their supervisor finds them (overlay/etc/sv)."""

from pathlib import Path

OVERLAY = Path(__file__).resolve().parents[2] / "overlay"


def test_every_script_can_be_run():
    scripts = [*OVERLAY.glob("etc/sv/*/run"), *OVERLAY.glob("etc/sv/*/finish"), *OVERLAY.glob("etc/sv/*/log/run")]
    assert len(scripts) > 10
    for script in scripts:
        target = OVERLAY / script.readlink().relative_to("/") if script.is_symlink() else script
        assert target.stat().st_mode & 0o111, script


def test_what_starts_later_does_not_start_by_itself():
    """A file "down" keeps a service from starting: the applier's own two apart, later/finish removes it."""
    down = {path.parent.name for path in OVERLAY.glob("etc/sv/*/down")}
    [line] = [one for one in (OVERLAY / "etc/sv/later/finish").read_text().splitlines() if one.startswith("for ")]
    assert down == {"pair", "time", *line.removeprefix("for service in ").removesuffix("; do").split()}
