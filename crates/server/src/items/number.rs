//! Decimal numbers, as the protocols write them.

/// Parses the whole of `word`, which may begin with a plus sign; `None` if it is not a number, or above 2^64 - 1.
pub fn unsigned(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"+").unwrap_or(word);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Parses the whole of `word`, with or without a sign; `None` if it is not a number, or if its magnitude is above
/// 2^63 - 1.
pub fn signed(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some(digits) if digits.starts_with(b"+") => None,
        Some(digits) => i64::try_from(unsigned(digits)?).ok().map(|number| -number),
        None => i64::try_from(unsigned(word)?).ok(),
    }
}

/// Parses the number that a value begins with, as `incr` and `decr` do: ignores blanks before it, and all that follows
/// a blank behind it.
pub fn leading(data: &[u8]) -> Option<u64> {
    // As in C, the vertical tab is a blank.
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let begin = data.iter().position(|byte| !is_blank(byte))?;
    let data = &data[begin..];
    let end = data.iter().position(is_blank).unwrap_or(data.len());
    unsigned(&data[..end])
}

/// Appends the number's digits.
pub fn write(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends the number's digits, and its sign if it is negative.
pub fn write_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    write(out, number.unsigned_abs());
}

/// Parses the whole of `word` as Redis writes numbers: without blanks, plus sign or leading zeros.
pub fn strict(word: &[u8]) -> Option<i64> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    match digits {
        [b'0'] if word.len() == 1 => return Some(0),
        [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => {}
        _ => return None,
    }
    let magnitude = unsigned(digits)?;
    match digits.len() < word.len() {
        true => 0i64.checked_sub_unsigned(magnitude),
        false => i64::try_from(magnitude).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A number written is the number read, with every sign and with blanks around it.
        #[test]
        fn written_numbers_are_read(number: u64, negative: i64) {
            let mut text = Vec::new();
            write(&mut text, number);
            prop_assert_eq!(&text, &number.to_string().into_bytes());
            prop_assert_eq!(unsigned(&text), Some(number));
            prop_assert_eq!(leading(&text), Some(number));
            prop_assert_eq!(leading(&[b" \t", &text[..], b"  x"].concat()), Some(number));
            prop_assert_eq!(unsigned(&[b"+", &text[..]].concat()), Some(number));
            if negative != i64::MIN {
                prop_assert_eq!(signed(negative.to_string().as_bytes()), Some(negative));
            }
        }

        /// A strict read accepts numbers as `write_signed` writes them, and nothing else.
        #[test]
        fn strict_numbers_are_those_that_are_written(number: i64, word in "[-+0-9 ]{0,21}") {
            let mut text = Vec::new();
            write_signed(&mut text, number);
            prop_assert_eq!(&text, &number.to_string().into_bytes());
            prop_assert_eq!(strict(&text), Some(number));
            let same = word.parse::<i64>().ok().filter(|number| number.to_string() == word);
            prop_assert_eq!(strict(word.as_bytes()), same);
        }

        /// `unsigned` accepts and refuses the same words as the standard library.
        #[test]
        fn other_words_are_refused(word in "[-+0-9a ]{0,24}") {
            prop_assert_eq!(unsigned(word.as_bytes()), word.parse::<u64>().ok());
        }
    }
}
