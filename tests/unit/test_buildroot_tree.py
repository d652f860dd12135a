"""buildroot-external/ and configs/, held against Buildroot's rules as far as that goes without Buildroot.

With a Buildroot tree at hand (BUILDROOT=DIR) its own tools look too.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import kconfiglib
import pytest
from board.common import buildroot, kernel_options, python_packages
from tests.lab import called

from lbconfig.model.snapshot import Scheduler

TOP = Path(__file__).parents[2]
EXTERNAL = TOP / "buildroot-external"
PACKAGES = sorted(path.name for path in (EXTERNAL / "package").iterdir())
PATCHES = sorted((EXTERNAL / "patches").glob("*/*.patch"))
FRAGMENTS = sorted((TOP / "board/common/linux").glob("*.config"))
DEFCONFIGS = sorted((TOP / "configs").glob("*_defconfig"))
BUILDROOT = os.environ.get("BUILDROOT")


def recipe(package: str) -> dict[str, str]:
    """The variables of a package's .mk file without the package's name: {"VERSION": "1.31", …}."""
    text = (EXTERNAL / f"package/{package}/{package}.mk").read_text().replace("\\\n", " ")
    prefix = package.upper().replace("-", "_") + "_"
    return {
        found[1].removeprefix(prefix): found[2].strip() for found in re.finditer(r"^(\w+) = (.*)$", text, re.MULTILINE)
    }


@pytest.fixture(scope="module")
def menu(tmp_path_factory):
    """The external tree's menu, read by a Kconfig parser."""
    top = tmp_path_factory.mktemp("kconfig") / "Config.in"
    top.write_text(f'mainmenu "test"\nsource "{EXTERNAL}/Config.in"\n')
    os.environ["BR2_EXTERNAL_FAIRLEAD_PATH"] = str(EXTERNAL)
    return kconfiglib.Kconfig(str(top), warn=False)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_states_its_licence_and_a_hash_of_all_that_is_fetched(package):
    said = recipe(package)
    assert said["LICENSE"]
    licences = said["LICENSE_FILES"].split()
    assert licences
    if said.get("SITE_METHOD") == "local":
        return  # nothing is fetched: it is this repository
    lines = [line.split() for line in (EXTERNAL / f"package/{package}/{package}.hash").read_text().splitlines()]
    hashes = {name: value for kind, value, name in (line for line in lines if line and line[0] != "#")}
    assert all(re.fullmatch(r"[0-9a-f]{64}", value) for value in hashes.values())
    source = said.get("SOURCE", f"{package}-$({package.upper().replace('-', '_')}_VERSION).tar.gz")
    source = re.sub(r"\$\(\w+_VERSION\)", said["VERSION"], source)
    assert {source, *licences} == hashes.keys()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_a_menu_entry_with_a_help_text(menu, package):
    symbol = menu.syms[f"BR2_PACKAGE_{package.upper().replace('-', '_')}"]
    (node,) = symbol.nodes
    assert node.prompt[0] == package
    assert len(node.help) > 40


def test_every_selected_package_of_ours_exists(menu):
    ours = {f"BR2_PACKAGE_{package.upper().replace('-', '_')}" for package in PACKAGES}
    selected = {target.name for symbol in menu.unique_defined_syms for target, *_ in symbol.selects}
    known_to_buildroot = re.compile(
        r"BR2_PACKAGE_(LIBNL|POPT|PERL_\w+|PYTHON_(ASGIREF|GUNICORN|PYCRYPTODOMEX|SQLPARSE)|PYTHON3_\w+)"
    )
    for name in selected - ours:
        assert known_to_buildroot.fullmatch(name), name


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.name)
def test_a_patch_says_why_it_is_ours_and_names_its_decision(patch):
    """And its package is in the image: Buildroot passes over a folder whose name it does not know."""
    text = patch.read_text()
    assert re.match(r"\d{4}-[a-z0-9-]+\.patch", patch.name)
    decision = re.search(r"^Upstream: .*docs/decisions/(\d{4})", text, re.MULTILINE)[1]
    assert list(TOP.glob(f"docs/decisions/{decision}-*.md"))
    package = patch.parent.name
    assert package in PACKAGES or package == "linux"
    for defconfig in DEFCONFIGS:
        assert 'BR2_GLOBAL_PATCH_DIR="$(BR2_EXTERNAL_FAIRLEAD_PATH)/patches"' in defconfig.read_text()


@pytest.mark.parametrize("defconfig", DEFCONFIGS, ids=lambda path: path.name)
def test_a_defconfig_says_each_thing_once_and_names_files_that_exist(defconfig):
    lines = [line for line in defconfig.read_text().splitlines() if line and not re.match(r"# (?!BR2_)", line)]
    options = [re.fullmatch(r"(?:# )?(BR2_\w+)(?:=(?:y|\d+|\".*\")| is not set)", line)[1] for line in lines]
    assert len(options) == len(set(options))
    for place in re.findall(r"\$\(BR2_EXTERNAL_FAIRLEAD_PATH\)/([^\"$ )]+)", defconfig.read_text()):
        assert list(EXTERNAL.glob(place)) or (EXTERNAL / place).exists(), place


