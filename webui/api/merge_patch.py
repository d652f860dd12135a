"""JSON merge patch (RFC 7396)."""

from __future__ import annotations


def merged(target: object, patch: object) -> object:
    """`target` with what `patch` says: null takes a field away, an object goes deeper, the rest replaces."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found
