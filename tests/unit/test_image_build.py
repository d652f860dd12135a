"""The tools around the Buildroot build: what they refuse, and what they tell."""

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
from board.common import again, buildroot, compare, kernel_options, python_packages, root_rules, sizes, stage
from board.common.buildroot import BuildrootError
from board.pc import layout

TOP = Path(__file__).parents[2]


def test_a_dropped_kernel_option_is_named_with_its_fragment():
    config = 'CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_M=m\nCONFIG_BUILTIN=y\nCONFIG_TEXT="x"\n'
    fragments = [
        ("cards.config", "# a comment\nCONFIG_A=y\nCONFIG_B=m\nCONFIG_GONE=y\nCONFIG_BUILTIN=m\n"),
        ("more.config", '# CONFIG_M is not set\nCONFIG_TEXT="x"\n'),
    ]
    assert [str(one) for one in kernel_options.dropped(config, fragments)] == [
        "cards.config: CONFIG_B=m was asked for, the kernel has n",
        "cards.config: CONFIG_GONE=y was asked for, the kernel has n",
        "more.config: CONFIG_M=n was asked for, the kernel has m",
    ]


def test_a_later_fragment_overrides_an_earlier_one():
    assert kernel_options.dropped("CONFIG_A=m\n", [("one", "CONFIG_A=y"), ("two", "CONFIG_A=m")]) == []


def test_a_line_that_is_no_option_is_refused():
    with pytest.raises(ValueError, match="CONFG_A=y"):
        list(kernel_options.options("CONFG_A=y\n"))


def test_the_check_of_kernel_options_fails_the_build(tmp_path, capsys):
    (tmp_path / "config").write_text("CONFIG_A=y\n")
    (tmp_path / "ipvs.config").write_text("CONFIG_IP_VS=m\n")
    words = [str(tmp_path / "config"), str(tmp_path / "ipvs.config")]
    assert kernel_options.main(words) == 1
    assert "ipvs.config: CONFIG_IP_VS=m" in capsys.readouterr().err
    (tmp_path / "config").write_text("CONFIG_IP_VS=m\n")
    assert kernel_options.main(words) == 0


@pytest.fixture
def root(tmp_path):
    for folder in ("etc", "usr/bin", "usr/sbin", "usr/lib"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "etc/shadow").write_text("root:!:::::::\nnobody:*:::::::\n")
    (tmp_path / "usr/bin/busybox").write_text("")
    return tmp_path


def test_a_good_root_file_system_breaks_no_rule(root):
    assert list(root_rules.broken_rules(root)) == []
    assert root_rules.main([str(root)]) == 0


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda root: (root / "usr/bin/gcc").write_text(""), "/usr/bin/gcc has no business on the box"),
        (lambda root: (root / "usr/sbin/telnetd").symlink_to("busybox"), "/usr/sbin/telnetd has no business"),
        (lambda root: os.chmod(root / "usr/bin/busybox", 0o4755), "/usr/bin/busybox runs with the rights of its owner"),
        (lambda root: os.chmod(root / "usr/bin/busybox", 0o2755), "/usr/bin/busybox runs with the rights of its owner"),
        (lambda root: os.chmod(root / "usr/bin/busybox", 0o757), "/usr/bin/busybox can be written by everybody"),
        (lambda root: (root / "etc/shadow").write_text("root::::::::\n"), "root can log in with a password"),
        (lambda root: (root / "etc/shadow").write_text("kim:$6$x$y:1::::::\n"), "kim can log in with a password"),
    ],
)
def test_a_broken_rule_fails_the_build_and_is_named(root, spoil, sentence, capsys):
    spoil(root)
    assert root_rules.main([str(root)]) == 1
    assert sentence in capsys.readouterr().err


