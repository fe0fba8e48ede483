#!/usr/bin/env bash
# Builds the native library with Cargo's profile $1 into the folder $2, with a list of its crates in CycloneDX format
# and their licences.
set -euo pipefail
profile=$1 folder=$2
cd "$(dirname "$0")"
cargo build --quiet --locked --profile "$profile"
built=$([ "$profile" = dev ] && echo debug || echo "$profile")
mkdir -p "$folder"
cp "${CARGO_TARGET_DIR:-target}/$built/libwollemi_java.so" "$folder/"
../../../contrib/sbom.sh . >"$folder/bom.json"
../../../contrib/licences.sh "$folder/bom.json" >"$folder/LICENSES-THIRD-PARTY.txt"
