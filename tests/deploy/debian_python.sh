#!/usr/bin/env bash
# Run the quick tests with the Python of another release of Debian, in a root file system of that release.
#   tests/deploy/debian_python.sh trixie                  Python 3.13
#   tests/deploy/debian_python.sh forky tests/judge -x    with arguments of pytest
# Run it as root, with mmdebstrap installed.  The file system (about 2 GB) stays in the cache; remove it there to
# get a newer one.  Tests in a browser are skipped: they need the release's chromium, which is not installed.
set -euo pipefail
suite=${1:?"which release of Debian? For example: $0 trixie"}
shift
if [ "$(id -u)" != 0 ]; then echo "$0: a root file system is made and entered by root: use sudo" >&2; exit 2; fi
command -v mmdebstrap >/dev/null || { echo "$0: mmdebstrap is missing: apt-get install mmdebstrap" >&2; exit 2; }
repository=$(cd "$(dirname "$0")/../.." && pwd)
root=${XDG_CACHE_HOME:-$HOME/.cache}/kalarena-python-tests/$suite
packages=python3,python3-venv,bubblewrap,ca-certificates,gcc,git,libc6-dev,make,postgresql,procps,util-linux

if [ ! -e "$root/ready" ]; then
  rm -rf --one-file-system "$root"
  mkdir -p "$root"
  # The index of an unreleased Debian may be old, which is good enough here.
  mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' --include=$packages "$suite" "$root"
  touch "$root/ready"
fi
rm -rf "$root/src"
mkdir "$root/src"
git -C "$repository" archive HEAD | tar x -C "$root/src"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"

# shellcheck disable=SC2016 # expanded inside
exec unshare --mount --propagation private bash -euo pipefail -c '
  root=$1; shift
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/tmp"
  # Not chroot: a process in a chroot may not create the user namespaces that the sandbox needs.
  cd "$root"
  pivot_root . mnt
  umount --lazy /mnt
  exec /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -euc "
    cd /src
    git init -q . && git add -A && git -c user.name=tests -c user.email=tests@localhost commit -qm tested
    [ -d /venv ] || python3 -m venv /venv
    /venv/bin/pip --disable-pip-version-check install -q -c constraints.txt -e \".[test]\"
    /venv/bin/python -VV
    exec /venv/bin/python -m pytest -n auto --dist worksteal \"\$@\"
  " sh "$@"
' bash "$root" "$@"
