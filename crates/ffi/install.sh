#!/bin/sh
# Builds the C library and installs it: libraries, header, pkg-config file, this crate's README, the licences, and a
# list of the crates in it with their licences.
#
#     crates/ffi/install.sh [--prefix DIR]          # default /usr/local; prefixed with DESTDIR, if set
#     crates/ffi/install.sh --tarball FILE.tar.gz   # the same files as a relocatable archive
#     … --libraries DIR                             # installs the libraries found there, and builds nothing
#
# Makes a release build. Requires Rust and a C compiler.
set -eu
cd "$(dirname "$0")/../.."

prefix=/usr/local tarball='' libraries=''
while [ $# -gt 0 ]; do
    case $1 in
    --prefix) prefix=$2 ;;
    --tarball) tarball=$2 ;;
    --libraries) libraries=$2 ;;
    *)
        echo "install.sh: unknown option '$1': use --prefix, --tarball or --libraries" >&2
        exit 2
        ;;
    esac
    shift 2
done

if [ -z "$libraries" ]; then
    cargo build --release --locked -p wollemi-ffi
    libraries=${CARGO_TARGET_DIR:-target}/release
fi
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
short=${version%.*}

root=${DESTDIR:-}$prefix
if [ -n "$tarball" ]; then
    packed=$(mktemp -d)
    trap 'rm -rf "$packed"' EXIT
    name=wollemi-c-$version-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)
    root=$packed/$name
fi

doc=$root/share/doc/wollemi-c
mkdir -p "$root/lib/pkgconfig" "$root/include" "$doc"
install -m 755 "$libraries/libwollemi_c.so" "$root/lib/libwollemi.so.$version"
ln -sf "libwollemi.so.$version" "$root/lib/libwollemi.so.$short"
ln -sf "libwollemi.so.$short" "$root/lib/libwollemi.so"
install -m 644 "$libraries/libwollemi_c.a" "$root/lib/libwollemi.a"
install -m 644 crates/ffi/include/wollemi.h "$root/include/wollemi.h"
sed "s/@version@/$version/" crates/ffi/wollemi.pc.in >"$root/lib/pkgconfig/wollemi.pc"
install -m 644 crates/ffi/README.md LICENSE-MIT LICENSE-APACHE "$doc"
contrib/sbom.sh crates/ffi >"$doc/wollemi-c.cdx.json"
contrib/licences.sh "$doc/wollemi-c.cdx.json" >"$doc/LICENSES-THIRD-PARTY.txt"

if [ -n "$tarball" ]; then
    tar -C "$packed" --owner=0 --group=0 -czf "$tarball" "$name"
    echo "$tarball: $(wc -c <"$tarball") bytes"
else
    echo "installed Wollemi $version for C below $root"
fi
