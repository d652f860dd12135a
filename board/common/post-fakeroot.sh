#!/bin/sh
# Buildroot calls this with the final root file system's folder, where modes and owners are what they will be in
# the image.
set -eu
here=$(dirname "$0")
target=${1:?}

# Buildroot gives BusyBox the SUID bit for programs that this box has not.
chmod 755 "$target/usr/bin/busybox"
"$here/root_rules.py" "$target"
