//! The decimal notations of the integers in a range.

use crate::pattern::Pattern;

/// The integers that arguments can hold.
const LEAST: i128 = i64::MIN as i128;
const MOST: i128 = u64::MAX as i128;
/// The largest integer without a bound, and with a minus sign the smallest. Nearly all integers of 64 bits, with a short pattern.
pub(crate) const UNBOUNDED: i128 = 8_999_999_999_999_999_999;

/// Returns the notations of all integers from `least` to `most`, without leading zeros; `None` if there are none.
pub(crate) fn integers(least: i128, most: i128) -> Option<Pattern> {
    let (least, most) = (least.max(LEAST), most.min(MOST));
    if least > most {
        return None;
    }
    let minus = || Pattern::literal("-");
    let mut options = Vec::new();
    if least <= 0 && most >= 0 {
        options.push(Pattern::literal("0"));
    }
    if least < 0 && -least == most {
        options.push(Pattern::sequence([minus().optional(), naturals(1, most)]));
        return Some(Pattern::choice(options));
    }
    if least < 0 {
        let magnitudes = naturals((-most).max(1), -least);
        options.push(Pattern::sequence([minus(), magnitudes]));
    }
    if most > 0 {
        options.push(naturals(least.max(1), most));
    }
    Some(Pattern::choice(options))
}

/// Returns the notations of the positive integers from `low` to `high`.
fn naturals(low: i128, high: i128) -> Pattern {
    let (first, last) = (low.to_string(), high.to_string());
    let count = |len: usize| u32::try_from(len).unwrap_or_default();
    let is_full = last.bytes().all(|digit| digit == b'9');
    if is_full && first == format!("1{}", "0".repeat(first.len() - 1)) {
        let rest = Pattern::digits(count(first.len() - 1), count(last.len() - 1));
        return Pattern::sequence([Pattern::one_of("123456789"), rest]);
    }
    if first.len() == last.len() {
        return Pattern::choice(same_length(&first, &last));
    }
    let mut options = same_length(&first, &"9".repeat(first.len()));
    // The numbers of any length between.
    let (short, long) = (first.len() + 1, last.len() - 1);
    let long = if is_full { last.len() } else { long };
    if short <= long {
        let rest = Pattern::digits(count(short - 1), count(long - 1));
        options.push(Pattern::sequence([Pattern::one_of("123456789"), rest]));
    }
    if !is_full {
        options.extend(same_length(
            &format!("1{}", "0".repeat(last.len() - 1)),
            &last,
        ));
    }
    Pattern::choice(options)
}

/// The numbers between two of the same length, both included.
fn same_length(low: &str, high: &str) -> Vec<Pattern> {
    let rest = |text: &str| text.get(1..).unwrap_or_default().to_owned();
    let (Some(first), Some(last)) = (low.chars().next(), high.chars().next()) else {
        return vec![Pattern::literal("")];
    };
    let (low_rest, high_rest) = (rest(low), rest(high));
    let led = |digit: char, options: Vec<Pattern>| {
        Pattern::sequence([
            Pattern::literal(digit.to_string()),
            Pattern::choice(options),
        ])
    };
    if first == last {
        return vec![led(first, same_length(&low_rest, &high_rest))];
    }
    let (zeros, nines) = ("0".repeat(low_rest.len()), "9".repeat(low_rest.len()));
    let is_low_full = low_rest == zeros;
    let is_high_full = high_rest == nines;
    let mut all = Vec::new();
    if !is_low_full {
        all.push(led(first, same_length(&low_rest, &nines)));
    }
    let from = if is_low_full { first } else { next(first) };
    let to = if is_high_full { last } else { before(last) };
    if from <= to {
        let count = u32::try_from(zeros.len()).unwrap_or_default();
        let digits: String = (from..=to).collect();
        let rest = (count > 0).then(|| Pattern::digits(count, count));
        all.push(Pattern::sequence(
            [Pattern::one_of(&digits)].into_iter().chain(rest),
        ));
    }
    if !is_high_full {
        all.push(led(last, same_length(&zeros, &high_rest)));
    }
    all
}

fn next(digit: char) -> char {
    ('0'..='9').find(|one| *one > digit).unwrap_or(digit)
}

fn before(digit: char) -> char {
    ('0'..='9').rev().find(|one| *one < digit).unwrap_or(digit)
}

#[cfg(test)]
mod tests {
    use super::{MOST, UNBOUNDED, integers};
    use crate::lark::regex;
    use regex_lite::RegexBuilder;

    /// Every number near a bound is accepted if it is within both.
    fn check(least: i128, most: i128) {
        let pattern = integers(least, most).map(|pattern| regex(&pattern));
        let Some(pattern) = pattern else {
            assert!(least > most || least > MOST, "{least} {most}");
            return;
        };
        let mut accepts = RegexBuilder::new(&format!("^({pattern})$"));
        let accepts = accepts.nest_limit(200).build().unwrap();
        let near = |bound: i128| (bound - 130..bound + 130).chain([bound * 10, bound / 10]);
        for number in near(least).chain(near(most)).chain(near(0)) {
            let is_within = least <= number && number <= most;
            assert_eq!(
                accepts.is_match(&number.to_string()),
                is_within,
                "{number} in {pattern}"
            );
        }
        for text in ["-0", "00", "01", "+1", "1.0", "", "-"] {
            assert!(!accepts.is_match(text), "{text} in {pattern}");
        }
    }

    #[test]
    fn integers_are_those_of_the_range() {
        let bounds = [
            -1_000_000, -9_999, -1_000, -999, -101, -100, -99, -10, -9, -1, 0, 1, 5, 9, 10, 11, 99,
            100, 101, 109, 110, 987, 1_000, 4_321, 99_999, 1_000_000,
        ];
        for least in bounds {
            for most in bounds {
                check(least, most);
            }
        }
        check(-UNBOUNDED, UNBOUNDED);
        check(i64::MIN.into(), u64::MAX.into());
    }
}
