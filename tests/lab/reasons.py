"""Why a story did not pass, in one line: for the results that are kept of an image."""

from pathlib import Path

import pytest

LONGEST = 300  # characters of an error's first line


def reason(report: pytest.TestReport) -> str:
    """Why it was skipped, or where it failed and the first line of the error; empty if it passed."""
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    if not report.failed or crash is None:
        return ""
    first = crash.message.partition("\n")[0]
    return f"{Path(crash.path).name}:{crash.lineno}: {first[:LONGEST]}"
