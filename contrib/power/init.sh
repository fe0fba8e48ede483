#!/bin/busybox sh
# The guest's side of run.sh: its first process. It reads these words of the kernel's command line:
#
#   step=level     make a file system on the memory; is level `power` available there only? Move a killed pool to it
#   step=cut       judge `told`, then write, as the round after `cut`, until the power is cut
#   step=judge     judge `told`
#   step=process   write at level `process`, to the same memory without DAX, until the power is cut
#   step=refused   is the resulting pool refused?
#   step=machine   which instruction writes lines back on this processor, and does it work?
#
# `cut` is the round before which the power was just cut; 0 if it was not.
# `told` is a list of ROUND.CLIENT.COUNT: how many answers to a client's commands the console has shown. The numbers
# determine a client's commands (see `commands`), and so everything that must be present.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
ip link set lo up
for module in /modules/*; do insmod "$module" || echo "BAD no module $module"; done
cd /tmp
echo "note Linux $(uname -rm); persistence_domain $(cat /sys/bus/nd/devices/region0/persistence_domain)"

# ---- memory and file system

# Like `ndctl create-namespace --mode=fsdax --map=mem`: the kernel supports DAX on memory for which it has page
# structures. This is recorded in the memory itself, where later boots find it.
format() {
    nd=/sys/bus/nd
    until [ -b /dev/pmem0 ]; do sleep 0.1; done
    echo namespace0.0 >$nd/drivers/nd_pmem/unbind
    seed=$(cat $nd/devices/region0/pfn_seed)
    cat /proc/sys/kernel/random/uuid >"$nd/devices/$seed/uuid"
    echo ram >"$nd/devices/$seed/mode"
    echo namespace0.0 >"$nd/devices/$seed/namespace"
    echo "$seed" >$nd/drivers/nd_pmem/bind
    mkfs.ext4 -q -b 4096 /dev/pmem0 || echo "BAD cannot make a file system"
}

mounted() {
    until [ -b /dev/pmem0 ]; do sleep 0.1; done
    mount -t ext4 -o "dax=$1" /dev/pmem0 /mnt || echo "BAD cannot mount with dax=$1"
}

. /clients.sh

# ---- commands of their own

# Writes a file of pairs for `import`.
pairs() { awk "BEGIN { for (j = $1; j < $2; j++) printf \"%d\\t%08d\\n\", j, j % 10000 }"; }

# put_on ROUND: runs one process after the other; each opens and closes the pool.
put_on() {
    n=1
    while wollemi --pool /mnt/puts.pool --level power put "p$1.$n" "v$n"; do
        echo "acknowledged $1.0.$n"
        n=$((n + 1))
    done
}

# ---- steps

index_of() { if [ $(($1 % 2)) = 0 ]; then echo roart; else echo dptree; fi; }

judge_told() {
    for index in roart dptree; do
        [ -e /mnt/$index.pool ] || continue
        left=clean
        if [ "$cut" != 0 ] && [ "$(index_of "$cut")" = $index ]; then left="machine crash"; fi
        judge_pool /mnt/$index.pool power "$left"
        serve /mnt/$index.pool power
        for entry in $(echo "$told" | tr , ' '); do
            client=${entry%.*}
            [ "${client#*.}" = 0 ] || [ "$(index_of "${client%.*}")" != $index ] || judge "$client" "${entry##*.}"
        done
        kill $server
        wait $server
    done
    # Other processes write beside the server, and may have been between two openings, or before the first.
    [ ! -e /mnt/puts.pool ] || judge_pool /mnt/puts.pool power "machine crash|clean"
    for entry in $(echo "$told" | tr , ' '); do
        client=${entry%.*} n=${entry##*.}
        [ "${client#*.}" = 0 ] || continue
        expect "the last put of round ${client%.*}, number $n, is there" 0 wollemi --pool /mnt/puts.pool get "p${client%.*}.$n"
        holds "and right" "^v$n$"
    done
    if [ -e /mnt/import.pool ]; then
        judge_pool /mnt/import.pool power "machine crash|clean"
        wollemi --pool /mnt/import.pool export - 2>/tmp/said | awk '{ n++; if ($2 != sprintf("%08d", $1 % 10000)) bad++ }
            END { if (bad) print "BAD import.pool: " bad " values are wrong"; else print "ok import.pool: " n + 0 " entries, all right" }'
    fi
}

case $step in
level)
    format
    mounted always
    pool=/mnt/level.pool
    expect "put makes a pool of level power" 0 wollemi --pool $pool --level power put hello world
    expect "get" 0 wollemi --pool $pool --level power get hello
    pairs 10000 30000 >/tmp/pairs
    expect "import" 0 wollemi --pool $pool --level power import /tmp/pairs
    expect "scan" 0 wollemi --pool $pool --level power scan --from 29999 --limit 1
    holds "finds the last" '^29999	00009999$'
    judge_pool $pool power clean
    expect "a pool of level power is refused on tmpfs" 3 wollemi --pool /tmp/pool --level power put a b
    holds "and why" 'MAP_SYNC refused'
    umount /mnt
    mounted never
    expect "it is refused without DAX, although the pool has level power" 3 wollemi --pool $pool --level power get hello
    judge_pool $pool process clean
    serve /mnt/roart.pool process
    { write 0.1 & } | head -n 2000 | tee /tmp/answers
    kill -9 $server
    wait $server
    umount /mnt
    mounted always
    judge_pool /mnt/roart.pool power "process crash"
    serve /mnt/roart.pool power
    judge 0.1 "$(wc -l </tmp/answers)"
    kill $server
    wait $server
    ;;
cut)
    mounted always
    judge_told
    round=$((cut + 1))
    index=$(index_of "$round")
    serve /mnt/$index.pool power $index
    write "$round.1" &
    write "$round.2" &
    if [ $index = roart ]; then put_on "$round"; else pairs "${round}000000" "${round}999999" | wollemi --pool /mnt/import.pool --level power import - 2>/tmp/said; fi
    wait
    echo "BAD the writers have ended"
    ;;
judge)
    mounted always
    judge_told
    ;;
process)
    mounted never
    serve /mnt/process.pool process
    write 0.1
    ;;
refused)
    mounted always
    expect "a pool of level process is refused after a power cut" 3 wollemi --pool /mnt/process.pool stats
    holds "and why" 'power|machine'
    echo "note $(cat /tmp/said)"
    expect "and is readable with --after-power-loss" 0 wollemi --pool /mnt/process.pool --after-power-loss stats
    expect "and is still refused afterwards" 3 wollemi --pool /mnt/process.pool stats
    ;;
machine)
    mounted always
    expect "a thousand durable inserts" 0 wollemi-lab bench run --index roart --workload load --keys 1000 --key-kind u64 --pool /mnt/bench.pool --json
    holds "at level power, written back by $by" "\"level\":\"power\".*\"write_back\":\"$by\""
    ;;
esac
umount /mnt || echo "BAD cannot unmount"
echo end
poweroff -f
