#!/usr/bin/env bash
# Builds the wheel, installs it into a new virtual environment, and runs the binding's tests there. If venv, a Rust
# toolchain or the network is missing, prints "left out" with the reason, and succeeds.
#
#     bindings/python/test.sh             # arguments go to pytest
#
# WOLLEMI_PROFILE=release makes a release build, like `maturin build --release`; the tests do not need it.
set -euo pipefail
cd "$(dirname "$0")"

left_out() {
    echo "left out: the Python binding: $1"
    exit 0
}
python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 9))' 2>/dev/null ||
    left_out "there is no Python 3.9 or later with venv"
command -v cargo >/dev/null || left_out "there is no Rust toolchain"

target=${CARGO_TARGET_DIR:-$(cd ../.. && pwd)/target}/python
mkdir -p "$target"
venv=$target/venv
if ! "$venv/bin/python" -c 'import hypothesis, maturin, pytest' 2>/dev/null; then
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet 'maturin>=1.12.2,<2' 'pytest>=8,<9' 'hypothesis>=6,<7' ||
        left_out "maturin, pytest and hypothesis cannot be installed: is there a network?"
fi
export CARGO_TARGET_DIR=$target
cargo fetch --quiet --locked || left_out "its crates cannot be fetched: is there a network?"

profile=${WOLLEMI_PROFILE:-dev}
wheels=$target/wheels-$profile
rm -rf "$wheels"
"$venv/bin/maturin" build --quiet --locked --profile "$profile" --out "$wheels"

# A separate environment with only the wheel and the test tools.
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
python3 -m venv --without-pip "$fresh/venv"
"$venv/bin/pip" --python "$fresh/venv/bin/python" install --quiet --no-index "$wheels"/wollemi-*.whl
"$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"$("$fresh/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tools.pth"
"$fresh/venv/bin/python" -m pytest -q -p no:cacheprovider tests "$@"
ls -l "$wheels"/*.whl | awk '{print "wheel: " $5 " bytes"}'
