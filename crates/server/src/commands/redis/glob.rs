//! Patterns for keys: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a byte that means itself.

/// A pattern, parsed once for many texts.
#[derive(Debug)]
pub struct Pattern(Vec<Part>);

/// A part of a pattern: the bytes that it matches.
#[derive(Debug)]
enum Part {
    /// Any number of bytes.
    Star,
    /// Any byte.
    Any,
    /// This byte.
    Byte(u8),
    /// A byte of this set, one bit each.
    Class(Box<[u64; 4]>),
}

impl Pattern {
    /// Parses a pattern, or the beginning of one that only matches texts longer than any key.
    pub fn new(pattern: &[u8]) -> Pattern {
        let (mut parts, mut bytes, mut p) = (Vec::new(), 0, 0);
        while bytes <= index::MAX_KEY && p < pattern.len() {
            let (part, length) = match pattern[p..] {
                [b'*', ..] if matches!(parts.last(), Some(Part::Star)) => {
                    p += 1;
                    continue;
                }
                [b'*', ..] => (Part::Star, 1),
                [b'?', ..] => (Part::Any, 1),
                [b'\\', escaped, ..] => (Part::Byte(escaped), 2),
                [b'[', ref class @ ..] => class_of(class),
                [literal, ..] => (Part::Byte(literal), 1),
                [] => break,
            };
            bytes += usize::from(!matches!(part, Part::Star));
            parts.push(part);
            p += length;
        }
        Pattern(parts)
    }

    /// Returns whether the pattern matches all of a text. Takes time in proportion to the product of their lengths at
    /// most.
    pub fn matches(&self, text: &[u8]) -> bool {
        let (mut p, mut t) = (0, 0);
        // The part behind the last star, and the end of what the star matches so far.
        let mut star = None;
        loop {
            let part = self.0.get(p);
            let fits = match (part, text.get(t)) {
                (None, None) => return true,
                (Some(Part::Star), _) => {
                    p += 1;
                    star = Some((p, t));
                    continue;
                }
                (Some(_), None) => return false,
                (None, Some(_)) => false,
                (Some(part), Some(&byte)) => part.takes(byte),
            };
            (p, t) = match (fits, &mut star) {
                (true, _) => (p + 1, t + 1),
                (false, Some((behind, taken))) => {
                    *taken += 1;
                    (*behind, *taken)
                }
                (false, None) => return false,
            };
        }
    }
}

impl Part {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Part::Star | Part::Any => true,
            Part::Byte(literal) => *literal == byte,
            Part::Class(bits) => bits[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1,
        }
    }
}

/// Parses the class that follows a bracket. Returns also the length of both.
fn class_of(class: &[u8]) -> (Part, usize) {
    let negated = class.first() == Some(&b'^');
    let mut i = usize::from(negated);
    let mut bits = Box::new([0; 4]);
    while let Some(&first) = class.get(i) {
        let (low, high, length) = match (first, class.get(i + 1), class.get(i + 2)) {
            (b']', ..) => break,
            (b'\\', Some(&escaped), _) => (escaped, escaped, 2),
            (low, Some(b'-'), Some(&high)) => (low.min(high), low.max(high), 3),
            _ => (first, first, 1),
        };
        for byte in low..=high {
            bits[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
        i += length;
    }
    if negated {
        bits.iter_mut().for_each(|word: &mut u64| *word = !*word);
    }
    let end = if i < class.len() { i + 2 } else { i + 1 };
    (Part::Class(bits), end)
}

/// Returns the bytes with which every matching text begins.
pub fn prefix(pattern: &[u8]) -> &[u8] {
    let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    let end = pattern.iter().position(special);
    &pattern[..end.unwrap_or(pattern.len())]
}

#[cfg(test)]
mod tests {
    use super::{Part, Pattern, prefix};
    use proptest::prelude::*;

    fn fits(pattern: &[u8], text: &[u8]) -> bool {
        Pattern::new(pattern).matches(text)
    }

    #[test]
    fn patterns_fit_as_in_redis() {
        for (pattern, text, fit) in [
            ("*", "", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h\\*llo", "h*llo", true),
            ("h\\*llo", "hello", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbxx", false),
            ("[", "[", false),
            ("[a", "a", true),
            ("", "", true),
            ("", "a", false),
            ("a**", "a", true),
            ("a[", "ab", false),
            ("[^", "a", true),
            ("[\\]]x", "]x", true),
            ("\\", "\\", true),
            ("*[b-d]?*", "ace", true),
            ("*[b-d]?*", "aec", false),
        ] {
            assert_eq!(fits(pattern.as_bytes(), text.as_bytes()), fit, "{pattern} {text}");
        }
        assert_eq!(prefix(b"user:\\*x"), b"user:");
    }

    /// A pattern longer than any key matches none, and takes no more memory than one for the longest. A class takes 32
    /// bytes, however long it is.
    #[test]
    fn long_patterns_end() {
        for part in ["[]", "a", "\\b", "[a-z]", "?"] {
            let pattern = Pattern::new(part.repeat(index::MAX_KEY + 2).as_bytes());
            assert_eq!(pattern.0.len(), index::MAX_KEY + 1);
            assert!(!pattern.matches(&vec![b'a'; index::MAX_KEY]));
        }
        let stars = Pattern::new("*".repeat(1 << 20).as_bytes());
        assert_eq!(stars.0.len(), 1);
        assert!(stars.matches(b"anything"));
        let class = Pattern::new(format!("[{}]", "a-cx".repeat(1 << 20)).as_bytes());
        assert!(matches!(&class.0[..], [Part::Class(bits)] if size_of_val(&**bits) == 32));
        assert!(class.matches(b"b") && class.matches(b"x") && !class.matches(b"d"));
        assert!(Pattern::new("?".repeat(index::MAX_KEY).as_bytes()).matches(&vec![b'a'; index::MAX_KEY]));
    }

    proptest! {
        /// Any bytes are a pattern, and what fits begins with the pattern's prefix.
        #[test]
        fn texts_that_fit_begin_with_the_prefix(pattern in "[ab*?\\[\\]^\\\\-]{0,12}", text in "[ab]{0,8}") {
            let fit = fits(pattern.as_bytes(), text.as_bytes());
            prop_assert!(!fit || text.as_bytes().starts_with(prefix(pattern.as_bytes())));
        }
    }
}