def test_a_file_or_folder_of_another_user_breaks_a_rule(root, monkeypatch):
    real = Path.lstat

    def lstat(path):
        found = list(real(path))
        found[stat.ST_UID] += 33 * (path.name == "lib")
        return os.stat_result(found)

    monkeypatch.setattr(Path, "lstat", lstat)
    assert list(root_rules.broken_rules(root)) == [f"/usr/lib belongs to user {root.stat().st_uid + 33}"]


def test_sizes_go_to_the_package_that_installed_the_file(tmp_path):
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "usr/lib/a.pyc").write_bytes(b"a" * 1000)
    (tmp_path / "usr/lib/own").write_bytes(b"b" * 10)
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/vmlinuz").write_bytes(b"k" * 20)
    owner = sizes.owners("python3,./usr/lib/a.py\nperl,./usr/lib/gone.pl\n")
    found = sizes.by_package(tmp_path, owner)
    assert found["python3"][0] == 1000
    assert 0 < found["python3"][1] < 100
    assert found[sizes.OWN][0] == 10
    assert found["linux"][0] == 20
    assert "perl" not in found


def test_a_python_package_of_another_version_fails_the_build_and_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(python_packages, "REQUIREMENTS", tmp_path / "requirements.txt")
    (tmp_path / "requirements.txt").write_text("# a comment\nDjango==5.2.19\ndjango-axes==8.3.1\nasgiref==3.11.1\n")
    folder = tmp_path / "usr/lib/python3.14/site-packages"
    for name in ("django-6.0.5", "django_axes-8.3.1", "sqlparse-0.5.5"):
        (folder / f"{name}.dist-info").mkdir(parents=True)
    assert python_packages.main([str(tmp_path)]) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2] for line in said] == [
        "asgiref: 3.11.1 is wanted, the image has none",
        "django: 5.2.19 is wanted, the image has 6.0.5",
        "sqlparse: none is wanted, the image has 0.5.5",
    ]
    (tmp_path / "requirements.txt").write_text("Django==6.0.5\ndjango-axes==8.3.1\nsqlparse==0.5.5\n")
    assert python_packages.main([str(tmp_path)]) == 0


def test_a_dropped_setting_of_buildroot_is_named():
    wished = 'BR2_A=y\nBR2_TEXT="x"\n# BR2_B is not set\nBR2_C=y\n# a comment\nBR2_TEXT="y"\n'
    assert buildroot.dropped(wished, 'BR2_A=y\nBR2_TEXT="y"\nBR2_B=y\n') == ["BR2_B=", "BR2_C=y"]


@pytest.mark.parametrize(
    ("line", "package", "step"),
    [
        ("\x1b[7m>>> openssl 3.6.2 Building\x1b[27m", "openssl", "Building"),
        (">>> host-perl 5.42.2 Installing to host directory", "host-perl", "Installing to host directory"),
        (">>>   Finalizing target directory", "", "Finalizing target directory"),
    ],
)
def test_progress_is_read_off_buildroot_s_output(line, package, step):
    found = buildroot.STEP.match(line)
    assert (found["package"], found["step"].strip()) == (package, step)


def test_what_is_no_step_is_no_progress():
    assert buildroot.STEP.match("checking for >>> x") is None


def test_an_archive_that_is_not_the_pinned_release_is_refused(tmp_path):
    (tmp_path / f"buildroot-{buildroot.VERSION}.tar.xz").write_bytes(b"something else")
    with pytest.raises(BuildrootError, match=r"is not Buildroot .* Delete it and try again"):
        buildroot.release(tmp_path)
    assert not (tmp_path / f"buildroot-{buildroot.VERSION}").exists()


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [({"BUILDROOT": "/nowhere"}, "no Buildroot tree in /nowhere"), ({"EXTRA": "/nowhere"}, "EXTRA names no file")],
)
def test_wrong_settings_of_the_build_are_named(environment, sentence):
    with pytest.raises(BuildrootError, match=sentence):
        buildroot.settings(buildroot.absolute(environment))


