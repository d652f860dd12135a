"""Results of make bench: kept as JSON, shown as Markdown and SVG."""

import dataclasses
import json
import platform

import pytest
from bench.head import TOP, Head, look, processor
from bench.parts import PARTS
from bench.result import Measured, Picture, Result, Series, Table, from_json, to_json
from board.lab.build import Image

from bench import kept, parts, report

HEAD = Head("2026-11-23 12:04", "make bench", False, "Some CPU", 2, 24105, "6.1.0", "tcg", "QEMU 7.2.22", "abc", "6.12")
RATES = Table(
    "Rates", ("way", "rate", "of"), (("NAT", Measured((10.0, 12.0, 11.0)), None), ("a|b", 1234, 0.5)), "Note."
)
LINE = Series("NAT", (1.0, 2.0), (1.0, 1.5), (0.9, 1.4), (1.1, 1.6))
DRAWN = Picture("some", "Rates", "offered", "answered", (LINE,))
RESULT = Result("some", "Some part", "A paper.", (RATES,), (DRAWN,), ("one remark",))


@pytest.mark.parametrize("text", ["", "[]", "{}", to_json(RESULT).replace('"rounds"', '"round"')])
def test_what_is_no_result_is_refused(text):
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        from_json(text)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (None, "–"),
        ("text", "text"),
        (1234567, "1,234,567"),
        (1234.56, "1,235"),
        (12.345, "12.3"),
        (1.2345, "1.23"),
        (0.012345, "0.0123"),
        (0.0, "0"),
        (Measured((3.0, 1.0, 2.0)), "2.00 (1.00–3.00)"),
        (Measured((3.0,)), "3.00"),
    ],
)
def test_cells(cell, said):
    assert report.shown(cell) == said


def test_a_table_with_a_wrong_row_is_refused_by_its_title():
    with pytest.raises(ValueError, match="table 'Rates': 1 cells for 2 columns"):
        Table("Rates", ("a", "b"), ((1,),))


def test_a_series_of_two_lengths_is_refused_by_its_name():
    with pytest.raises(ValueError, match="series 'NAT'"):
        Series("NAT", (1.0, 2.0), (1.0,))


def test_a_picture_of_no_known_kind_is_refused():
    with pytest.raises(ValueError, match="'pie'"):
        Picture("some", "", "", "", (), "pie")


def test_measured_tells_median_spread_and_ratio():
    one = Measured((10.0, 12.0, 11.0))
    assert (one.median, one.low, one.high) == (11.0, 10.0, 12.0)
    assert one.spread == pytest.approx(2 / 11)
    assert one.times(Measured((22.0,))) == 0.5
    assert one.times(0) is None
    with pytest.raises(ValueError, match="at least one round"):
        Measured(())


def test_the_page_says_what_each_part_was_measured_on():
    quick = dataclasses.replace(HEAD, date="2026-11-24 09:00", quick=True, command="make bench QUICK=1")
    other = dataclasses.replace(RESULT, name="other", title="Other part", tables=(), pictures=(), remarks=())
    page = report.text([kept.Part(HEAD, RESULT), kept.Part(quick, other)])
    assert "## Run 1\n" in page and "## Run 2 (quick)" in page
    assert "Some CPU, 2 cores, 24 GiB" in page and "`make bench QUICK=1`" in page
    some, rest = page.split("## Some part")[1].split("## Other part")
    assert "Run 1, measured in full" in some and "Run 2, measured only quickly" in rest
    assert "| NAT | 11.0 (10.0–12.0) | – |" in some and "| a\\|b | 1,234 | 0.50 |" in some
    assert "|---|--:|--:|" in some and "- one remark" in some


