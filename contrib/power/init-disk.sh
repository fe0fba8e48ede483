#!/bin/busybox sh
# The guest's side of disk.sh: its first process. It reads these words of the kernel's command line: `fs` (ext4 or xfs),
# `cut` (the round before which the power was just cut; 0 if it was not), `told` (a list of ROUND.CLIENT.COUNT: how many
# answers to a client the console has shown), and `last`, if nothing more is to be written.
#
# The clients of a round: 1 and 2 send sets and deletions to the server by memcached's protocol, 3 transactions by
# Redis's; from 10 on they are threads of power_cut, which has its own pool.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
ip link set lo up
for module in /modules/*; do insmod "$module" || echo "BAD no module $module"; done
cd /tmp
until [ -b /dev/vda ]; do sleep 0.1; done
mount -t "$fs" /dev/vda /mnt || echo "BAD cannot mount"
echo "note Linux $(uname -rm), $(grep ' /mnt ' /proc/mounts), write cache: $(cat /sys/block/vda/queue/write_cache)"

. /clients.sh

# resp WORD...: encodes a request of Redis's protocol.
resp='
function resp(n, words,   i) { printf "*%d\r\n", n; for (i = 1; i <= n; i++) printf "$%d\r\n%s\r\n", length(words[i]), words[i] }
function ask(text,   words, n) { n = split(text, words, " "); resp(n, words) }
'

# transact ROUND.CLIENT: runs transactions endlessly, each of which sets three keys; prints a line for each one
# executed.
transact() {
    awk -v id="$1" "$resp"'BEGIN {
        for (j = 1; ; j++) { ask("MULTI"); ask("SET x" id " " j); ask("SET y" id " " j); ask("SET t" id "." j " " j); ask("EXEC") } }' |
        nc 127.0.0.1 6379 | tr -d '\r' |
        awk -v id="$1" '/^\*3/ { left = 3; next } left && /^\+OK/ { if (!--left) { print "acknowledged " id "." ++n; fflush() } }
            /^-/ || /^\*-1/ { print "BAD answer " $0; fflush() }'
}

# judge_transactions ROUND.CLIENT COUNT: all acknowledged transactions must be present, and later ones complete or
# absent.
judge_transactions() {
    awk -v id="$1" -v told="$2" "$resp"'BEGIN {
        ask("GET x" id); ask("GET y" id)
        for (j = 1; j <= told + 1000; j++) ask("EXISTS t" id "." j)
        ask("QUIT") }' | nc 127.0.0.1 6379 | tr -d '\r' |
        awk -v id="$1" -v told="$2" '
        /^\$-1/ { value[++values] = 0 }
        /^[0-9]/ { value[++values] = $0 }
        /^:/ { j++; if ($0 == ":1") { if (j != ++found) gap = j } }
        END {
            if (value[1] != value[2] || value[1] != found || gap) print "BAD transactions of " id ": x is " value[1] ", y is " value[2] ", " found + 0 " keys, a gap before " gap
            else if (found < told) print "BAD transactions of " id ": " told " acknowledged, " found + 0 " there"
            else print "ok client " id ": all of " told " acknowledged transactions are there, and " found - told " later ones, whole"
        }'
}

# serve_disk: serves its pool at level `disk`.
serve_disk() {
    wollemi --pool /mnt/served.pool --level disk serve >/tmp/server 2>&1 &
    server=$!
    until nc 127.0.0.1 11211 </dev/null 2>/dev/null; do
        if ! kill -0 $server; then echo "BAD no server" && cat /tmp/server && return; fi
    done
    echo "note $(head -n1 /tmp/server)"
}

each_told() { for entry in $(echo "$told" | tr , ' '); do "$@" "${entry%.*}" "${entry##*.}"; done; }

judge_served() {
    case ${1#*.} in
    1 | 2) judge "$1" "$2" ;;
    3) judge_transactions "$1" "$2" ;;
    esac
}

serve_disk
each_told judge_served
if [ -z "$last" ]; then
    round=$((cut + 1))
    [ $cut = 0 ] || power_cut judge /mnt/program.pool "$told"
    write "$round.1" &
    write "$round.2" &
    transact "$round.3" &
    power_cut write /mnt/program.pool $round &
    # Takes checkpoints, so that some power cuts hit one.
    while true; do printf '*1\r\n$12\r\nBGREWRITEAOF\r\n'; sleep 0.05; done | nc 127.0.0.1 6379 >/dev/null
    echo "BAD the server has ended"
fi
kill $server
wait $server
expect "served.pool is whole" 0 wollemi --pool /mnt/served.pool check
power_cut judge /mnt/program.pool "$told"
expect "program.pool is whole" 0 wollemi --pool /mnt/program.pool check
umount /mnt || echo "BAD cannot unmount"
echo end
poweroff -f