# As much of Buildroot as board.common.buildroot asks for; its build writes down which files the scripts can see.
PRETENDED = """
.DEFAULT_GOAL := all
defconfig:
	@cp $(BR2_DEFCONFIG) $(O)/.config
show-build-order:
	@echo perl python-django
show-vars:
	@echo '{$(USERS)}'
all:
	@cat $$KEYS/cert.pem $$EXTRA >$(O)/seen
"""


@pytest.fixture
def pretended(tmp_path, monkeypatch):
    """A folder in which make image would build with a pretended Buildroot; everything is named by relative paths."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "tree/package/Makefile.in": "",
        "tree/Makefile": PRETENDED,
        "both/cert.pem": "the certificate\n",
        "more": 'BR2_MORE="y"\n',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name, path in {"BUILDROOT": "tree", "OUT": "out", "KEYS": "both", "EXTRA": "more"}.items():
        monkeypatch.setenv(name, path)
    return tmp_path


def test_relative_paths_mean_the_folder_in_which_make_was_called(pretended):
    assert buildroot.main(["image"]) == 0
    assert (pretended / "out/seen").read_text() == 'the certificate\nBR2_MORE="y"\n'


def test_a_package_that_adds_a_user_fails_the_build_with_its_name(pretended, monkeypatch, capsys):
    other = '"REDIS_USERS": {"expanded": "redis -1 redis -1 * - - -"}'  # not among the packages of this image
    monkeypatch.setenv("USERS", other)
    assert buildroot.main(["image"]) == 0
    monkeypatch.setenv("USERS", f'{other}, "PYTHON_DJANGO_USERS": {{"expanded": "dj -1 dj -1 * - - -"}}')
    assert buildroot.main(["image"]) == 1
    said = capsys.readouterr().err
    assert "python-django adds users" in said and "dj -1 dj" in said and "overlay/etc" in said
    monkeypatch.setattr(buildroot, "KNOWN_TO_ADD_USERS", ("python-django",))
    assert buildroot.main(["image"]) == 0


def test_the_users_of_packages_and_their_folders_do_not_get_into_the_image(root):
    """After what Buildroot does to the file system for a package that adds a user."""
    for file in ("passwd", "shadow", "group"):
        (root / "etc" / file).write_text("root:x:0:0:root:/root:/bin/sh\nchrony:x:1000:1000::/run/chrony:/bin/false\n")
    for folder in ("run/chrony", "var/lib/nginx", "var/www/html", "tmp", "boot"):
        (root / folder).mkdir(parents=True)
    (root / "boot/vmlinuz").write_text("the kernel")
    subprocess.run([Path(buildroot.__file__).with_name("post-fakeroot.sh"), root], check=True)
    for file in ("passwd", "shadow", "group"):
        assert (root / "etc" / file).read_bytes() == (buildroot.TOP / "overlay/etc" / file).read_bytes()
    assert not any([*root.glob("run/*"), *root.glob("var/lib/*"), *root.glob("var/www")])
    assert (root / "boot/vmlinuz").exists() and (root / "tmp").is_dir()


def test_a_failed_build_shows_the_end_of_its_log(tmp_path):
    tree = tmp_path / "tree"
    (tree / "package").mkdir(parents=True)
    (tree / "package/Makefile.in").write_text("")
    (tree / "Makefile").write_text(
        ".DEFAULT_GOAL := all\nshow-build-order:\n\t@echo perl\nshow-vars:\n\t@echo '{}'\nall:\n"
        "\t@echo '>>> perl 5 Building'; echo broken; exit 3\n"
    )
    out = tmp_path / "out"
    out.mkdir()
    (out / ".config").write_text("")
    said = []
    with pytest.raises(BuildrootError, match="broken"):
        buildroot.build(buildroot.Settings(tree, out, tmp_path, None), said.append)
    assert any("1/1  perl 5: Building" in line for line in said)


def squashfs(folder, files):
    tree = folder / "tree"
    tree.mkdir(parents=True)
    for name, text in files.items():
        (tree / name).write_text(text)
        os.utime(tree / name, (0, 0))
    image = folder / "root.squashfs"
    subprocess.run(["mksquashfs", tree, image, "-quiet", "-no-progress", "-mkfs-time", "0"], check=True)
    return image


def test_of_two_squashfs_files_the_differing_files_are_named(tmp_path, capfd):
    one = squashfs(tmp_path / "1", {"same": "x", "changed": "one", "gone": ""})
    other = squashfs(tmp_path / "2", {"same": "x", "changed": "two", "come": ""})
    assert compare.main([str(one), str(other)]) == 1
    said = capfd.readouterr().out
    assert "/changed: " in said
    assert "/gone: " in said
    assert "/come: is not there / " in said
    assert "/same" not in said


def disk(path, *marks):
    with path.open("wb") as file:
        file.truncate(layout.offset("data") + layout.size("data"))
        for place in marks:
            file.seek(place)
            file.write(b"x")
    return path


def test_of_two_disk_images_the_differing_partitions_are_named(tmp_path, capfd):
    one = disk(tmp_path / "one.img")
    other = disk(tmp_path / "other.img", 100, layout.offset("slot-a") + 5, layout.offset("data") - 1)
    assert compare.main([str(one), str(other)]) == 1
    said = capfd.readouterr().out.splitlines()
    assert said == ["table: 1 MiB with differences", "slot-a: 1 MiB with differences", "slot-b: 1 MiB with differences"]


def test_equal_images_are_equal(tmp_path, capfd):
    assert compare.main([str(disk(tmp_path / "one.img", 7)), str(disk(tmp_path / "other.img", 7))]) == 0
    assert "equal" in capfd.readouterr().out


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A project and the output folder of its first build."""
    monkeypatch.setattr(again, "TOP", tmp_path / "top")
    monkeypatch.setattr(again, "EXTERNAL", tmp_path / "top/external")
    for name in ("external/package/ipvsadm/ipvsadm.mk", "external/busybox.fragment", "board/common/linux/a.config"):
        (tmp_path / "top" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "top" / name).write_text("as it was")
    out = tmp_path / "out"
    (out / "build/buildroot-config").mkdir(parents=True)  # which Buildroot makes when it reads the configuration
    (out / ".config").write_text("BR2_x86_64=y\n")
    again.prepare(out, pytest.fail, pytest.fail)  # nothing is there that could be out of date
    for stamp in ("build/perl-1/.stamp_target_installed", "build/perl-1/.stamp_built", "target/usr/bin/perl"):
        (out / stamp).parent.mkdir(parents=True, exist_ok=True)
        (out / stamp).touch()
    for stamp in ("host-gcc-final-1", "host-perl-1"):
        (out / "build" / stamp).mkdir()
        (out / "build" / stamp / ".stamp_host_installed").touch()
    return out


