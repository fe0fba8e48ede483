//! Patterns for keys: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a byte that means itself.

/// Whether all of `text` fits `pattern`. Takes time in proportion to the product of their lengths at most.
pub fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where the last star stands, and how much of the text it takes so far.
    let mut star = None;
    loop {
        if t == text.len() {
            return pattern[p..].iter().all(|&byte| byte == b'*');
        }
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
            continue;
        }
        match one(&pattern[p..], text[t]) {
            Some(length) => (p, t) = (p + length, t + 1),
            None => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, t) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
}

/// How long the first part of the pattern is, if the byte fits it.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => (escaped == byte).then_some(2),
        [b'[', ref class @ ..] => class_of(class, byte),
        [literal, ..] => (literal == byte).then_some(1),
    }
}

fn class_of(class: &[u8], byte: u8) -> Option<usize> {
    let negated = class.first() == Some(&b'^');
    let mut i = usize::from(negated);
    let mut found = false;
    while let Some(&first) = class.get(i) {
        match (first, class.get(i + 1), class.get(i + 2)) {
            (b']', ..) => break,
            (b'\\', Some(&escaped), _) => {
                found |= escaped == byte;
                i += 2;
            }
            (low, Some(b'-'), Some(&high)) => {
                found |= (low.min(high)..=low.max(high)).contains(&byte);
                i += 3;
            }
            _ => {
                found |= first == byte;
                i += 1;
            }
        }
    }
    let end = if i < class.len() { i + 2 } else { i + 1 };
    (found != negated).then_some(end)
}

/// The bytes with which every text that fits begins.
pub fn prefix(pattern: &[u8]) -> &[u8] {
    let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    let end = pattern.iter().position(special);
    &pattern[..end.unwrap_or(pattern.len())]
}

#[cfg(test)]
mod tests {
    use super::{fits, prefix};
    use proptest::prelude::*;

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
        ] {
            assert_eq!(fits(pattern.as_bytes(), text.as_bytes()), fit, "{pattern} {text}");
        }
        assert_eq!(prefix(b"user:\\*x"), b"user:");
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
