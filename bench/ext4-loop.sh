#!/bin/sh
# Makes a journaled ext4 in a file, mounts it and prints the directory to give to --dir; for
# machines whose own disk has no journal. Needs root.
#
#   bench/ext4-loop.sh [DIR]            make it below DIR (default: $TMPDIR or /tmp), mount it
#   bench/ext4-loop.sh --umount [DIR]   unmount it and delete the file
#   SIZE=8G bench/ext4-loop.sh          another size (default 4G; the file is sparse)
set -eu

umount=no
if [ "${1:-}" = --umount ]; then
    umount=yes
    shift
fi
base=${1:-${TMPDIR:-/tmp}}/ccb-bench-ext4
image=$base/ext4.img
mnt=$base/mnt

if [ "$(id -u)" != 0 ]; then
    echo "$0: mounting needs root" >&2
    exit 1
fi

if [ "$umount" = yes ]; then
    if mountpoint -q "$mnt"; then
        umount "$mnt"
    fi
    rm -f "$image"
    for dir in "$mnt" "$base"; do
        if [ -d "$dir" ]; then
            rmdir "$dir"
        fi
    done
    exit 0
fi

if mountpoint -q "$mnt"; then
    echo "$mnt"
    exit 0
fi
mkdir -p "$mnt"
rm -f "$image"
truncate -s "${SIZE:-4G}" "$image"
# One inode per 4 KiB: boards are many small files. Tables are written at once and not in the
# background while something is being measured.
mkfs.ext4 -q -F -i 4096 -O has_journal -E lazy_itable_init=0,lazy_journal_init=0 "$image"
mount -o loop "$image" "$mnt"
# The user who called sudo may write here.
chown "${SUDO_UID:-0}:${SUDO_GID:-0}" "$mnt"
echo "$mnt"