def prepared(out):
    cleaned, said = [], []
    again.prepare(out, cleaned.append, said.append)
    return cleaned, said


def test_a_second_build_puts_the_target_together_anew(built):
    assert prepared(built) == (["fairlead"], [])
    assert not (built / "target").exists()
    left = {str(path.relative_to(built / "build")) for path in (built / "build").glob("*/.stamp*")}
    assert left == {"perl-1/.stamp_built", "host-perl-1/.stamp_host_installed"}


def test_what_a_package_installed_is_known_after_any_number_of_builds(built):
    lists = {name: built / "build" / name / ".files-list.txt" for name in ("perl-1", "host-perl-1")}
    lists["perl-1"].write_text("perl,./usr/bin/perl\n")
    lists["host-perl-1"].write_text("")
    assert again.installed(built) == "perl,./usr/bin/perl\n"
    for _ in range(2):
        prepared(built)
        lists["perl-1"].write_text("")  # as Buildroot does it when it only installs
        assert again.installed(built) == "perl,./usr/bin/perl\n"
    prepared(built)
    lists["perl-1"].write_text("perl,./usr/bin/cpan\n")  # built anew, in another version
    assert again.installed(built) == "perl,./usr/bin/cpan\n"


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("board/common/linux/a.config", "linux"),
        ("board/common/linux/new.config", "linux"),
        ("external/busybox.fragment", "busybox"),
        ("external/package/ipvsadm/ipvsadm.mk", "ipvsadm"),
        ("external/package/other/other.mk", "other"),
    ],
)
def test_what_is_built_from_changed_files_is_built_again(built, name, package):
    path = again.TOP / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("changed")
    assert prepared(built) == (sorted([package, "fairlead"]), [f"{package} is built again: its files changed"])
    assert prepared(built) == (["fairlead"], [])