def test_pictures_are_drawn_and_equal_results_give_equal_files(tmp_path):
    pytest.importorskip("matplotlib", reason="only make bench brings it")
    bars = Picture("bars", "Rates", "", "a second", (Series("NAT", ("1", "2"), (1.0, 2.0)),), "bars", right="MB/s")
    whole = dataclasses.replace(RESULT, pictures=(*RESULT.pictures, bars))
    for folder in ("one", "two"):
        report.write([kept.Part(HEAD, whole)], tmp_path / "page.md", tmp_path / folder)
    for name in ("bench-some.svg", "bench-bars.svg"):
        drawn = (tmp_path / "one" / name).read_text()
        assert drawn == (tmp_path / "two" / name).read_text()
        assert ">NAT</text>" in drawn
    assert "![Rates](images/bench-some.svg)" in (tmp_path / "page.md").read_text()


def test_a_full_run_goes_before_a_newer_quick_one(tmp_path):
    heads = {
        "full": HEAD,
        "quick": dataclasses.replace(HEAD, date="2026-11-24 09:00", quick=True),
        "newer": dataclasses.replace(HEAD, date="2026-11-25 09:00"),
    }
    only_quick = dataclasses.replace(RESULT, name="other")
    for name, head in heads.items():
        folder = kept.begin(head, tmp_path)
        kept.keep(folder, dataclasses.replace(RESULT, remarks=(name,)))
        if name == "quick":
            kept.keep(folder, only_quick)
    best = kept.best(kept.every(tmp_path))
    assert {name: part.head.quick for name, part in best.items()} == {"some": False, "other": True}
    assert best["some"].result.remarks == ("newer",)


def test_what_the_page_shows_stays_where_one_part_is_measured_anew(tmp_path):
    other = dataclasses.replace(RESULT, name="other")
    kept.show([kept.Part(HEAD, RESULT), kept.Part(HEAD, other)], tmp_path / "shown")
    newer = dataclasses.replace(HEAD, date="2026-11-25 09:00")
    kept.keep(kept.begin(newer, tmp_path / "runs"), dataclasses.replace(other, remarks=("newer",)))
    best = kept.best([*kept.shown(tmp_path / "shown"), *kept.every(tmp_path / "runs")])
    assert best["some"] == kept.Part(HEAD, RESULT)
    assert (best["other"].head, best["other"].result.remarks) == (newer, ("newer",))
    kept.show(best.values(), tmp_path / "shown")
    assert {part.result.name: part for part in kept.shown(tmp_path / "shown")} == best


def test_the_page_of_this_project_is_what_its_data_make():
    parts = sorted(kept.shown(), key=lambda part: list(PARTS).index(part.result.name))
    assert report.PAGE.read_text() == report.text(parts)


def test_a_folder_without_a_head_is_no_run(tmp_path):
    (tmp_path / "rubbish").mkdir()
    (tmp_path / "rubbish/some.json").write_text("{")
    assert kept.every(tmp_path) == []


def test_parts_are_chosen_by_name_in_their_own_order(monkeypatch):
    monkeypatch.setattr(parts, "PARTS", {"a": "json", "b": "json", "c": "json"})
    assert parts.chosen("") == ("a", "b", "c")
    assert parts.chosen("c, a") == ("a", "c")
    with pytest.raises(parts.NoSuchPart, match="there is no part 'd'; there are: a, b, c"):
        parts.chosen("a,d")


def test_every_part_can_be_run():
    for name in parts.PARTS:
        assert callable(parts.runner(name))


def test_the_head_of_this_machine_names_neither_host_nor_folder(tmp_path):
    (tmp_path / "tree/usr/lib/modules/6.12.1").mkdir(parents=True)
    seen = look("make bench", True, Image(tmp_path / "vmlinuz", tmp_path / "initramfs", {}))
    said = json.dumps(dataclasses.asdict(seen))
    assert seen.guest == "6.12.1" and str(tmp_path) not in said
    assert platform.node() not in said and str(TOP) not in said


def test_the_processor_is_read_from_cpuinfo():
    assert processor("processor\t: 0\nmodel name\t: AMD EPYC\n") == "AMD EPYC"
