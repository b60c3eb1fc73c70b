//! No digit is lost: the value of a text under all kinds of schemas, computed with decimals that are strings.

use plaincall_tool::{Arguments, ToolSpec, bind_arguments};
use serde_json::{Value, json};

/// A decimal number: sign, digits without zeros at either end, and the power of ten of the last digit. Zero has no
/// digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    is_negative: bool,
    digits: String,
    power: i64,
}

impl Exact {
    /// `[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?`, where the digits on one side of a point may be missing.
    fn read(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (mantissa, power) = match unsigned.find(['e', 'E']) {
            Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
            None => (unsigned, None),
        };
        let (whole, fraction) = match mantissa.find('.') {
            Some(at) => (&mantissa[..at], Some(&mantissa[at + 1..])),
            None => (mantissa, None),
        };
        let are_digits =
            |text: &str| !text.is_empty() && text.chars().all(|one| one.is_ascii_digit());
        if mantissa == "." || !are_digits(&mantissa.replacen('.', "", 1)) {
            return None;
        }
        let is_power = |power: &str| are_digits(power.strip_prefix(['+', '-']).unwrap_or(power));
        if !power.is_none_or(is_power) {
            return None;
        }
        let fraction = fraction.unwrap_or("");
        let places = i64::try_from(fraction.len()).expect("a short text");
        // Such a power exceeds every number that is kept, regardless of the digits.
        let far = 1_000_000;
        let power = power.map_or(0, |power| {
            let over = if power.starts_with('-') { -far } else { far };
            power
                .parse()
                .map_or(over, |power: i64| power.clamp(-far, far))
        });
        let mut power = power - places;
        let mut digits = format!("{whole}{fraction}")
            .trim_start_matches('0')
            .to_owned();
        while digits.ends_with('0') {
            digits.pop();
            power += 1;
        }
        let is_zero = digits.is_empty();
        Some(Self {
            is_negative: text.starts_with('-') && !is_zero,
            power: if is_zero { 0 } else { power },
            digits,
        })
    }

    /// Returns the 64-bit integer with this value.
    fn whole(&self) -> Option<i128> {
        let zeros = usize::try_from(self.power)
            .ok()
            .filter(|zeros| *zeros < 25)?;
        let text = format!("0{}{}", self.digits, "0".repeat(zeros));
        let size: i128 = text.parse().ok()?;
        let value = if self.is_negative { -size } else { size };
        (i128::from(i64::MIN)..=i128::from(u64::MAX))
            .contains(&value)
            .then_some(value)
    }

    /// Returns whether a 64-bit float, written as JSON, has all of these digits.
    fn is_kept_as_float(&self) -> bool {
        let sign = if self.is_negative { "-" } else { "" };
        let text = format!("{sign}0{}e{}", self.digits, self.power);
        let float: f64 = text.parse().expect("a number");
        float.is_finite() && Self::read(&Value::from(float).to_string()).as_ref() == Some(self)
    }
}

/// Returns a text without blank lines at its end and without blanks around it.
fn line(text: &str) -> &str {
    let mut text = text;
    while let Some((above, last)) = text.rsplit_once('\n')
        && last.trim_matches([' ', '\t']).is_empty()
    {
        text = above.strip_suffix('\r').unwrap_or(above);
    }
    text.trim_matches([' ', '\t'])
}

/// Returns the value of a text where a number is expected; `None` if it does not fit.
fn number(text: &str) -> Option<Exact> {
    let exact = Exact::read(line(text))?;
    (exact.whole().is_some() || exact.is_kept_as_float()).then_some(exact)
}

/// Returns the value of a text without a schema, unless it is a string: `-?(0|[1-9][0-9]*)(\.[0-9]+)?`, but not `-0`
/// or `-0.0`.
fn plain(text: &str) -> Option<Exact> {
    let word = text.trim_matches([' ', '\t']);
    let unsigned = word.strip_prefix('-').unwrap_or(word);
    let is_plain = unsigned
        .chars()
        .all(|one| one.is_ascii_digit() || one == '.')
        && !unsigned.starts_with('.')
        && !unsigned.ends_with('.')
        && (!unsigned.starts_with('0') || unsigned == "0" || unsigned.starts_with("0."));
    let exact = Exact::read(word).filter(|_| is_plain)?;
    if word.starts_with('-') && exact.digits.is_empty() {
        return None;
    }
    let is_kept = if word.contains('.') {
        exact.is_kept_as_float()
    } else {
        exact.whole().is_some()
    };
    is_kept.then_some(exact)
}

