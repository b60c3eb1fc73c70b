//! The decimal notations of the integers in a range.

use super::pattern::Pattern;

/// The integers that arguments can hold.
const LEAST: i128 = i64::MIN as i128;
const MOST: i128 = u64::MAX as i128;
/// Without a bound, an integer has at most 18 digits: this keeps the grammar short.
pub(super) const UNBOUNDED: i128 = 999_999_999_999_999_999;

/// Returns the notations of all integers from `least` to `most`, without leading zeros; `None` if there are none.
pub(super) fn integers(least: i128, most: i128) -> Option<Pattern> {
    let (least, most) = (least.max(LEAST), most.min(MOST));
    if least > most {
        return None;
    }
    let mut options = Vec::new();
    if least < 0 {
        let magnitudes = naturals((-most).max(1), -least);
        options.push(Pattern::sequence([Pattern::literal("-"), magnitudes]));
    }
    if most >= 0 {
        options.push(naturals(least.max(0), most));
    }
    Some(Pattern::choice(options))
}

fn naturals(low: i128, high: i128) -> Pattern {
    let (first, last) = (low.to_string(), high.to_string());
    if first.len() == last.len() {
        return Pattern::choice(same_length(&first, &last));
    }
    let mut options = same_length(&first, &"9".repeat(first.len()));
    // The numbers of any length between.
    let (short, long) = (first.len() + 1, last.len() - 1);
    let count = |len: usize| u32::try_from(len).unwrap_or_default();
    let is_full = last.bytes().all(|digit| digit == b'9');
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
