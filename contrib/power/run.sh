#!/usr/bin/env bash
# Runs Wollemi at durability level `power` in a virtual machine whose persistent memory is a file, and cuts the power.
#
#     contrib/power/run.sh [-n CUTS] [-o DIRECTORY] [PROGRAMS]
#
# PROGRAMS is the directory of `wollemi` and `wollemi-lab` (default: target/release; missing programs are built). Needs
# Debian on x86-64, qemu-system-x86_64 and busybox (apt-get install qemu-system-x86 busybox), and no root: the guest's
# software is downloaded as packages (80 MB, once) and unpacked, not installed. All output is in DIRECTORY (default:
# target/power), including the guest's console. About 20 seconds per boot, CUTS (default: 8) plus 8 boots.
#
# The guest's side is init.sh. Killing the emulator cuts the power; the next boot, on the same file, must find
# everything that the console had reported before the cut. docs/platforms.md says what this shows and what it cannot.
#
# Prints a line per check; exits with 0 if all passed, with 1 if one failed, with 2 if it could not begin.
set -euo pipefail
trap 'exit 2' ERR # until the first boot
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}

cuts=8
out=$target/power
while getopts n:o: option; do
    case $option in
    n) cuts=$OPTARG ;;
    o) out=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
for tool in qemu-system-x86_64 busybox apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2 && exit 2; }
done
programs=${1:-$target/release}
if [ -z "${1:-}" ] && { [ ! -x "$programs/wollemi" ] || [ ! -x "$programs/wollemi-lab" ]; }; then
    (cd "$root" && cargo build --release -p wollemi-cli && cargo build --release -p wollemi-lab)
fi
for program in wollemi wollemi-lab; do
    [ -x "$programs/$program" ] || { echo "$programs/$program is not a program" >&2 && exit 2; }
done

. "$here/guest.sh"
make_guest "$here/init.sh" "$programs"/wollemi "$programs"/wollemi-lab -- libnvdimm nfit nd_btt nd_pmem

trap - ERR
failed=0
machine=
# However this ends, no emulator keeps running.
trap '[ -z "$machine" ] || kill -9 "$machine" 2>/dev/null' EXIT

# boot NAME CPU DOMAIN 'WORDS FOR init.sh' [LINES]: starts the machine and waits until it has stopped; with LINES, cuts
# its power as soon as the console shows that many acknowledgements. DOMAIN is the persistence domain that the firmware
# reports: mem-ctrl (memory: lines must be written back) or cpu (caches). (no_timer_check: on a busy host the guest's
# clock may look broken to its kernel.)
boot() {
    local log=$out/$1.log lines=${5:-} ticks=0
    : >"$log"
    qemu-system-x86_64 -accel tcg -machine "q35,nvdimm=on,nvdimm-persistence=$3" -cpu "$2" -smp 2 \
        -m 1G,slots=2,maxmem=4G -nodefaults -display none -no-reboot -serial "file:$log" \
        -object "memory-backend-file,id=memory,share=on,mem-path=$out/nvdimm,size=512M" -device nvdimm,memdev=memory \
        -kernel "$kernel" -initrd "$out/initrd.gz" \
        -append "console=ttyS0 quiet panic=-1 no_timer_check $4" >"$out/$1.err" 2>&1 &
    machine=$!
    {
        while kill -0 $machine; do
            ticks=$((ticks + 1))
            if [ $ticks -gt 6000 ] || [ -n "$lines" ] && [ "$(grep -c '^acknowledged ' "$log")" -ge "$lines" ]; then
                kill -9 $machine || true
            fi
            sleep 0.1
        done
        wait $machine || true
        machine=
    } 2>/dev/null # suppresses the shell's message about the kill
    tr -d '\r' <"$log" | sed -n -E "s/^(ok|BAD|note) (.*)/\1\t$1: \2/p" | expand -t 5
    local shown
    shown=$(grep -c '^acknowledged ' "$log") || true
    if [ -n "$lines" ]; then echo "note $1: the power went after $shown acknowledgements"; fi
    if grep -q '^BAD ' "$log" || [ "$shown" -lt "${lines:-0}" ] || { [ -z "$lines" ] && ! grep -q '^end' "$log"; }; then
        echo "BAD  $1: see $log"
        failed=1
    fi
}

# The acknowledgements on the consoles so far: for each client the last complete line.
told() {
    cat "$out"/level.log "$out"/cut-*.log | tr -d '\r' | sed -n -E 's/^acknowledged ([0-9]+\.[0-9]+)\.([0-9]+)$/\1 \2/p' |
        awk '{ if ($2 > last[$1]) last[$1] = $2 } END { for (c in last) printf "%s%s.%d", n++ ? "," : "", c, last[c] }'
}

shopt -s nullglob
rm -f "$out"/*.log "$out"/*.err "$out/nvdimm"
truncate -s 512M "$out/nvdimm"
boot level max mem-ctrl step=level
for ((round = 1; round <= cuts; round++)); do
    # At a random moment in each round and run: the judge uses whatever was acknowledged.
    boot "cut-$round" max mem-ctrl "step=cut cut=$((round - 1)) told=$(told)" $((500 + RANDOM % 4000))
done
boot judge max mem-ctrl "step=judge cut=$cuts told=$(told)"
boot process max mem-ctrl step=process 2000
boot refused max mem-ctrl step=refused
boot clwb max mem-ctrl "step=machine by=clwb"
boot clflushopt max,-clwb mem-ctrl "step=machine by=clflushopt"
boot clflush qemu64 mem-ctrl "step=machine by=clflush"
boot caches max cpu "step=judge cut=0 told=$(told)"

[ $failed = 0 ] || { echo FAILED && exit 1; }
echo "all checks passed: $cuts cuts, $(told | tr , '\n' | awk -F. '{ n += $3 } END { print n }') acknowledged changes"
