//! `DATE` of an event: UTC, `YYYYMMDDhhmmss.ffffff`, against nanoseconds since 1970.

use chrono::{DateTime, Datelike, NaiveDate, Timelike};

/// Years whose moments all fit in an `i64` of nanoseconds.
const YEARS: std::ops::RangeInclusive<i64> = 1678..=2261;

/// Append the date of a moment, with six digits of the second (what is beyond is left out).
pub fn push_date(out: &mut Vec<u8>, time_ns: i64) {
    let (second, ns) = (time_ns.div_euclid(1_000_000_000), time_ns.rem_euclid(1_000_000_000));
    push_second(out, second);
    out.push(b'.');
    push_digits(out, ns / 1000, 6);
}

/// Append `YYYYMMDDhhmmss` of a second since 1970.
pub(crate) fn push_second(out: &mut Vec<u8>, second: i64) {
    let date = DateTime::from_timestamp(second, 0).unwrap_or_default();
    push_digits(out, date.year(), 4);
    for part in [date.month(), date.day(), date.hour(), date.minute(), date.second()] {
        push_digits(out, part, 2);
    }
}

/// Append a number with leading zeros.
fn push_digits(out: &mut Vec<u8>, value: impl Into<i64>, digits: usize) {
    let (start, mut value) = (out.len(), value.into());
    out.resize(start + digits, b'0');
    for digit in out[start..].iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// The moment of a date; `None` if it is not a date. Up to nine digits of the second.
pub fn parse_date(text: &[u8]) -> Option<i64> {
    parse_date_after(text, &mut None)
}

/// The text of a second, and its number since 1970.
pub(crate) type Second = ([u8; 14], i64);

/// The same, after the date of `last`, which becomes that of this one: most are of the same second.
pub(crate) fn parse_date_after(text: &[u8], last: &mut Option<Second>) -> Option<i64> {
    let (second_text, fraction) = match text.get(14) {
        None => (text, &b""[..]),
        Some(b'.') => (&text[..14], &text[15..]),
        Some(_) => return None,
    };
    if second_text.len() != 14 || fraction.len() > 9 || (text.len() == 15) {
        return None;
    }
    let second = match last {
        Some((text, second)) if text == second_text => *second,
        _ => {
            let second = parse_second(second_text)?;
            *last = Some((second_text.try_into().ok()?, second));
            second
        }
    };
    let ns = digits(fraction)? * 10i64.pow(9 - fraction.len() as u32);
    second.checked_mul(1_000_000_000)?.checked_add(ns)
}

fn parse_second(text: &[u8]) -> Option<i64> {
    let year = digits(&text[..4])?;
    let mut parts = [0; 5];
    for (part, pair) in parts.iter_mut().zip(text[4..].chunks_exact(2)) {
        *part = digits(pair)? as u32;
    }
    let [month, day, hour, minute, second] = parts;
    let date = NaiveDate::from_ymd_opt(year as i32, month, day)?;
    let time = date.and_hms_opt(hour, minute, second)?.and_utc();
    YEARS.contains(&year).then(|| time.timestamp())
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |value, byte| {
        byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn date_text(time_ns: i64) -> String {
        let mut out = Vec::new();
        push_date(&mut out, time_ns);
        String::from_utf8(out).expect("digits")
    }

    #[test]
    fn known_moments() {
        assert_eq!(date_text(0), "19700101000000.000000");
        assert_eq!(date_text(1_795_224_638_055_784_999), "20261121013038.055784");
        assert_eq!(date_text(951_782_400_000_000_000), "20000229000000.000000");
        assert_eq!(date_text(-1), "19691231235959.999999");
        assert_eq!(parse_date(b"20261121013038.055784"), Some(1_795_224_638_055_784_000));
        assert_eq!(parse_date(b"20261121013038"), Some(1_795_224_638_000_000_000));
        assert_eq!(parse_date(b"20261121013038.5"), Some(1_795_224_638_500_000_000));
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "20261121",
            "20261121013038.",
            "20261121013038.0000000001",
            "20261321013038.0",
            "20260229000000.0",
            "20261121240000.0",
            "20261121016038.0",
            "20261121013060.0",
            "16000101000000.0",
            "2026112101303x.0",
            "20261121013038,5",
            "+0261121013038.5",
        ] {
            assert_eq!(parse_date(text.as_bytes()), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_moment_comes_back(time_us in -9_214_560_000_000_000i64..9_214_646_400_000_000) {
            let time_ns = time_us * 1000;
            prop_assert_eq!(parse_date(date_text(time_ns).as_bytes()), Some(time_ns));
        }

        #[test]
        fn what_was_before_changes_nothing(
            times_us in proptest::collection::vec(0i64..4_000_000, 1..20), bytes in "[0-9.]{13,16}",
        ) {
            let mut last = None;
            for time_us in times_us {
                let text = date_text(time_us * 1000);
                prop_assert_eq!(parse_date_after(text.as_bytes(), &mut last), Some(time_us * 1000));
                let bytes = bytes.as_bytes();
                prop_assert_eq!(parse_date_after(bytes, &mut last), parse_date(bytes));
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..30)) {
            parse_date(&bytes);
        }
    }
}
