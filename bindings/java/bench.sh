#!/usr/bin/env bash
# Measures the Java binding beside those of RocksDB, LMDB and MapDB, with JMH. Arguments go to JMH: a regular expression
# of benchmarks, `-p store=wollemi,lmdb`, `-t 2`, `-f 1`, `-rf json`. Needs the network the first time.
set -euo pipefail
cd "$(dirname "$0")"
mvn -B -q -Pbench test-compile dependency:build-classpath -Dmdep.outputFile=target/bench.classpath
exec java -cp "target/bench-classes:target/classes:$(cat target/bench.classpath)" org.openjdk.jmh.Main \
    -jvmArgs '-Xmx1g --add-opens=java.base/java.nio=ALL-UNNAMED --add-exports=java.base/sun.nio.ch=ALL-UNNAMED' "$@"
