"""Reads a closed pool by docs/format.md alone, and writes a map as lines of KEY TAB VALUE, with all bytes unchanged.

    read_pool.py POOL [MAP]

The map must be a ROART, the default index; roots of other kinds are skipped, and named on the standard error. It shares
no code with Wollemi, and asserts what the page says of every byte it reads.
"""

import os
import sys
from struct import pack, unpack_from

MASK = (1 << 64) - 1
OFFSET = (1 << 48) - 16
ROART = 1  # the kind of a root
LEAF, ARRAY, N4, N16, N48, N256, INLINE = range(1, 8)
# For each kind of node: its size, the offset of its entries, their number.
NODES = {N4: (64, 32, 4), N16: (192, 64, 16), N48: (704, 320, 48), N256: (2112, 64, 256)}
ARRAYS = [2, 6, 14, 30, 46, 64]
# For each class of inline leaf arrays, the number of lines at the end that are no key's home.
SPARE = [0, 1, 1, 2, 2, 2, 2, 2]


def crc16(data):
    crc = 0xFFFF
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021) & 0xFFFF if crc & 0x8000 else crc << 1
    return crc


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def checksum(data):
    m = 0x9E3779B97F4A7C15

    def mix(word):
        product = word * m
        return product & MASK ^ product >> 64

    value = len(data) ^ m
    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        value = mix(value ^ int.from_bytes(data[at : at + 8], "little"))
    return mix(value ^ int.from_bytes(data[whole:], "little"))


def place(key, first, text):
    """Returns a key's rank among all keys of its inline leaf array: below 65536."""
    a, b = (key + bytes(9))[first : first + 2]
    if not text:
        return a << 8 | b
    if a < 32:
        return 0
    a, b = (a - 32, min(max(b - 32, 0), 95)) if a < 128 else (95, 95)
    return (a * 96 + b) * 455 // 64