# Options of programs that Buildroot leaves out unless a setting asks for them; Debian's programs have them.
ASKED_FOR = {("nft", "-j"): "BR2_PACKAGE_NFTABLES_JSON=y"}


@pytest.mark.parametrize("defconfig", DEFCONFIGS, ids=lambda path: path.name)
def test_a_defconfig_asks_for_the_options_of_programs_that_the_product_calls(defconfig):
    called_ones = {(program, option) for _, program, options in called.calls() for option in options}
    for call, setting in ASKED_FOR.items():
        assert call in called_ones, f"nobody calls {' '.join(call)} any more"
        assert setting in defconfig.read_text().splitlines(), call


def test_the_kernel_fragments_can_be_read_and_do_not_contradict_each_other():
    said: dict[str, tuple[str, str]] = {}
    for fragment in FRAGMENTS:
        names = [name for name, _ in kernel_options.options(fragment.read_text())]
        assert len(names) == len(set(names)), fragment.name
        for name, value in kernel_options.options(fragment.read_text()):
            assert said.setdefault(name, (value, fragment.name))[0] == value, (name, fragment.name, said[name])


def test_the_kernel_has_what_the_box_needs():
    asked = {name for fragment in FRAGMENTS for name, _ in kernel_options.options(fragment.read_text())}
    cards = "E1000 E1000E IGB IGC IXGBE I40E R8169 TIGON3 BNX2 BNXT VIRTIO_NET VMXNET3 HYPERV_NET MLX4_EN MLX5_CORE"
    disks = "SATA_AHCI BLK_DEV_NVME VIRTIO_BLK USB_STORAGE"
    board = "X86_IO_APIC PCI_MSI EFI_PARTITION WATCHDOG"
    bundles = "BLK_DEV_LOOP DM_VERITY CRYPTO_SHA256"
    assert {f"CONFIG_{name}" for name in f"{cards} {disks} {board} {bundles}".split()} <= asked


def test_every_scheduler_of_the_kernel_can_be_chosen_and_the_other_way_round():
    """In both images; `twos` was in the kernel and refused."""
    fragment = (TOP / "board/common/linux/ipvs.config").read_text()
    modules = set((TOP / "board/lab/modules").read_text().split())
    found = re.findall(r"^CONFIG_IP_VS_(?!FTP)([A-Z]+)=m$", fragment, re.MULTILINE)
    schedulers = {name.lower() for name in found}
    assert schedulers == {str(one) for one in Scheduler}
    assert {f"ip_vs_{one}" for one in schedulers} <= modules


def test_both_images_have_what_the_link_between_two_boxes_is_made_of():
    asked = {name: value for path in FRAGMENTS for name, value in kernel_options.options(path.read_text())}
    assert asked["CONFIG_WIREGUARD"] == "m"
    assert "wireguard" in (TOP / "board/lab/modules").read_text().split()
    assert "wireguard-tools" in (TOP / "board/lab/packages").read_text().split()
    for defconfig in DEFCONFIGS:
        assert "BR2_PACKAGE_WIREGUARD_TOOLS=y" in defconfig.read_text().splitlines()


def test_the_recipes_have_the_versions_of_the_python_packages_that_the_developer_image_takes():
    versions = python_packages.wanted(python_packages.REQUIREMENTS.read_text())
    recipes = {name.removesuffix("-lts"): recipe(f"python-{name}")["VERSION"] for name in ("django-lts", "django-axes")}
    if BUILDROOT:
        for name in versions.keys() - recipes.keys():
            text = Path(BUILDROOT, f"package/python-{name}/python-{name}.mk").read_text()
            recipes[name] = re.search(r"_VERSION = (\S+)", text)[1]
    assert recipes.items() <= versions.items()


@pytest.mark.skipif(not BUILDROOT, reason="no Buildroot tree at hand (BUILDROOT=DIR)")
def test_buildroot_s_own_checker_has_nothing_to_say():
    files = [path for path in EXTERNAL.rglob("*") if path.is_file()]
    checker = Path(BUILDROOT, "utils/check-package")
    pytest.importorskip("magic", reason="the checker needs the Python package python-magic")
    done = subprocess.run(
        [sys.executable, checker, "-b", *files], capture_output=True, text=True, check=False, cwd=EXTERNAL
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not BUILDROOT, reason="no Buildroot tree at hand (BUILDROOT=DIR)")
@pytest.mark.parametrize("defconfig", DEFCONFIGS, ids=lambda path: path.name)
def test_buildroot_takes_every_setting(defconfig, tmp_path):
    wish = buildroot.Settings(Path(BUILDROOT), tmp_path, defconfig, None)
    buildroot.configure(wish)  # raises for a dropped setting
