# Builds what run.sh and disk.sh boot: a kernel and an initial file system. They source it, with $here and $out set.

# make_guest INIT PROGRAM... -- MODULE...: builds $out/initrd.gz, in which INIT is the first process, and sets $kernel.
# The modules are loaded in this order, after those of ext4.
make_guest() {
    # The kernel of linux-image-amd64, mkfs.ext4, and the libraries of mkfs.ext4 and of the programs.
    local packages=$out/packages tree=$out/tree names package order=10 module file
    if [ ! -e "$packages/fetched" ]; then
        rm -rf "$packages"
        mkdir -p "$packages"
        depends() { apt-cache depends --important "$@"; }
        names=$(
            depends linux-image-amd64 | sed -n 's/.*Depends: //p' | head -n1
            depends --recurse e2fsprogs libgcc-s1 | grep '^[a-z0-9.+-]*$'
            echo busybox-static
        )
        (cd "$packages" && echo "$names" | sort -u | xargs apt-get download)
        for package in "$packages"/*.deb; do
            dpkg-deb -x "$package" "$packages" && rm "$package"
        done
        touch "$packages/fetched"
    fi
    kernel=$(echo "$packages"/boot/vmlinuz-*)

    rm -rf "$tree"
    mkdir -p "$tree"/{bin,modules,lib,lib64,proc,sys,dev,tmp,mnt}
    cp "$packages"/bin/busybox "$tree/bin/"
    cp "$(find "$packages" -name mke2fs | head -n1)" "$tree/bin/mkfs.ext4"
    cp "$1" "$tree/init"
    cp "$here/clients.sh" "$tree/"
    shift
    while [ "$1" != -- ]; do
        cp "$1" "$tree/bin/"
        strip --strip-debug "$tree/bin/${1##*/}" 2>/dev/null || true
        shift
    done
    shift
    find "$packages" -regex '.*-linux-gnu/[^/]*\.so[^/]*' -exec cp -L {} "$tree/lib/" \;
    cp "$tree"/lib/ld-linux-x86-64.so.2 "$tree/lib64/"
    for module in crc32c_generic crc16 mbcache jbd2 ext4 "$@"; do
        order=$((order + 1))
        file=$(find "$packages" -name "$module.ko*")
        case $file in
        '') ;; # built in
        *.xz) xz -dc "$file" >"$tree/modules/$order-$module.ko" ;;
        *) cp "$file" "$tree/modules/$order-$module.ko" ;;
        esac
    done
    (cd "$tree" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$out/initrd.gz"
}
