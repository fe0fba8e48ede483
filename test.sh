#!/usr/bin/env bash
# Installs missing dependencies and runs all tests of the workspace. The tests need a C compiler (to link, and to build
# LMDB and SQLite, two peers of the benchmarks), a C++ compiler (to call the library that PiBench loads), memcached and
# Redis to compare answers with, the clients that come with libmemcached and Redis, and Python with its venv module, with
# which tests install pymemcache, pylibmc, redis-py and matplotlib (which draws figures) below the build directory.
# clang, valgrind and pkg-config (for programs in C) and nutcracker (a proxy for memcached and Redis) are installed if
# this runs as root; tests report what they leave out without them.
# Arguments go to `cargo test`.
set -euo pipefail
cd "$(dirname "$0")"

packages=()
command -v cc >/dev/null || packages+=(gcc libc6-dev)
command -v c++ >/dev/null || packages+=(g++)
command -v memcached >/dev/null || packages+=(memcached)
command -v memccapable >/dev/null || packages+=(libmemcached-tools)
command -v redis-server >/dev/null || packages+=(redis-server)
command -v redis-cli >/dev/null && command -v redis-benchmark >/dev/null || packages+=(redis-tools)
[ -n "${WOLLEMI_PYTHON:-}" ] || python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3 python3-venv)
install() {
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" apt-get install -qq -y --no-install-recommends "$@"
}

if ((${#packages[@]})); then install "${packages[@]}"; fi
if [ "$(id -u)" -eq 0 ]; then
    optional=()
    for tool in clang valgrind pkg-config nutcracker; do
        PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || optional+=("$tool")
    done
    # If one of them cannot be installed, apt-get installs none, so each is tried alone.
    if ((${#optional[@]})) && ! install "${optional[@]}"; then
        for tool in "${optional[@]}"; do
            apt-get install -qq -y --no-install-recommends "$tool" || echo "left out: what needs $tool"
        done
    fi
fi

# All features except RocksDB, which requires a system library.
exec cargo test --workspace --features wollemi/derive,wollemi-lab/peers "$@"
