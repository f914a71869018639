#!/usr/bin/env bash
# Proves README's commands on a bare Debian 12: a fresh chroot, a fresh clone of the last commit, nothing of ours installed.
# By hand and as root, since it needs debootstrap, mounts and about 4 GB; no check runs it.
#
#   tests/bare_machine.sh FOLDER      FOLDER must not exist; the log is FOLDER.log; remove FOLDER afterwards
set -euo pipefail

folder=${1:?usage: tests/bare_machine.sh FOLDER}
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ "$(id -u)" != 0 ]; then echo "bare_machine: run as root (chroot and mounts)" >&2; exit 2; fi
if [ -e "$folder" ]; then echo "bare_machine: $folder exists; name a new folder" >&2; exit 2; fi
if ! command -v debootstrap >/dev/null; then echo "bare_machine: apt-get install debootstrap git" >&2; exit 4; fi
exec > >(tee "$folder.log") 2>&1

unmount() {
  for mount in dev proc sys; do
    if mountpoint -q "$folder/$mount"; then umount -R --lazy "$folder/$mount"; fi
  done
}
trap unmount EXIT

echo "== debootstrap bookworm"
debootstrap --variant=minbase bookworm "$folder" >"$folder.debootstrap.log"

# The caller's way to Debian and PyPI. The bundle has a name of its own: installing ca-certificates rewrites Debian's.
cp -a /etc/apt/apt.conf.d/. "$folder/etc/apt/apt.conf.d/"
rm -f "$folder/etc/apt/sources.list"
for path in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources /etc/resolv.conf /etc/hosts /etc/pip.conf; do
  if [ -f "$path" ]; then cp -L "$path" "$folder$path"; fi
done
bundle=${PIP_CERT:-${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}}
mkdir -p "$folder/etc/ssl"
if [ -f "$bundle" ]; then cp -L "$bundle" "$folder/etc/ssl/caller-bundle.crt"; fi

mount -t proc proc "$folder/proc"
mount --rbind /dev "$folder/dev"
mount --rbind /sys "$folder/sys"

# --no-hardlinks, and a plain path: the chroot must not reach back into the caller's repository.
git clone --quiet --no-hardlinks "$source" "$folder/root/headrace"
git -C "$folder/root/headrace" log -1 --format='== commit %h %s'
echo "== packages before: $(chroot "$folder" dpkg-query -W | wc -l)"

inside() {
  echo "== $*"
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb \
    http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" \
    PIP_CERT=/etc/ssl/caller-bundle.crt SSL_CERT_FILE=/etc/ssl/caller-bundle.crt \
    chroot "$folder" bash -c 'cd /root/headrace && "$@"' bash "$@"
}

status=0
if [ -e "$source/examples/demo.py" ]; then inside ./dev demo || status=1; fi
inside ./dev check --all || status=1
echo "== packages after: $(chroot "$folder" dpkg-query -W | wc -l)"
inside git status --short || status=1
echo "== bare machine: $([ $status = 0 ] && echo passed || echo FAILED)"
exit $status
