#!/bin/sh
# Install what a Debian host needs to build and boot the developer image ("run"), to test it ("test"), to measure
# it ("bench"), and to build the real image with Buildroot ("image").
# Says nothing and takes a moment when all is there.
set -eu

run="python3 qemu-system-x86 mmdebstrap squashfs-tools e2fsprogs cpio zstd busybox-static uidmap ca-certificates"
disk="dosfstools genimage grub-common grub-efi-amd64-bin grub-pc-bin mtools openssl ovmf qemu-utils"
# libatomic1 is for the browser's driver; dbus and systemd for systemd-networkd in a namespace
test="$disk chromium chromium-headless-shell curl dbus fdisk fonts-dejavu-core gcc iproute2 libatomic1 libc6-dev libio-socket-ssl-perl libwww-perl nftables perl rauc shellcheck systemd"
# The programs that make load (bench/programs) are compiled here and run in the guests.
bench="gcc libc6-dev"
# https://buildroot.org/downloads/manual/manual.html#requirement, and what menuconfig draws with
image="bc build-essential bzip2 cpio file libncurses-dev patch perl qemu-utils rsync unzip wget xz-utils"

case "${1:-}" in
run) wanted="$run" ;;
test) wanted="$run $test" ;;
bench) wanted="$run $test $bench" ;;
image) wanted="$run $image" ;;
*) echo "usage: $0 run|test|bench|image" >&2; exit 2 ;;
esac

# Debian's python3 leaves venv and pip to packages of their own; another Python brings them along.
python3 -c 'import ensurepip, venv' 2>/dev/null || wanted="$wanted python3-venv"

missing=""
for package in $wanted; do
	case "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" in
	installed) ;;
	*) missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0

echo "installing on this machine:$missing"
if [ "$(id -u)" -eq 0 ]; then
	sudo=""
elif command -v sudo >/dev/null; then
	sudo="sudo"
else
	echo "error: these packages are missing and there is neither root nor sudo:$missing" >&2
	exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of package names
if ! { $sudo apt-get update && $sudo apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "error: apt-get could not install:$missing" >&2
	exit 1
fi
