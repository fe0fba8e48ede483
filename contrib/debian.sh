# shellcheck shell=bash
# A minimal Debian in a folder, for the scripts that source this file. Needs root, for chroot, and Debian's debootstrap.
# Uses this machine's package sources and certificates.

# Ends the script with a message if no Debian can be made here.
require_debian() {
    if [ "$(id -u)" -ne 0 ]; then
        echo "${0##*/}: only root can chroot: sudo $0" >&2
        exit 2
    elif ! command -v debootstrap >/dev/null; then
        echo "${0##*/}: debootstrap is not installed: apt-get install debootstrap" >&2
        exit 2
    fi
}

# Creates a Debian of this machine's release in the folder $1, with the packages $2 (separated by commas).
make_debian() {
    local root=$1 packages=$2 log=$1.log release mirror
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    chmod 755 "$root"
    mirror=$(grep -rhoE 'https?://[^ ]+' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
        grep -E '/debian/?$' | head -1 || true)
    debootstrap --variant=minbase --include="$packages" "$release" "$root" \
        "${mirror:-http://deb.debian.org/debian}" >"$log" 2>&1 || { tail -5 "$log" >&2; rm -f "$log"; return 2; }
    rm -f "$log"
    cp -rnT /etc/apt/apt.conf.d "$root/etc/apt/apt.conf.d"
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
}

# Runs a command as root in the Debian of the folder $1. The mounts belong to the command's process, and end with it.
in_debian() {
    local root=$1
    shift
    # shellcheck disable=SC2016  # The inner shell expands them.
    unshare --mount -- bash -ec '
        mount -t proc proc "$0/proc"
        mount --rbind /sys "$0/sys"
        mount --rbind /dev "$0/dev"
        exec chroot "$0" /usr/bin/env -i HOME=/root USER=root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
            PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
    ' "$root" "$@" </dev/null
}
