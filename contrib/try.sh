#!/usr/bin/env bash
# Installs and uses one package as its users do, in a fresh Debian without network: contrib/package.sh runs this there,
# as root, beside the package. Fails at the first thing that is not as documented.
#
#     try.sh deb|c|wheel|jar
set -euo pipefail
cd "$(dirname "$0")"

# Prints the first program in the language $1 of the page $2.
program() {
    awk -v begin="\`\`\`$1" '$0 == begin { on = 1; next } on && /^```$/ { exit } on' "$2"
}

# Fails unless $2 is the answer $1.
expect() {
    [ "$2" = "$1" ] || { printf 'expected: %s\ngot: %s\n' "$1" "$2" >&2; exit 1; }
}

# Starts the server as the unit does, and waits until it listens.
serve() {
    local command
    command=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/wollemi.service)
    # shellcheck disable=SC2086  # It is a command line.
    (cd /var/lib/wollemi && exec setpriv --reuid=nobody --regid=nogroup --clear-groups $command >>/tmp/log 2>&1) &
    server=$!
    until (exec 3<>/dev/tcp/127.0.0.1/11211) 2>/dev/null; do
        kill -0 "$server" || { cat /tmp/log; exit 1; }
        sleep 0.1
    done
}

# Sends the request $1 over memcached's port, and prints the answer.
ask() {
    exec 3<>/dev/tcp/127.0.0.1/11211
    printf '%b\r\nquit\r\n' "$1" >&3
    tr -d '\r' <&3
    exec 3>&-
}

try_deb() {
    dpkg -i wollemi_*.deb
    expect enabled "$(systemctl is-enabled wollemi)"
    systemd-analyze verify --man=no wollemi.service
    [ -s /usr/share/man/man1/wollemi-serve.1.gz ]

    # systemd makes this folder (StateDirectory).
    install -d -o nobody -g nogroup /var/lib/wollemi
    serve
    expect STORED "$(ask 'set greeting 0 0 5\r\nhello')"
    kill -9 "$server"
    wait "$server" || true
    serve
    expect $'VALUE greeting 0 5\nhello\nEND' "$(ask 'get greeting')"
    kill "$server"
    wait "$server"

    # Removal leaves settings and data, purging the data only.
    dpkg -r wollemi
    expect $'/etc/wollemi.toml\n/var/lib/wollemi/wollemi.pool' "$(ls /usr/bin/wollemi /etc/wollemi.toml \
        /var/lib/wollemi/wollemi.pool 2>/dev/null)"
    dpkg -P wollemi
    expect /var/lib/wollemi "$(find /etc /run /usr /var -xdev -name '*wollemi*' -prune)"
}

try_c() {
    tar -xzf wollemi-c-*.tar.gz -C /usr/local --strip-components=1
    ldconfig
    local page=/usr/local/share/doc/wollemi-c/README.md
    program c $page >first.c
    expect 'hello, world' "$(sh -ec "$(grep '^cc first.c' $page)")"
}

try_wheel() {
    python3 -m venv fresh
    fresh/bin/pip install --quiet --no-index wollemi-*.whl
    program python README.md >first.py
    expect $'b\'apricot\' b\'0.45\'\nb\'apple\' b\'0.30\'' "$(fresh/bin/python first.py)"
}

try_jar() {
    program java README.md >First.java
    expect 'hello=world' "$(java -cp wollemi-*.jar First.java)"
}

"try_$1"
echo "$1: installed and used"
