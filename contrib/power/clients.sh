# Functions shared by the guests of run.sh and disk.sh: verdicts, and clients of the server. Sourced by init.sh and
# init-disk.sh.

# ---- verdicts

# expect WHAT STATUS COMMAND...: the command must have this exit code. Its output is then in /tmp/said.
expect() {
    what=$1 status=$2
    shift 2
    "$@" >/tmp/said 2>&1
    got=$?
    if [ $got = "$status" ]; then echo "ok $what"; else echo "BAD $what: exit code $got" && cat /tmp/said; fi
}

# holds WHAT PATTERN: /tmp/said must match PATTERN.
holds() { if grep -qE "$2" /tmp/said; then echo "ok $1"; else echo "BAD $1" && cat /tmp/said; fi; }

# judge_pool PATH LEVEL SHUTDOWN: the pool must have this level, this last shutdown, and be sound.
judge_pool() {
    expect "${1##*/} opens at level $2" 0 wollemi --pool "$1" --level "$2" --json stats
    holds "${1##*/} says level $2, and that it was left by: $3" "\"level\":\"$2\",\"last_shutdown\":\"($3)\""
    echo "note $(grep -oE '"(generation|crashes|opened_in)":[0-9.]*' /tmp/said | tr '\n' ' ')"
    expect "${1##*/} is whole" 0 wollemi --pool "$1" check
}

# ---- clients of the server

# serve PATH LEVEL [INDEX]
serve() {
    wollemi --pool "$1" --level "$2" serve --no-redis ${3:+--index "$3"} >/tmp/server 2>&1 &
    server=$!
    until nc 127.0.0.1 11211 </dev/null 2>/dev/null; do
        if ! kill -0 $server; then echo "BAD no server" && cat /tmp/server && return; fi
    done
    echo "note $(head -n1 /tmp/server)"
}

# A client's commands come in groups of four: one puts a key that stays, one puts a key that the command after next
# deletes, one deletes it, and one updates one of 16 keys.
commands='
function name(j) { return j % 4 ? "k" id "." j : "u" id "." j / 4 % 16 }
function value(j) { text = "v" j; while (length(text) < j % 700) text = text "." j; return text }
function put(j) { printf "set %s 0 0 %d\r\n%s\r\n", name(j), length(value(j)), value(j) }
'

# write ROUND.CLIENT: sends commands endlessly; prints a line for each answer.
write() {
    awk -v id="$1" "$commands"'
        BEGIN { for (j = 1; ; j++) if (j % 4 == 3) printf "delete %s\r\n", name(j - 2); else put(j) }' |
        nc 127.0.0.1 11211 |
        awk -v id="$1" '{ if (/^(STORED|DELETED)/) print "acknowledged " id "." ++n; else print "BAD answer " $0; fflush() }'
}

# judge ROUND.CLIENT COUNT: each acknowledged command's effect must be present and complete; each later command's must
# be complete or absent.
judge() {
    awk -v id="$1" -v told="$2" "$commands"'BEGIN {
        for (j = 1; j <= told + 1000; j++) if (j % 4 == 1 || j % 4 == 2) printf "get %s\r\n", name(j)
        for (j = 4; j <= 64; j += 4) printf "get %s\r\n", name(j)
        printf "quit\r\n" }' | nc 127.0.0.1 11211 | tr -d '\r' |
        awk -v id="$1" -v told="$2" "$commands"'
        /^VALUE/ { key = $2; getline; found[key] = $0 }
        function bad(j, what) { if (faults++ < 5) print "BAD command " j " of client " id ": " name(j) " " what }
        END {
            for (j = 1; j <= told + 1000; j++) {
                if (j % 4 == 3) continue
                if (j % 4 == 0) { if (j <= told) last[name(j)] = j; continue }
                there = name(j) in found
                if (there && found[name(j)] != value(j)) bad(j, "has another value: " substr(found[name(j)], 1, 20))
                else if (!there && j % 4 == 2 && j <= told) bad(j, "is lost")
                else if (there && j % 4 == 1 && j + 2 <= told) bad(j, "is there again")
                else if (there && j > told) more++
            }
            for (j = 4; j <= 64; j += 4) {
                now = int(substr(found[name(j)], 2))
                if (now < last[name(j)] || now && found[name(j)] != value(now)) bad(last[name(j)], "has an older value, or none: " substr(found[name(j)], 1, 20))
            }
            if (!faults) print "ok client " id ": all of " told " acknowledged changes are there, and " more + 0 " later keys, whole"
        }'
}
