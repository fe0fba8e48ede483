//! The words of random requests, by kind.

use crate::twin::Random;

pub const KEYS: &[&str] = &["a", "b", "c", "d", "counter", "\u{e9}", "YQ=="];
/// Without numbers from 2^63 to 2^64 and minus signs: in memcached such a number is invalid if any following byte, up
/// to the next zero byte in memory, is a minus sign.
pub const DATA: &[&str] = &[
    "",
    "x",
    "word",
    "1",
    "1",
    "0",
    "10",
    "42",
    "99",
    "007",
    "65535",
    "18446744073709551616",
    "99999999999999999999999",
    " 5",
    "5 ",
    "12 ab",
    "+1",
    "1.5",
    "0x1",
    "a\r\nb",
    "END\r\nx",
];

/// Possible remaining lifetimes, in order; times in the future have more left. They are hours long, or over: no test
/// runs long enough to depend on them.
pub const LEFT: [u64; 4] = [10_000, 100_000, 1_000_000, 2_592_000];

/// Words of a kind: valid ones, and invalid ones.
pub struct Words {
    right: &'static [&'static str],
    wrong: &'static [&'static str],
}

impl Words {
    pub fn some(&self, random: &mut Random) -> &'static str {
        match random.below(40) {
            0 => random.of(self.wrong),
            _ => random.of(self.right),
        }
    }
}

/// The keys of items in base64.
pub const BINARY: Words = Words {
    right: &["YQ==", "Ymlua2V5", "/+8=", "YWI="],
    wrong: &["YQ", "!", "a"],
};
pub const LIFETIMES: Words = Words {
    right: &[
        "0",
        "0",
        "0",
        "0",
        "0",
        "0",
        "10000",
        "100000",
        "1000000",
        "2592000",
        "2147483647",
        "-1",
        "2592001",
        "-100000",
        "+10000",
    ],
    wrong: &["x", "1.5", "10000x", "99999999999999999999"],
};
/// With less time left than this, a client is told to replace the item. None equals a lifetime minus the elapsed
/// second.
pub const SOON: Words = Words {
    right: &["0", "30", "5000", "50000", "500000", "2000000", "-1"],
    wrong: &["x", "1.5"],
};
pub const CLIENT: Words = Words {
    right: &["0", "0", "5", "4294967295", "+7"],
    wrong: &["x", "-1", "1.5"],
};
pub const DELTAS: Words = Words {
    right: &["0", "1", "1", "5", "90", "1000", "100000", "+3"],
    wrong: &["18446744073709551616", "-1", "x", "1x"],
};
pub const UNIQUES: Words = Words {
    right: &[
        "{1}",
        "{1}",
        "{1}",
        "{2}",
        "{2}",
        "{3}",
        "{5}",
        "{9}",
        "18446744073709551615",
    ],
    wrong: &["x", "-1"],
};
pub const MODES: Words = Words {
    right: &["E", "A", "P", "R", "S", "I", "+", "D", "-"],
    wrong: &["X", "", "EE"],
};
/// Only `ms` gets one that is too long: in memcached the other commands act before they check it.
pub const OPAQUE: Words = Words {
    right: &["1", "", "abc", "v"],
    wrong: &["0123456789012345678901234567890"],
};
/// Invalid lengths of a value.
pub const LENGTHS: &[&str] = &["-1", "x", "2147483646", "99999999999999999999", "1.5"];

/// Capitals stand for words of a kind; a `V` for a length, and the data that follows; `*` for flags.
pub const SHAPES: &[&str] = &[
    "get K",
    "get K",
    "get K K K",
    "gets K",
    "gets K",
    "gets K K",
    "gat L K",
    "gats L K K",
    "set K F L V",
    "set K F L V",
    "set K F L V",
    "set K F L V noreply",
    "set K F L V other",
    "add K F L V",
    "add K F L V",
    "add K F L V noreply",
    "replace K F L V",
    "replace K F L V noreply",
    "append K F L V",
    "append K F L V noreply",
    "prepend K F L V",
    "prepend K F L V noreply",
    "cas K F L V U",
    "cas K F L V U",
    "cas K F L V U",
    "cas K F L V U noreply",
    "delete K",
    "delete K",
    "delete K 0",
    "delete K 0 noreply",
    "delete K noreply",
    "incr K D",
    "incr K D",
    "incr counter D",
    "decr K D",
    "decr counter D",
    "incr K D noreply",
    "decr K D noreply",
    "touch K L",
    "touch K L noreply",
    "mn",
    "mg K *",
    "mg K *",
    "mg K *",
    "mg K v c *",
    "mg K v *",
    "mg B b *",
    "mg B b v *",
    "ms K V *",
    "ms K V *",
    "ms K V c *",
    "ms K V CU *",
    "ms K V CU I *",
    "ms B V b *",
    "ms B V b *",
    "md K *",
    "md K *",
    "md K I *",
    "md K I *",
    "md B b *",
    "ma K *",
    "ma counter *",
    "ma counter v *",
    "ma counter NL *",
    "ma B b *",
    "me K",
    "me K",
    "me B b",
];

/// Malformed requests, flushes, and requests with short answers.
pub const RARE: &[&str] = &[
    "get",
    "gets",
    "get large",
    "mg large v *",
    "append large F L V",
    "gat L",
    "gat",
    "set K F L",
    "set K F L V noreply x",
    "set",
    "cas K F L V",
    "cas K F L V U x",
    "delete K 1",
    "delete",
    "delete K x noreply",
    "incr K",
    "incr K D D D",
    "touch K",
    "touch",
    "mn x",
    "mg",
    "ms K V O01234567890123456789012345678901 *",
    "ms K",
    "ms",
    "ms K *",
    "md",
    "ma",
    "me K x",
    "me",
    "verbosity 1",
    "verbosity",
    "verbosity x",
    "verbosity 1 noreply",
    "cache_memlimit 1024",
    "cache_memlimit 2000",
    "cache_memlimit 1024 noreply",
    "cache_memlimit 1024 x",
    "cache_memlimit 1024 x noreply",
    "cache_memlimit",
    "cache_memlimit x",
    "cache_memlimit noreply",
    "cache_memlimit 7",
    "cache_memlimit 1000000001",
    "version",
    "version x",
    "nonesuch",
    "GET K",
    "",
    " ",
    "  get   K  ",
    "gett K",
    "g",
    "mg\tK",
    "stats nonesuch",
    "stats reset",
    "flush_all",
    "flush_all 0",
    "flush_all -1",
    "flush_all noreply",
    "flush_all x",
    "flush_all 0 noreply",
    "flush_all 0 0 0",
];

/// Optional flags; each is used at most once, mostly.
pub const FLAGS: Words = Words {
    right: &[
        "v", "v", "k", "q", "s", "t", "c", "f", "l", "h", "O", "TL", "NL", "RR", "FF", "CU", "I", "M", "JD",
        "DD", "P1", "L1", "u", "u",
    ],
    wrong: &["b", "S1", "E1", "x", "!"],
};
