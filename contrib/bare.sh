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
# shellcheck source=contrib/debian.sh
. "$(dirname "$0")/debian.sh"
require_debian

checkout=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
owner=$(getent passwd "${SUDO_USER:-root}" | cut -d: -f6)
rustup=${RUSTUP_HOME:-$owner/.rustup}
cargo=${CARGO_HOME:-$owner/.cargo}
if ! [ -d "$rustup/toolchains" ] || ! [ -x "$cargo/bin/cargo" ]; then
    echo "bare.sh: no rustup toolchain in $rustup" >&2
    exit 2
fi

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
make_debian "$root" ca-certificates,git || exit
mkdir -p "$root/root/.cargo/bin" "$root/root/.rustup"
cp -a "$cargo/bin/." "$root/root/.cargo/bin/"
[ ! -e "$cargo/config.toml" ] || cp "$cargo/config.toml" "$root/root/.cargo/"
git clone -q "$checkout" "$root/root/clone"

# The mount of the toolchain ends with this process.
export root rustup
export -f in_debian
# shellcheck disable=SC2016  # The inner shell expands them.
unshare --mount -- bash -ec '
    mount --bind "$rustup" "$root/root/.rustup"
    in_debian "$root" RUSTUP_AUTO_INSTALL=0 sh -c "cd /root/clone && exec \"\$@\"" sh "$@"
' bash "$@"
