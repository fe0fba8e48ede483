#!/usr/bin/env bash
# Makes what users install, in target/package: the server's .deb, the C library's tarball, the wheel and the jar, each
# with a list of its crates (SBOM) and the texts of their licences. Prints their versions and sizes; fails if a version
# differs from the workspace's, or if a licence is missing.
#
#     contrib/package.sh [deb|c|wheel|jar|all] [--try]      # default: all
#
# `--try` installs each package in a fresh Debian and uses it there (contrib/try.sh), without network. That needs root
# and debootstrap. Making the packages needs cargo-deb, maturin, and a JDK with Maven.
set -euo pipefail
cd "$(dirname "$0")/.."
. contrib/debian.sh
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
out=$PWD/target/package
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)

fail() {
    echo "package.sh: $1" >&2
    exit 1
}

need() {
    command -v "$1" >/dev/null || fail "$1 is missing: $2"
}

# Each of these builds one package into $out.

build_deb() {
    need cargo-deb 'cargo install cargo-deb --locked'
    cargo build --release --locked -p wollemi-cli
    local parts=$out/deb program=$CARGO_TARGET_DIR/release/wollemi shell
    rm -rf "$parts"
    "$program" man "$parts"
    for shell in bash zsh fish; do "$program" completions "$shell" >"$parts/wollemi.$shell"; done
    contrib/sbom.sh crates/cli >"$parts/wollemi.cdx.json"
    contrib/licences.sh "$parts/wollemi.cdx.json" >"$parts/LICENSES-THIRD-PARTY.txt"
    cat >"$parts/changelog" <<-END
	wollemi ($version) unstable; urgency=medium

	  * Version $version.

	 -- The Wollemi authors <noreply@wollemi.invalid>  $(git log -1 --format=%cD)
	END
    {
        printf '%s\n' 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/' \
            'Upstream-Name: Wollemi' \
            'Comment: The program contains other crates. wollemi.cdx.json lists them with their licences, whose' \
            ' texts are in LICENSES-THIRD-PARTY.txt.' \
            '' 'Files: *' 'Copyright: 2026 The Wollemi authors' 'License: Expat or Apache-2.0' \
            '' 'License: Apache-2.0' ' The text is in /usr/share/common-licenses/Apache-2.0.' '' 'License: Expat'
        sed '1,2d; s/^$/./; s/^/ /' LICENSE-MIT
    } >"$parts/copyright"
    # Quiet: it warns of assets that no build makes.
    cargo deb --quiet --no-build --locked -p wollemi-cli --output "$out/" >/dev/null
    ! command -v lintian >/dev/null || lintian --allow-root --fail-on error "$(file_of deb)"
}

build_c() {
    crates/ffi/install.sh --tarball "$out/wollemi-c-$version-linux-x86_64.tar.gz" >/dev/null
}

build_wheel() {
    need maturin "pip install 'maturin>=1.12.2,<2'"
    contrib/sbom.sh bindings/python >"$out/wollemi-python.cdx.json"
    # maturin takes the files of such names that lie beside the manifest.
    trap 'rm -f bindings/python/LICENSES-THIRD-PARTY.txt' EXIT
    contrib/licences.sh "$out/wollemi-python.cdx.json" >bindings/python/LICENSES-THIRD-PARTY.txt
    maturin build --quiet --release --locked --manifest-path bindings/python/Cargo.toml \
        --sbom-include "$out/wollemi-python.cdx.json" --out "$out"
    rm bindings/python/LICENSES-THIRD-PARTY.txt
}

build_jar() {
    need mvn 'apt-get install maven'
    (cd bindings/java && mvn -B -q package -DskipTests)
    cp "bindings/java/target/wollemi-$version.jar" "$out/"
}

# The pattern of a package's file.
pattern_of() {
    case $1 in
    deb) echo 'wollemi_*.deb' ;;
    c) echo 'wollemi-c-*.tar.gz' ;;
    wheel) echo 'wollemi-*.whl' ;;
    jar) echo 'wollemi-*.jar' ;;
    esac
}

