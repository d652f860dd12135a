"""How pages show a moment; a browser that runs scripts shows it in its own time zone (app.js).

Django puts the formats of its language above those of the settings, and English would be 2 p.m.
"""

DATE_FORMAT = SHORT_DATE_FORMAT = "j M Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = f"{DATE_FORMAT}, {TIME_FORMAT}"
