#!/usr/bin/env bash
# Builds the native library with Cargo's profile $1 into the folder $2, with a list of its crates in CycloneDX format.
set -euo pipefail
profile=$1 folder=$2
cd "$(dirname "$0")"
cargo build --quiet --locked --profile "$profile"
built=$([ "$profile" = dev ] && echo debug || echo "$profile")
mkdir -p "$folder"
cp "${CARGO_TARGET_DIR:-target}/$built/libwollemi_java.so" "$folder/"

# One line per crate: name, version, a path if it is local; and its licence. Names and licences need no escapes.
cargo tree --locked --edges normal --prefix none --format '{p}|{l}' --target x86_64-unknown-linux-gnu |
    sed 's/ (\*)$//' | sort -u |
    awk -F'|' '
        BEGIN { print "{\"bomFormat\": \"CycloneDX\", \"specVersion\": \"1.5\", \"version\": 1, \"components\": [" }
        {
            split($1, crate, " ")
            version = substr(crate[2], 2)
            printf "%s  {\"type\": \"library\", \"name\": \"%s\", \"version\": \"%s\"", (NR > 1 ? ",\n" : ""), crate[1], version
            if ($1 !~ /\(\//) printf ", \"purl\": \"pkg:cargo/%s@%s\"", crate[1], version
            printf ", \"licenses\": [{\"expression\": \"%s\"}]}", $2
        }
        END { print "\n]}" }' >"$folder/bom.json"
