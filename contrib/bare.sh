#!/usr/bin/env bash
# Shows that a fresh machine needs only the Rust toolchain and git: creates a minimal Debian with git, clones the last
# commit of this checkout into it, and runs a command there.
#
#     sudo contrib/bare.sh [COMMAND...]      # ./test.sh by default; some 4 GiB below $TMPDIR, removed at the end
#
# Needs root, for chroot, and Debian's debootstrap. Uses this machine's toolchain, package sources and certificates.
# Exits with the command's exit code.
set -euo pipefail
[ $# -gt 0 ] || set -- ./test.sh
[ "$(id -u)" -eq 0 ] || { echo "bare.sh: only root can chroot: sudo $0" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "bare.sh: debootstrap is not installed: apt-get install debootstrap" >&2; exit 2; }

checkout=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
owner=$(getent passwd "${SUDO_USER:-root}" | cut -d: -f6)
rustup=${RUSTUP_HOME:-$owner/.rustup}
cargo=${CARGO_HOME:-$owner/.cargo}
[ -d "$rustup/toolchains" ] && [ -x "$cargo/bin/cargo" ] || { echo "bare.sh: no rustup toolchain in $rustup" >&2; exit 2; }

root=$(mktemp -d)
chmod 755 "$root"
trap 'rm -rf --one-file-system "$root"' EXIT
. /etc/os-release
mirror=$(grep -rhoE 'https?://[^ ]+' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | grep -E '/debian/?$' | head -1 || true)
debootstrap --variant=minbase --include=ca-certificates,git "$VERSION_CODENAME" "$root" "${mirror:-http://deb.debian.org/debian}" >"$root.log" 2>&1 ||
    { tail -5 "$root.log" >&2; rm -f "$root.log"; exit 2; }
rm -f "$root.log"
cp -rnT /etc/apt/apt.conf.d "$root/etc/apt/apt.conf.d"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
mkdir -p "$root/root/.cargo/bin" "$root/root/.rustup"
cp -a "$cargo/bin/." "$root/root/.cargo/bin/"
[ ! -e "$cargo/config.toml" ] || cp "$cargo/config.toml" "$root/root/.cargo/"
git clone -q "$checkout" "$root/root/clone"

# The mounts belong to this process, and end with it.
export root rustup
unshare --mount -- bash -c '
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount --bind "$rustup" "$root/root/.rustup"
    exec chroot "$root" /usr/bin/env -i HOME=/root USER=root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        RUSTUP_AUTO_INSTALL=0 PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
        PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        sh -c "cd /root/clone && exec \"\$@\"" sh "$@"
' bash "$@" </dev/null
