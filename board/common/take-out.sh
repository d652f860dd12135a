#!/bin/sh
# Takes out of a root file system what packages bring and the box never uses.
#
# take-out.sh FOLDER
set -eu
here=$(dirname "$0")
target=${1:?}

sed '/^#/d' "$here/removed" | while read -r name; do
	# shellcheck disable=SC2086 # patterns are meant
	rm -rf "${target:?}"/$name
done
# Folders that the init scripts mount on or link into.
for folder in tmp run var/log var/lib data disk; do
	rm -rf "${target:?}/$folder"
	mkdir -p "$target/$folder"
done