def test_a_changed_configuration_is_said(built):
    (built / ".config").write_text("BR2_x86_64=y\nBR2_PACKAGE_VIM=y\n")
    cleaned, said = prepared(built)
    assert cleaned == ["fairlead"]
    assert f"delete {built} first" in said[0]


def test_another_commit_is_no_other_configuration(built):
    config = built / ".config"
    for commit in ("g8e4e0f3", "g9ad787e"):
        config.write_text(f'BR2_x86_64=y\nBR2_EXTERNAL_FAIRLEAD_VERSION="-{commit}"\n')
        assert prepared(built) == (["fairlead"], [])


def test_of_a_folder_that_nobody_knows_about_all_that_is_ours_is_built_again(built):
    (built / "inputs.json").unlink()
    cleaned, said = prepared(built)
    assert cleaned == ["busybox", "fairlead", "ipvsadm", "linux"]
    assert f"delete {built} first" in said[0]
    assert not (built / "target").exists()


def test_what_the_package_installs_is_staged(tmp_path):
    recipe = (stage.EXTERNAL / "package/fairlead/fairlead.mk").read_text()
    stage.own_software(tmp_path / "fairlead", tmp_path)
    installed = set(re.findall(r"\$\(@D\)/(\S+)", recipe))
    assert {"webui", "static", "guide.json", "new.sqlite3"} <= installed
    assert [name for name in installed if not (tmp_path / "fairlead" / name).exists()] == []
    assert (tmp_path / "fairlead/static/guide/one-arm.svg").exists()


@pytest.mark.parametrize("package", stage.FETCHED_BY_PIP)
def test_pip_is_asked_for_the_archive_that_the_recipe_names(package, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(stage, "run", lambda *command, log: asked.append(command))
    stage.fetch(package, tmp_path)
    version = wanted_of_pip()[package.removeprefix("python-").removesuffix("-lts")]
    name = package.removeprefix("python-").removesuffix("-lts").replace("-", "_")
    assert asked[0][-1] == f"{name}=={version}"
    assert f"--no-binary={name}" in asked[0], "Buildroot builds from the source"

    (tmp_path / f"{name}-{version}.tar.gz").touch()
    stage.fetch(package, tmp_path)
    assert len(asked) == 1, "what is there is not fetched again"


def wanted_of_pip() -> dict[str, str]:
    return python_packages.wanted(python_packages.REQUIREMENTS.read_text())


@pytest.mark.parametrize("what", ["GUIDE", "NEW_DATABASE"])
def test_both_images_have_what_is_made_for_them_where_the_web_process_looks(what):
    environment = (TOP / "overlay/etc/fairlead/web-environment").read_text()
    place = re.search(rf"FAIRLEAD_{what}=(\S+)", environment)[1]
    folder, _, name = place.rpartition("/")
    assert f'make_for_web(root / "{folder.lstrip("/")}", to)' in (TOP / "board/lab/build.py").read_text()
    recipe = (stage.EXTERNAL / "package/fairlead/fairlead.mk").read_text()
    assert re.search(rf" \$\(@D\)/{name} (.* )?\$\(TARGET_DIR\){folder}/\n", recipe)
