#!/usr/bin/env bash
# Prints the licence texts of the crates in the list $1 (an output of sbom.sh) and of Rust's standard library, which
# packages contain too. Takes them from the crates' sources, which Cargo has unpacked. Fails if a crate has no text,
# unless it may be used under Apache-2.0, whose text is the same for all.
set -euo pipefail
list=$(realpath "$1")
cd "$(dirname "$0")/.."

fail() {
    echo "licences.sh: $1" >&2
    exit 1
}

# Prints the crates of the list that are not Wollemi's own: name, version and licence.
crates() {
    sed -En 's/^  \{.*"name": "([^"]*)", "version": "([^"]*)", "purl": .*"expression": "([^"]*)".*/\1 \2 \3/p' \
        "$list"
}

# Prints the licence files of the crate $1 of version $2, those of code that it includes among them.
files() {
    local sources
    sources=("${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$1-$2")
    [ -d "${sources[0]}" ] || fail "there is no source of $1 $2: run Cargo first"
    find "${sources[0]}" -type f -size +0 -regextype posix-extended \
        -iregex '.*/(un)?(licen[sc]e|copying|copyright|notice)[^/]*|.*/licenses/[^/]*' ! -name '*.rs' ! -path "*/$1-$2/tests/*" \
        ! -path "*/$1-$2/*/tests/*" | sort
}

# Prints the notices of the standard library.
standard_library() {
    local page
    page=$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html
    [ -s "$page" ] || fail "the Rust toolchain lacks $page: rustup's toolchains have it"
    sed -e '/<head>/,/<\/head>/d' -e 's/<[^>]*>//g' -e 's/^[[:space:]]*//' \
        -e "s/&#39;/'/g; s/&quot;/\"/g; s/&#34;/\"/g; s/&lt;/</g; s/&#60;/</g; s/&gt;/>/g; s/&#62;/>/g; s/&amp;/\&/g" \
        "$page" | cat -s
}

# Texts, each once however it is wrapped, and the files that have it.
declare -A texts users
order=()
# Adds the text of the file $1, as that of $2.
add() {
    local words
    words=$(tr -s '[:space:]' ' ' <"$1" | sha256sum)
    [ -n "${users[$words]:-}" ] || order+=("$words")
    texts[$words]=$1
    users[$words]+="  $2"$'\n'
}

all=$(crates | sort -u)
[ -n "$all" ] || fail "$list lists no crate"
while read -r name version licence; do
    found=$(files "$name" "$version")
    if [ -n "$found" ]; then
        while read -r file; do
            add "$file" "$name $version: ${file#*"/$name-$version/"}"
        done <<<"$found"
    elif [[ " $licence " == *' Apache-2.0 '* && ! $licence =~ ' AND '|' WITH ' ]]; then
        add LICENSE-APACHE "$name $version: no text of its own"
    else
        fail "$name $version ($licence) has no licence text"
    fi
done <<<"$all"

line=$(printf '%80s' '' | tr ' ' -)
printf '%s\n' 'This package contains the following crates, in compiled form. Where a crate offers a choice of' \
    'licences, each of them permits this use. Their texts follow, and then the notices of the Rust Standard' 'Library.' ''
while read -r name version licence; do printf '  %s %s: %s\n' "$name" "$version" "$licence"; done <<<"$all"
for words in "${order[@]}"; do
    printf '\n%s\n%s\n' "$line" "${users[$words]}"
    tr -d '\r' <"${texts[$words]}"
done
printf '\n%s\n\n' "$line"
standard_library