/// Returns the value of a text beside a string, unless it is a string: a number in its JSON spelling.
fn canonical(text: &str) -> Option<Exact> {
    let fraction = text.split_once('.').map(|(_, fraction)| fraction);
    let is_short = fraction.is_none_or(|fraction| fraction == "0" || !fraction.ends_with('0'));
    if text == "-0.0" {
        return Exact::read(text);
    }
    plain(text).filter(|_| is_short && line(text) == text)
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Number(Exact),
    Text(String),
    Wrong,
}

fn found(value: &Value) -> Found {
    match value {
        Value::Number(number) => {
            Found::Number(Exact::read(&number.to_string()).expect("a number in JSON"))
        }
        Value::String(text) => Found::Text(text.clone()),
        other => panic!("neither a number nor a text: {other}"),
    }
}

fn tool(schema: &Value) -> ToolSpec {
    ToolSpec::new("t")
        .parameters_from_schema(&json!({"properties": {"x": schema}}))
        .expect("a schema")
}

fn read(tool: &ToolSpec, text: &str) -> Option<Value> {
    let arguments = Arguments::from_pairs_for(tool, [("x", text)]).expect("one argument");
    let bound = bind_arguments(tool, &arguments).ok()?;
    Some(bound.to_value()["x"].clone())
}

/// A schema, and the value of a text under it.
type Rule = (Value, fn(&str) -> Found);

fn or_wrong(exact: Option<Exact>) -> Found {
    exact.map_or(Found::Wrong, Found::Number)
}

fn or_text(exact: Option<Exact>, text: &str) -> Found {
    exact.map_or_else(|| Found::Text(text.to_owned()), Found::Number)
}

fn rules() -> Vec<Rule> {
    let whole: fn(&str) -> Found = |text| {
        let exact = Exact::read(line(text));
        or_wrong(exact.filter(|exact| exact.whole().is_some()))
    };
    let any: fn(&str) -> Found = |text| or_wrong(number(text));
    vec![
        (json!({"type": "integer"}), whole),
        (json!({"type": ["integer", "null"]}), whole),
        (json!({"type": "number"}), any),
        (json!({"type": ["number", "null"]}), any),
        (
            json!({"anyOf": [{"type": "number"}, {"type": "boolean"}]}),
            any,
        ),
        (json!({"type": ["string", "number"]}), |text| {
            or_text(canonical(text), text)
        }),
        (
            json!({"oneOf": [{"type": "integer"}, {"type": "string"}]}),
            |text| or_text(canonical(text).filter(|_| !text.contains('.')), text),
        ),
        (json!({"type": "boolean"}), |_| Found::Wrong),
        (json!({}), |text| or_text(plain(text), text)),
        (json!(true), |text| or_text(plain(text), text)),
    ]
}

/// Tools with one parameter, and the value of a text for each.
#[derive(Debug)]
pub struct Readers {
    tools: Vec<(ToolSpec, Rule)>,
    list: ToolSpec,
}

impl Readers {
    /// Returns all of them.
    pub fn new() -> Self {
        let of = |rule: Rule| (tool(&rule.0), rule);
        Self {
            tools: rules().into_iter().map(of).collect(),
            list: tool(&json!({"type": "array", "items": {"type": "number"}})),
        }
    }

    /// Reads a text with all tools.
    ///
    /// # Errors
    /// Returns an error with the actual and the expected value.
    pub fn check(&self, text: &str) -> Result<(), String> {
        for (tool, (schema, rule)) in &self.tools {
            let value = read(tool, text).map_or(Found::Wrong, |value| found(&value));
            let expected = rule(text);
            if value != expected {
                return Err(format!(
                    "{text:?} by {schema} is {value:?}, not {expected:?}"
                ));
            }
        }
        self.check_json(text)
    }

    /// The same inside JSON text, with the notation of JSON.
    fn check_json(&self, text: &str) -> Result<(), String> {
        let word = text.trim_matches([' ', '\t']);
        let Some(exact) = Exact::read(word) else {
            return Ok(());
        };
        let digits = word.strip_prefix('-').unwrap_or(word);
        let second = digits.chars().nth(1);
        if digits.starts_with('+')
            || digits.starts_with('.')
            || digits
                .split(['e', 'E'])
                .next()
                .is_some_and(|one| one.ends_with('.'))
            || (digits.starts_with('0') && second.is_some_and(|one| one.is_ascii_digit()))
        {
            return Ok(());
        }
        let is_kept = exact.is_kept_as_float()
            || (exact.whole().is_some() && !word.contains(['.', 'e', 'E']));
        let value = read(&self.list, &format!("[{word}]"));
        let value = value.map_or(Found::Wrong, |value| found(&value[0]));
        let expected = or_wrong(Some(exact).filter(|_| is_kept));
        if value == expected {
            Ok(())
        } else {
            Err(format!("[{word}] is {value:?}, not {expected:?}"))
        }
    }
}

impl Default for Readers {
    fn default() -> Self {
        Self::new()
    }
}
