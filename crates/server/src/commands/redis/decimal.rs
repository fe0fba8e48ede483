//! Numbers with a fraction, as `INCRBYFLOAT` adds them: exactly, in decimal, with up to 17 digits behind the point.

/// Digits behind the point.
const SCALE: u32 = 17;
const ONE: i128 = 10i128.pow(SCALE);

/// A decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decimal {
    /// In units of 10^-17.
    Finite(i128),
    /// Infinity of either sign, which has no sum.
    Infinite,
}

impl Decimal {
    pub const ZERO: Decimal = Decimal::Finite(0);

    /// Parses a number such as `-1.5`, `3e2` or `inf`; ignores digits beyond the seventeenth behind the point. Returns
    /// `None` if the text is no number, or if its magnitude is too large, above about 1.7 · 10^21.
    pub fn read(text: &[u8]) -> Option<Decimal> {
        let text = std::str::from_utf8(text).ok()?;
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (negative, digits) = match mantissa.as_bytes().first()? {
            b'-' => (true, &mantissa[1..]),
            b'+' => (false, &mantissa[1..]),
            _ => (false, mantissa),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if ["inf", "infinity"]
            .iter()
            .any(|name| digits.eq_ignore_ascii_case(name))
        {
            return Some(Decimal::Infinite);
        }
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut place = i64::from(exponent) + i64::try_from(whole.len()).ok()? - 1;
        let mut sum = 0i128;
        for digit in whole.bytes().chain(fraction.bytes()) {
            if !digit.is_ascii_digit() {
                return None;
            }
            let digit = i128::from(digit - b'0');
            let power = place + i64::from(SCALE);
            if digit != 0 && power >= 0 {
                let power = u32::try_from(power).ok().filter(|&power| power < 38)?;
                sum = sum.checked_add(digit.checked_mul(10i128.checked_pow(power)?)?)?;
            }
            place -= 1;
        }
        Some(Decimal::Finite(if negative { -sum } else { sum }))
    }

    /// Returns the sum, unless it is too large or infinite.
    pub fn add(self, other: Decimal) -> Option<Finite> {
        match (self, other) {
            (Decimal::Finite(one), Decimal::Finite(other)) => one.checked_add(other).map(Finite),
            _ => None,
        }
    }
}

/// A sum, in units of 10^-17.
#[derive(Clone, Copy, Debug)]
pub struct Finite(i128);

impl std::fmt::Display for Finite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (one, magnitude) = (ONE.unsigned_abs(), self.0.unsigned_abs());
        let fraction = format!("{:017}", magnitude % one);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{}{point}{fraction}", magnitude / one)
    }
}

#[cfg(test)]
mod tests {
    use super::Decimal;

    /// Sums are exact, unlike those of binary fractions.
    #[test]
    fn sums_are_exact() {
        let sum = |a: &str, b: &str| {
            let (a, b) = (Decimal::read(a.as_bytes())?, Decimal::read(b.as_bytes())?);
            a.add(b).map(|sum| sum.to_string())
        };
        assert_eq!(sum("0.1", "0.2").as_deref(), Some("0.3"));
        assert_eq!(sum("5.0e3", "200").as_deref(), Some("5200"));
        assert_eq!(sum("-.5", "0.25").as_deref(), Some("-0.25"));
        assert_eq!(sum("10.5", "-10.5").as_deref(), Some("0"));
        assert_eq!(sum("1e-17", "0").as_deref(), Some("0.00000000000000001"));
        for word in [
            "", "-", ".", "1.2.3", "1e", "a", " 1", "1 ", "nan", "infin", "1e40", "0x10",
        ] {
            assert_eq!(sum(word, "0"), None, "{word}");
        }
        for word in ["inf", "-INF", "+Infinity"] {
            assert_eq!(Decimal::read(word.as_bytes()), Some(Decimal::Infinite), "{word}");
            assert_eq!(sum("1", word), None, "{word}");
        }
    }
}
