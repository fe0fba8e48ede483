#!/usr/bin/env bash
# Builds the native library and the jar, runs all tests of the Java binding, and then the README's first program with
# only the jar. Passes, and says what is missing, if there is no JDK 17 or later, no Maven, or no network for what it
# must download, and on any platform but Linux on x86-64.
set -euo pipefail
cd "$(dirname "$0")"
exec </dev/null

leave_out() {
    printf 'left out: the Java binding: %s\n' "$1"
    exit 0
}

command -v javac >/dev/null || leave_out 'there is no JDK (javac)'
command -v mvn >/dev/null || leave_out 'there is no Maven (mvn)'
[ "$(javac -version 2>&1 | sed 's/javac \([0-9]*\).*/\1/')" -ge 17 ] || leave_out 'the JDK is older than 17'
[ "$(uname -sm)" = 'Linux x86_64' ] || leave_out 'it is built for Linux on x86-64'

# Downloads what is missing first: after this Cargo and Maven have everything they need.
cargo fetch --quiet --locked --manifest-path native/Cargo.toml || leave_out 'Cargo cannot fetch what native/ needs'
if ! said=$(timeout 300 mvn -B -q package -DskipTests -Dexec.skip=true 2>&1); then
    case $said in
    *'ould not be resolved'* | *'ould not resolve'* | *'ould not transfer'* | '')
        leave_out 'Maven cannot fetch what pom.xml needs'
        ;;
    esac
    printf '%s\n' "$said"
    exit 1
fi

# The profile that builds fastest.
mvn -B -q -o package -Dnative.profile=dev "$@"

# Only the jar, in a separate folder, without this shell's environment.
jar=$(realpath target/wollemi-*.jar)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^```java$/,/^```$/{/^```/d;p};/^}$/q' README.md >"$folder/First.java"
said=$(cd "$folder" && env -i "$(command -v java)" -cp "$jar" First.java)
[ "$said" = 'hello=world' ] || {
    printf 'the first program says: %s\n' "$said"
    exit 1
}
awk -F'[:,]' '/^Tests run/ { tests += $2 } END { print "the Java binding: " tests " tests passed, and the first program with the jar" }' \
    target/surefire-reports/*.txt