def size_classes(page):
    sizes = [16, 32, 64, 96, 128, 160, 192, 224, 256, *range(320, 1025, 64), 2112]
    sizes += [base + base // 4 * q for base in (1024 << i for i in range(17)) for q in (1, 2, 3, 4)]
    sizes = [size for size in sizes if size <= 1024 or size < page // 16]
    return sorted(sizes) + [page // parts // 64 * 64 for parts in (16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2)]


class Pool:
    def __init__(self, data):
        self.data = data
        assert data[:8] == b"\x89WOLLEMI", "not a pool"
        assert self.checked(8) == 1, "another format"
        self.page = self.checked(16)
        self.allocated = self.checked(128)
        for at in (24, 32, 40, 64, 72, 80, 88):
            self.checked(at)
        assert not any(data[48:64] + data[96:128] + data[144:4096])
        assert self.allocated % self.page == 0 and self.page <= self.allocated <= len(data)
        self.classes = size_classes(self.page)
        self.class_of_page = {}

    def word(self, at):
        return unpack_from("<Q", self.data, at)[0]

    def bytes(self, at, count):
        return self.data[at : at + count]

    def checked(self, at):
        word = self.word(at)
        value = word & (1 << 48) - 1
        assert crc16(value.to_bytes(6, "big")) == word >> 48, f"header at {at}"
        return value

    def roots(self):
        """Yields names, kinds, and the links to the root objects."""
        for entry in range(4096, self.page - 255, 256):
            link, about = self.word(entry), self.word(entry + 8)
            if link & ~1 == 0:
                continue
            kind, name = about >> 32, self.bytes(entry + 16, about & 0xFF)
            check = fnv1a(pack("<IB", kind, len(name)) + name) >> 20 & 0xFFFFFF
            assert check == about >> 8 & 0xFFFFFF
            yield name, kind, link

    def object(self, link, size):
        """Returns an object's offset; its chunk must be where one of its class can be."""
        at = link & OFFSET
        assert 0 < at and at + size <= self.allocated
        if size > self.page // 2:
            assert at % self.page == 0
        else:
            chunk = next(c for c in self.classes if c >= size)
            assert self.class_of_page.setdefault(at // self.page, chunk) == chunk and at % self.page % chunk == 0
        return at

    def leaf(self, link):
        """Returns key and value."""
        assert link >> 1 & 7 == LEAF
        at = link & OFFSET
        header = self.word(at)
        key_len, value_len, in_word = header & 0xFFFF, header >> 16 & (1 << 27) - 1, header >> 43 & 1
        tail = key_len + (0 if in_word else value_len)
        self.object(link, (16 + tail + 7) // 8 * 8)
        key, value = self.bytes(at + 16, key_len), self.bytes(at + 16 + key_len, value_len)
        if in_word:
            assert value_len == 8
            value = self.bytes(at + 8, 8)
        else:
            assert self.word(at + 8) == checksum(key + value)
        assert header >> 56 == checksum(key) & 0xFF and header >> 44 & 0xF == 0
        return key, value

    def inline(self, link, path):
        """Returns keys and values of an inline leaf array, to whose slot these bytes lead."""
        shape = link >> 56
        size_class, first, text = shape & 7, shape >> 3 & 7, shape >> 6
        lines = 1 << size_class
        at = self.object(link, 64 * lines)
        assert first and text <= 1 and self.word(at + 8) & 0xFFFFFFFF == shape
        keys, found, roomy = [], [], set()  # roomy: lines with an entry that was never used
        for entry in range(1, 4 * lines):
            word = self.word(at + 16 * entry)
            if word == 0:
                roomy.add(entry // 4)
                continue
            count, present = word >> 5 & 7, word >> 2 & 1
            assert word >> 1 & 1 and not word >> 4 & 1 and bin(word & ~1).count("1") % 2 == 0
            behind = word.to_bytes(8, "big")[:7]
            assert not any(behind[count:])
            key = path[:1] + behind[:count]
            home, line = place(key, first, text) * (lines - SPARE[size_class]) >> 16, entry // 4
            assert home <= line < home + 8 and roomy.isdisjoint(range(home, line))
            assert key.startswith(path)
            keys.append(key)
            if present:
                found.append((key, self.bytes(at + 16 * entry + 8, 8)))
        assert found and len(set(keys)) == len(keys)
        assert all(len(key) >= first and key[:first] == keys[0][:first] for key in keys)
        return found

    def entries(self, root):
        """Yields all keys below a root, in order, and their values."""
        assert root >> 48 & 0xFF in (0, 2), "without entry compression"
        found = []
        stack = [(root, 0, b"")]  # a link, the number of bytes that lead to it, and the last of them
        while stack:
            link, depth, path = stack.pop()
            kind, aux = link >> 1 & 7, link >> 56
            leaves = []
            if kind == LEAF:
                leaves = [link]
                assert aux == 0
            elif kind == ARRAY:
                at = self.object(link, 16 + 8 * ARRAYS[aux])
                assert self.word(at + 8) == aux
                leaves = [entry for i in range(ARRAYS[aux]) if (entry := self.word(at + 16 + 8 * i)) & ~1]
            elif kind == INLINE:
                assert len(path) == depth
                found += self.inline(link, path)
            else:
                stack += self.children(link, depth)
            for leaf in leaves:
                key, value = self.leaf(leaf)
                assert kind == LEAF or leaf >> 48 == checksum(key) >> 48
                assert len(key) >= depth and key[:depth].endswith(path)
                found.append((key, value))
        return sorted(found)

    def children(self, link, depth):
        size, first, count = NODES[link >> 1 & 7]
        at = self.object(link, size)
        level = self.word(at + 8) & 0xFFFFFFFF
        assert link >> 56 == min(level - depth, 255)
        prefix = self.bytes(at + 24, 8)
        assert not any(prefix[level:])
        prefix = prefix[:level]
        if (ends := self.word(at + 16)) & ~1:
            assert ends >> 48 & 0xFF == 0 and len(self.leaf(ends)[0]) == level
            yield ends, level, prefix
        bytes_seen = set()
        for i in range(count):
            if (entry := self.word(at + first + 8 * i)) & ~1:
                byte = entry >> 48 & 0xFF
                assert byte not in bytes_seen and (size != 2112 or byte == i)
                bytes_seen.add(byte)
                yield entry, level + 1, prefix + bytes([byte])


def main(path, wanted="default"):
    with open(path, "rb") as file:
        pool = Pool(file.read())
    found = None
    for name, kind, root in pool.roots():
        if kind != ROART:
            print(f"skipped {name!r}: kind {kind:#x}", file=sys.stderr)
        elif name == os.fsencode(wanted):
            found = pool.entries(root)
    if found is None:
        return f"no map '{wanted}' that is a ROART"
    for key, value in found:
        sys.stdout.buffer.write(key + b"\t" + value + b"\n")
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if 2 <= len(sys.argv) <= 3 else __doc__)
