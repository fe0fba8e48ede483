"""Reads a closed pool by docs/format.md alone, and writes a map as lines of KEY TAB VALUE.

    read_pool.py POOL [MAP]

It shares no code with Wollemi, and asserts what the page says of every byte it comes across.
"""

import sys
from struct import pack, unpack_from

MASK = (1 << 64) - 1
OFFSET = (1 << 48) - 16
LEAF, ARRAY, N4, N16, N48, N256 = range(1, 7)
# Of each kind of node: its bytes, where its entries are, how many.
NODES = {N4: (64, 32, 4), N16: (192, 64, 16), N48: (704, 320, 48), N256: (2112, 64, 256)}
ARRAYS = [2, 6, 14, 30, 46, 64]


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
        assert not any(data[48:64] + data[96:128] + data[136:4096])
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
        """Names, and the links to the root objects."""
        for entry in range(4096, self.page - 255, 256):
            link, about = self.word(entry), self.word(entry + 8)
            if link & ~1 == 0:
                continue
            kind, name = about >> 32, self.bytes(entry + 16, about & 0xFF)
            check = fnv1a(pack("<IB", kind, len(name)) + name) >> 20 & 0xFFFFFF
            assert check == about >> 8 & 0xFFFFFF and kind == 1
            yield name, link

    def object(self, link, size):
        """Where an object is; its chunk must be where one of its class can be."""
        at = link & OFFSET
        assert 0 < at and at + size <= self.allocated
        if size > self.page // 2:
            assert at % self.page == 0
        else:
            chunk = next(c for c in self.classes if c >= size)
            assert self.class_of_page.setdefault(at // self.page, chunk) == chunk and at % self.page % chunk == 0
        return at

    def leaf(self, link):
        """Key and value."""
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

    def entries(self, root):
        """All keys below a root, in order, and their values."""
        found = []
        stack = [(root, None, None)]  # a link, and the level and the byte by which it hangs
        while stack:
            link, level, byte = stack.pop()
            kind, aux = link >> 1 & 7, link >> 56
            if kind == LEAF:
                leaves = [link]
                assert aux == 0
            elif kind == ARRAY:
                at = self.object(link, 16 + 8 * ARRAYS[aux])
                assert self.word(at + 8) == aux
                leaves = [entry for i in range(ARRAYS[aux]) if (entry := self.word(at + 16 + 8 * i)) & ~1]
            else:
                stack += self.children(link, level)
                continue
            for leaf in leaves:
                key, value = self.leaf(leaf)
                assert kind == LEAF or leaf >> 48 == checksum(key) >> 48
                assert (None if len(key) == level else key[level]) == byte
                found.append((key, value))
        return sorted(found)

    def children(self, link, parent_level):
        size, first, count = NODES[link >> 1 & 7]
        at = self.object(link, size)
        level = self.word(at + 8) & 0xFFFFFFFF
        assert link >> 56 == (0 if parent_level is None else min(level - parent_level - 1, 255))
        bytes_seen = set()
        if (ends := self.word(at + 16)) & ~1:
            assert ends >> 48 & 0xFF == 0
            yield ends, level, None
        for i in range(count):
            if (entry := self.word(at + first + 8 * i)) & ~1:
                byte = entry >> 48 & 0xFF
                assert byte not in bytes_seen and (size != 2112 or byte == i)
                bytes_seen.add(byte)
                yield entry, level, byte


def main(path, wanted="default"):
    with open(path, "rb") as file:
        pool = Pool(file.read())
    for name, root in pool.roots():
        if name == wanted.encode():
            for key, value in pool.entries(root):
                sys.stdout.buffer.write(key + b"\t" + value + b"\n")
            return None
    return f"no map '{wanted}'"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if 2 <= len(sys.argv) <= 3 else __doc__)
