"""Sets of CPUs as the kernel writes them: "0-3,8" (lists) and "ff,00000001" (masks, 32 bits a word)."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 8192  # CPUs; the kernel's largest (CONFIG_NR_CPUS), so nonsense makes no endless list


def parse_list(text: str) -> tuple[int, ...]:
    """In ascending order; what cannot be read is left out."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (last or first).isdecimal() and len(first) < 6 and len(last) < 6:
            found.update(range(int(first), min(int(last or first), MOST - 1) + 1))
    return tuple(sorted(found))


def parse_mask(text: str) -> tuple[int, ...]:
    """In ascending order; empty for what is no mask."""
    try:
        bits = int(text.strip().replace(",", "") or "0", 16)
    except ValueError:
        return ()
    return tuple(number for number in range(min(bits.bit_length(), MOST)) if bits >> number & 1) if bits > 0 else ()


def list_text(cpus: Iterable[int]) -> str:
    """ "0-3,8"; empty for none."""
    runs: list[list[int]] = []
    for number in sorted(set(cpus)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def mask_text(cpus: Iterable[int]) -> str:
    """In words of 32 bits from the highest, as rps_cpus takes them; "0" for none."""
    bits = sum(1 << number for number in set(cpus))
    words = []
    while bits:
        words.append(bits & 0xFFFFFFFF)
        bits >>= 32
    if not words:
        return "0"
    return ",".join([f"{words[-1]:x}", *(f"{word:08x}" for word in reversed(words[:-1]))])
