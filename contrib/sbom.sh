#!/usr/bin/env bash
# Prints the list of the crates that are linked into the crate in the folder $1 (its SBOM), with versions and licences,
# in CycloneDX format. `cargo tree` resolves features for this crate alone, so it lists no crate that only others use.
set -euo pipefail
cd "$1"

# One line per crate: name, version, a path if it is local; and its licence. Names and licences need no escapes. The
# first line is the crate itself.
cargo tree --locked --edges normal,no-proc-macro --prefix none --no-dedupe --format '{p}|{l}' |
    awk -F'|' '
        seen[$1]++ { next }
        {
            split($1, crate, " ")
            version = substr(crate[2], 2)
            component = "{\"type\": \"library\", \"name\": \"" crate[1] "\", \"version\": \"" version "\""
            if ($1 !~ /\(\//) component = component ", \"purl\": \"pkg:cargo/" crate[1] "@" version "\""
            gsub("/", " OR ", $2)
            component = component ", \"licenses\": [{\"expression\": \"" $2 "\"}]}"
        }
        NR == 1 {
            print "{\"bomFormat\": \"CycloneDX\", \"specVersion\": \"1.5\", \"version\": 1,"
            print "\"metadata\": {\"component\": " component "},"
            print "\"components\": ["
            next
        }
        { printf "%s  %s", (separator++ ? ",\n" : ""), component }
        END { print "\n]}" }'
