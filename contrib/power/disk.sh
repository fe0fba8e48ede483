#!/usr/bin/env bash
# Runs Wollemi at durability level `disk` in a virtual machine with a virtio disk, and cuts the power.
#
#     contrib/power/disk.sh [-n CUTS] [-o DIRECTORY] [PROGRAMS]
#
# PROGRAMS is the directory of `wollemi` and `examples/power_cut` (default: target/release; missing programs are built).
# Needs Debian on x86-64, qemu-system-x86_64, busybox, mkfs.ext4 and mkfs.xfs (apt-get install qemu-system-x86 busybox
# e2fsprogs xfsprogs), and no root. All output is in DIRECTORY (default: target/power-disk), including the guest's
# console. Makes CUTS (default: 8) cuts on ext4 and as many on xfs.
#
# The guest's side is init-disk.sh. Killing the emulator with SIGKILL cuts the power: everything that the guest has not
# written to its disk is lost with its memory. The next boot, on the same disk, must find everything that the console
# had reported before the cut. docs/platforms.md says what this shows and what it cannot.
#
# Prints a line per check; exits with 0 if all passed, with 1 if one failed, with 2 if it could not begin.
set -euo pipefail
trap 'exit 2' ERR # until the first boot
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}

cuts=8
out=$target/power-disk
while getopts n:o: option; do
    case $option in
    n) cuts=$OPTARG ;;
    o) out=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
for tool in qemu-system-x86_64 busybox apt-get dpkg-deb mkfs.ext4 mkfs.xfs; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2 && exit 2; }
done
programs=${1:-$target/release}
if [ -z "${1:-}" ] && { [ ! -x "$programs/wollemi" ] || [ ! -x "$programs/examples/power_cut" ]; }; then
    (cd "$root" && cargo build --release -p wollemi-cli && cargo build --release -p wollemi-torture --example power_cut)
fi
for program in wollemi examples/power_cut; do
    [ -x "$programs/$program" ] || { echo "$programs/$program is not a program" >&2 && exit 2; }
done
mkdir -p "$out"
. "$here/guest.sh"
make_guest "$here/init-disk.sh" "$programs/wollemi" "$programs/examples/power_cut" -- \
    virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk libcrc32c xfs

trap - ERR
failed=0
machine=
# However this ends, no emulator keeps running.
trap '[ -z "$machine" ] || kill -9 "$machine" 2>/dev/null' EXIT

# boot NAME FS 'WORDS FOR init-disk.sh' [LINES]: starts the machine and waits until it has stopped; with LINES, cuts its
# power as soon as the console shows that many acknowledgements.
boot() {
    local log=$out/$1.log lines=${4:-} ticks=0
    : >"$log"
    qemu-system-x86_64 -accel tcg -machine q35 -cpu max -smp 2 -m 2G -nodefaults -display none -no-reboot \
        -serial "file:$log" -drive "file=$out/$2.disk,format=raw,if=virtio,cache=writeback" \
        -kernel "$kernel" -initrd "$out/initrd.gz" \
        -append "console=ttyS0 quiet panic=-1 no_timer_check fs=$2 $3" >"$out/$1.err" 2>&1 &
    machine=$!
    {
        while kill -0 $machine; do
            ticks=$((ticks + 1))
            if [ $ticks -gt 6000 ] || [ -n "$lines" ] && [ "$(grep -c '^acknowledged ' "$log")" -ge "$lines" ]; then
                kill -9 $machine || true
            fi
            sleep 0.05
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

# The acknowledgements on the consoles so far, for a file system: for each client the last complete line.
told() {
    cat "$out/$1"-cut-*.log | tr -d '\r' | sed -n -E 's/^acknowledged ([0-9]+\.[0-9]+)\.([0-9]+)$/\1 \2/p' |
        awk '{ if ($2 > last[$1]) last[$1] = $2 } END { for (c in last) printf "%s%s.%d", n++ ? "," : "", c, last[c] }'
}

# The clients of the last few rounds: the kernel's command line has 2048 bytes.
latest() { told "$1" | tr , '\n' | sort -t. -k1,1nr | head -n 60 | paste -sd,; }

shopt -s nullglob
rm -f "$out"/*.log "$out"/*.err "$out"/*.disk
for fs in ext4 xfs; do
    truncate -s 2G "$out/$fs.disk"
    "mkfs.$fs" -q "$out/$fs.disk"
    for ((round = 1; round <= cuts; round++)); do
        # At a random moment in each round and run: the judge uses whatever was acknowledged.
        words="cut=$((round - 1)) told=$([ "$round" = 1 ] || latest $fs)"
        boot "$fs-cut-$round" $fs "$words" $((500 + RANDOM % 4000))
    done
    boot "$fs-judge" $fs "last=yes cut=$cuts told=$(latest $fs)"
done

[ $failed = 0 ] || { echo FAILED && exit 1; }
echo "all checks passed: $cuts cuts each, $({ told ext4; echo ,; told xfs; } | tr , '\n' | awk -F. '{ n += $3 } END { print n }') acknowledged changes"