# The file of a package, once it is built.
file_of() {
    local files
    # shellcheck disable=SC2206  # The pattern expands, and has no spaces.
    files=("$out"/$(pattern_of "$1"))
    [ ${#files[@]} -eq 1 ] && [ -e "${files[0]}" ] || return 1
    echo "${files[0]}"
}

# The version that the file $2 of the package $1 says it has.
version_of() {
    case $1 in
    deb) dpkg-deb --field "$2" Version ;;
    c) tar -xOzf "$2" --wildcards '*/wollemi.pc' | sed -n 's/^Version: //p' ;;
    wheel) unzip -p "$2" '*/METADATA' | sed -n 's/^Version: //p' ;;
    jar) unzip -p "$2" META-INF/maven/io.github.wollemi/wollemi/pom.properties | sed -n 's/^version=//p' ;;
    esac
}

# The content of the one file in the file $2 of the package $1 whose path matches the pattern $3.
content() {
    case $1 in
    deb) dpkg-deb --fsys-tarfile "$2" | tar -xO --wildcards "$3" ;;
    c) tar -xOzf "$2" --wildcards "$3" ;;
    wheel | jar) unzip -p "$2" "$3" ;;
    esac
}

# Prints a line on the package $1. Fails unless its version, and Wollemi's in its list of crates, is the workspace's,
# and unless it has its own licence and those of its crates.
check() {
    local file found crates licences crate
    file=$(file_of "$1") || fail "$1: there is not exactly one such file in $out"
    found=$(version_of "$1" "$file")
    [ "$found" = "$version" ] || fail "$file has version '$found', not $version"
    crates=$(content "$1" "$file" '*.json')
    grep -q "\"name\": \"wollemi\", \"version\": \"$version\"" <<<"$crates" ||
        fail "$file: its list of crates lacks Wollemi $version"
    licences=$(content "$1" "$file" '*LICENSES-THIRD-PARTY.txt')
    while read -r crate; do
        [ "$(grep -cF "  $crate" <<<"$licences")" -ge 2 ] || fail "$file: the licence of ${crate%:} is missing"
    done < <(sed -n 's/.*"name": "\([^"]*\)", "version": "\([^"]*\)", "purl".*/\1 \2:/p' <<<"$crates")
    content "$1" "$file" "$([ "$1" = deb ] && echo '*copyright' || echo '*LICENSE-MIT')" | grep -q 'Wollemi authors' ||
        fail "$file: its own licence is missing"
    printf '%-7s %s  %10d bytes  %3d crates  %s\n' "$1" "$version" "$(stat -c %s "$file")" \
        "$(grep -c '^  {' <<<"$crates")" "$(basename "$file")"
}

# Installs and uses the package $1 in a copy of the Debian in $clean.
try() {
    local root=$trial/$1 needs
    case $1 in
    deb) needs='systemd procps' ;;
    c) needs='gcc libc6-dev pkg-config' ;;
    wheel) needs='python3-venv' ;;
    jar) needs='default-jdk-headless' ;;
    esac
    cp -a "$clean" "$root"
    # shellcheck disable=SC2086  # They are words.
    in_debian "$root" sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends "$@"' sh $needs \
        >"$trial/log" 2>&1 || { tail "$trial/log" >&2; return 1; }
    cp "$(file_of "$1")" contrib/try.sh "$root/root/"
    case $1 in
    wheel) cp bindings/python/README.md "$root/root/" ;;
    jar) cp bindings/java/README.md "$root/root/" ;;
    esac
    unshare --net -- bash -ec 'ip link set lo up; in_debian "$@"' bash "$root" bash /root/try.sh "$1"
    rm -rf --one-file-system "$root"
}

packages=() tries=''
for argument in "$@"; do
    case $argument in
    --try) tries=yes ;;
    all) packages+=(deb c wheel jar) ;;
    deb | c | wheel | jar) packages+=("$argument") ;;
    *) fail "unknown argument '$argument': use deb, c, wheel, jar, all or --try" ;;
    esac
done
((${#packages[@]})) || packages=(deb c wheel jar)
[ -z "$tries" ] || require_debian

mkdir -p "$out"
for package in "${packages[@]}"; do
    # shellcheck disable=SC2046
    rm -f "$out"/$(pattern_of "$package")
    "build_$package"
done
for package in "${packages[@]}"; do check "$package"; done

if [ -n "$tries" ]; then
    trial=$(mktemp -d)
    trap 'rm -rf --one-file-system "$trial"' EXIT
    clean=$trial/clean
    mkdir "$clean"
    make_debian "$clean" ca-certificates
    export -f in_debian
    for package in "${packages[@]}"; do try "$package"; done
fi
