"""Version, uptime, disk: what one asks when something is odd."""

from pathlib import Path

from django.shortcuts import render

from draft.frame import look
from web import backups

MEMORY = Path("/proc/meminfo")


def overview(request):
    status = look(request).status
    data = status["data"] if status else None
    context = {
        "status": status,
        "uptime": words_of(status["uptime"]) if status else "",
        "used_percent": round(100 * (1 - data["free"] / data["total"])) if data and data["total"] else None,
        "memory": memory(),
        "backups": backups.listed(),
    }
    return render(request, "system/overview.html", context)


def words_of(seconds: float) -> str:
    """ "3 days 4 h", "4 h 12 min", "12 min"."""
    minutes = int(seconds) // 60
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{days} day{'s' * (days > 1)} {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def memory() -> dict | None:
    """Bytes; None where the kernel does not say."""
    try:
        lines = dict(line.split(":", 1) for line in MEMORY.read_text().splitlines() if ":" in line)
        total, available = (int(lines[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return None
    return {"total": total, "used": total - available}
