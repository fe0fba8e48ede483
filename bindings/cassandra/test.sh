#!/usr/bin/env bash
# Builds the Java binding and the memtable for Cassandra, and runs the memtable's tests, which start Cassandra nodes.
# Passes, and says so, if a JDK, Maven or their downloads are unavailable. Arguments go to Maven: `test.sh
# -Dtest=TwinTest`. WOLLEMI_SEED, WOLLEMI_TWIN and WOLLEMI_KILLS set the random seed and the amounts. The test of three
# nodes takes minutes, and runs only if WOLLEMI_CLUSTER is a number of kills. WOLLEMI_PROFILE is Cargo's profile for the
# native library: measurements (LoadFigures, RestartFigures, LayoutFigures) need `release`.
set -euo pipefail
cd "$(dirname "$0")"
exec </dev/null

leave_out() {
    printf 'left out: the memtable for Cassandra: %s\n' "$1"
    exit 0
}

command -v javac >/dev/null || leave_out 'there is no JDK (javac)'
command -v mvn >/dev/null || leave_out 'there is no Maven (mvn)'
# Cassandra 5.0 runs on 11 and 17, and on no later version.
[ "$(javac -version 2>&1 | sed 's/javac \([0-9]*\).*/\1/')" -eq 17 ] || leave_out 'the JDK is not 17'
[ "$(uname -sm)" = 'Linux x86_64' ] || leave_out 'it is built for Linux on x86-64'

# Runs Maven; skips the tests if it cannot fetch its dependencies.
fetching() {
    local said
    if ! said=$(timeout 600 "$@" 2>&1); then
        case $said in
        *'ould not be resolved'* | *'ould not resolve'* | *'ould not transfer'* | '')
            leave_out 'Maven cannot fetch what it needs'
            ;;
        esac
        printf '%s\n' "$said"
        exit 1
    fi
}
cargo fetch --quiet --locked --manifest-path ../java/native/Cargo.toml || leave_out 'Cargo cannot fetch what ../java/native needs'
# By default the profile that builds fastest.
fetching mvn -B -q -f ../java/pom.xml package -DskipTests "-Dnative.profile=${WOLLEMI_PROFILE:-dev}"
fetching mvn -B -q package -DskipTests

# The nodes' folders are temporary folders of the tests.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Reports of earlier runs do not count.
rm -rf target/surefire-reports
mvn -B -q -o package "-Dtests.tmp=$folder" "$@"
awk -F'[:,]' '/^Tests run/ { tests += $2 - $8 } END { print "the memtable for Cassandra: " tests " tests passed" }' \
    target/surefire-reports/*.txt
[ -n "${WOLLEMI_CLUSTER:-}" ] || echo 'left out: the cluster of three nodes: WOLLEMI_CLUSTER=4 ./test.sh -Dtest=ClusterTest runs it'
