//! Schemas and calls for them, created from bytes: every keyword that affects parsing; calls that are valid, nearly
//! valid and invalid; every order of pointers.

use serde_json::{Map, Value, json};

/// Keys of members: plain ones, one that decides between forms, and those that resemble an index or contain a blank
/// or an escape.
const KEYS: &[&str] = &[
    "a", "b", "kind", "0", "1", "2", "007", "-1", "x y", "x/y", "~",
];
/// Texts that some type converts.
const TEXTS: &[&str] = &[
    "x",
    "5",
    "007",
    "null",
    "true",
    "",
    " ",
    " a ",
    "1.50",
    "-0",
    "a\nb\"",
    "nul",
    "[1]",
    "{\"a\": 1}",
    "18446744073709551616",
    "3.14159265358979323846",
    "\u{1}é𝄞\\",
    "!!!ARG:a",
    "circle",
];
/// Spellings of numbers.
const NUMBERS: &[&str] = &[
    "5", "0", "-17", "+5", "005", "1e3", "1.0", "1.50", " 7\t", "-0",
];

/// Decisions from bytes. After the last byte, each decision is the first option.
#[derive(Debug)]
pub struct Choices<'d> {
    bytes: std::slice::Iter<'d, u8>,
}

impl<'d> Choices<'d> {
    /// Creates decisions from these bytes.
    pub fn new(bytes: &'d [u8]) -> Self {
        Self {
            bytes: bytes.iter(),
        }
    }

    /// Returns a number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        let byte = self.bytes.next().map_or(0, |byte| usize::from(*byte));
        byte % count.max(1)
    }

    /// Returns `true` once in `count` times.
    fn once_in(&mut self, count: usize) -> bool {
        self.below(count) + 1 == count
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Returns a schema of arguments with the parameters `p`, `q` and `r`.
pub fn schema(choices: &mut Choices<'_>) -> Value {
    let mut root = object(choices, 3, &["p", "q", "r"]);
    root["$defs"] = json!({"n": form(choices, 2), "m": form(choices, 1)});
    if choices.once_in(8) {
        let forms: Vec<Value> = ["add", "set"]
            .iter()
            .map(|name| {
                let mut form = object(choices, 2, &["p", "q", "r"]);
                form["properties"]["op"] = json!({"const": name});
                form
            })
            .collect();
        root[choices.one(&["anyOf", "oneOf"])] = forms.into();
    }
    root
}

fn object(choices: &mut Choices<'_>, depth: usize, keys: &[&str]) -> Value {
    let mut properties = Map::new();
    for _ in 0..=choices.below(3) {
        let key = choices.one(keys).to_owned();
        properties.insert(key, form(choices, depth.saturating_sub(1)));
    }
    let mut required: Vec<Value> = Vec::new();
    for key in properties.keys() {
        if choices.once_in(3) {
            required.push(key.as_str().into());
        }
    }
    let mut schema = json!({"properties": properties});
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    if !choices.once_in(4) {
        schema["type"] = "object".into();
    }
    match choices.below(6) {
        0 | 1 => schema["additionalProperties"] = false.into(),
        2 => schema["additionalProperties"] = true.into(),
        3 => schema["additionalProperties"] = form(choices, depth.saturating_sub(1)),
        _ => {}
    }
    match choices.below(10) {
        8 => schema["patternProperties"] = json!({"^[0-9]+$": form(choices, 0)}),
        9 => schema["patternProperties"] = json!({"^(a|x)": form(choices, 0)}),
        6 => schema["patternProperties"] = json!({"^(?=a|x)": form(choices, 0)}),
        7 => schema["maxProperties"] = 2.into(),
        _ => {}
    }
    schema
}

fn limited_string(choices: &mut Choices<'_>) -> Value {
    match choices.below(6) {
        0 | 1 => json!({"type": "string", "maxLength": 2}),
        2 => json!({"type": "string", "minLength": 2, "maxLength": 8}),
        3 => json!({"type": "string", "pattern": "^[a-zé\\n]+(-\\d{2})?$"}),
        4 => json!({"type": ["string", "null"], "minLength": 1, "pattern": "[^!-]$|^\\W"}),
        _ => json!({"type": ["string", "integer"], "maxLength": 3}),
    }
}

/// Returns any schema of at most this depth.
fn form(choices: &mut Choices<'_>, depth: usize) -> Value {
    let leaves = 20;
    let kind = choices.below(if depth == 0 { leaves } else { 34 });
    let below = depth.saturating_sub(1);
    match kind {
        0 | 1 => json!({"type": "string"}),
        2 => json!({"type": "integer"}),
        3 => json!({"type": "number"}),
        4 => json!({"type": "boolean"}),
        5 => json!({"type": "null"}),
        6 => json!({}),
        7 => json!(true),
        8 => json!({"type": ["string", "null"]}),
        9 => {
            json!({"type": choices.one(&[["integer", "string"], ["number", "null"], ["array", "object"], ["object", "null"], ["string", "array"]])})
        }
        10 => json!({"enum": choices.one(&[&["a", "5"][..], &["circle", "null"]])}),
        11 => json!({"enum": [1, "1", null, 2.5]}),
        12 => json!({"const": choices.one(&["x", "5", "circle"])}),
        13 => json!({"const": 5}),
        14 => limited_string(choices),
        15 => json!({"type": "integer", "minimum": 1}),
        16 => json!({"$ref": "#/$defs/n"}),
        17 => json!({"$ref": choices.one(&["#", "#/$defs/m"])}),
        18 => {
            json!({"type": choices.one(&["integer", "string", "array", "object"]), "nullable": true})
        }
        19 => json!({"type": choices.one(&["array", "object"])}),
        20..=22 => object(choices, depth, KEYS),
        23 => json!({"type": "array", "items": form(choices, below)}),
        24 => {
            let mut list = json!({"type": "array", "items": form(choices, below)});
            list["maxItems"] = (choices.below(2) + 1).into();
            list
        }
        25 => {
            let first: Vec<Value> = (0..=choices.below(2))
                .map(|_| form(choices, below))
                .collect();
            let (many, rest) =
                choices.one(&[("prefixItems", "items"), ("items", "additionalItems")]);
            let mut tuple = json!({"type": "array", (many): first});
            match choices.below(3) {
                0 => tuple[rest] = false.into(),
                1 => tuple[rest] = form(choices, 0),
                _ => {}
            }
            tuple
        }
        26 => json!({"type": "object", "additionalProperties": form(choices, below)}),
        27 => {
            let forms: Vec<Value> = ["circle", "label", "none"]
                .iter()
                .take(2 + choices.below(2))
                .map(|name| {
                    let mut form = object(choices, depth, &["a", "b"]);
                    form["properties"]["kind"] = json!({"const": name});
                    if !choices.once_in(4) {
                        form["required"] = json!(["kind"]);
                    }
                    form
                })
                .collect();
            json!({(choices.one(&["anyOf", "oneOf"])): forms})
        }
        28 => json!({"anyOf": [form(choices, below), {"type": "null"}]}),
        29 | 30 => {
            json!({(choices.one(&["anyOf", "oneOf"])): [form(choices, below), form(choices, below)]})
        }
        31 => json!({"allOf": [form(choices, below), form(choices, below)]}),
        32 => {
            let mut both = json!({"type": ["array", "object"], "items": form(choices, below)});
            if choices.once_in(2) {
                both["properties"] = json!({"a": form(choices, below), "0": form(choices, below)});
            }
            both
        }
        _ => {
            let mut with = form(choices, below);
            if let Value::Object(keywords) = &mut with {
                keywords.insert("nullable".to_owned(), true.into());
            }
            with
        }
    }
}

/// Returns pairs of pointer and text that may be valid for the schema.
pub fn call(schema: &Value, choices: &mut Choices<'_>) -> Vec<(String, String)> {
    let value = sample(schema, schema, choices, 6);
    let mut pairs = Vec::new();
    if let Value::Object(members) = &value {
        for (key, member) in members {
            write(&escaped(key), member, choices, &mut pairs);
        }
    }
    for _ in 0..3 {
        if !choices.once_in(6) {
            break;
        }
        spoil(choices, &mut pairs);
    }
    match choices.below(5) {
        0 | 1 => {}
        2 => pairs.reverse(),
        3 => {
            let at = choices.below(pairs.len());
            pairs.rotate_left(at);
        }
        _ => {
            for at in 1..pairs.len() {
                let other = choices.below(at + 1);
                pairs.swap(at, other);
            }
        }
    }
    pairs
}

/// Returns a value that a schema may allow: mostly its first form.
pub fn sample(schema: &Value, root: &Value, choices: &mut Choices<'_>, depth: usize) -> Value {
    let Value::Object(keywords) = schema else {
        return anything(choices);
    };
    if depth == 0 {
        return choices.one(TEXTS).into();
    }
    if keywords.get("nullable").is_some() && choices.once_in(3) {
        return Value::Null;
    }
    if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(reference.trim_start_matches('#'));
        return sample(target.unwrap_or(&Value::Null), root, choices, depth - 1);
    }
    for name in ["anyOf", "oneOf", "allOf"] {
        if let Some(forms) = keywords.get(name).and_then(Value::as_array) {
            let form = &forms[choices.below(forms.len())];
            let mut value = sample(form, root, choices, depth - 1);
            if name == "allOf" || keywords.contains_key("properties") {
                for other in forms.iter().filter(|_| name == "allOf").chain([schema]) {
                    let mut other = other.clone();
                    if let Value::Object(other) = &mut other {
                        other.retain(|key, _| !["anyOf", "oneOf", "allOf"].contains(&key.as_str()));
                    }
                    let more = sample(&other, root, choices, depth - 1);
                    if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
                        for (key, member) in more {
                            all.entry(key).or_insert(member);
                        }
                    }
                }
            }
            return value;
        }
    }
    if let Some(constant) = keywords.get("const") {
        return constant.clone();
    }
    if let Some(values) = keywords.get("enum").and_then(Value::as_array) {
        return values[choices.below(values.len())].clone();
    }
    let kind = match keywords.get("type") {
        Some(Value::String(name)) => name.as_str(),
        Some(Value::Array(names)) => names[choices.below(names.len())].as_str().unwrap_or(""),
        _ if keywords.contains_key("properties") => "object",
        _ => "",
    };
    match kind {
        "string" => choices.one(TEXTS).into(),
        "integer" => (i64::try_from(choices.below(5)).unwrap_or(0)).into(),
        "number" => choices.one(&[0.5, 1.0, -3.25]).into(),
        "boolean" => (choices.below(2) == 0).into(),
        "null" => Value::Null,
        "array" => list(keywords, root, choices, depth),
        "object" => members(keywords, root, choices, depth),
        _ => anything(choices),
    }
}

fn anything(choices: &mut Choices<'_>) -> Value {
    match choices.below(4) {
        0 => choices.one(TEXTS).into(),
        1 => json!({"a": choices.one(TEXTS), "0": 5}),
        2 => json!([choices.one(TEXTS), 5]),
        _ => json!(7),
    }
}

fn list(
    keywords: &Map<String, Value>,
    root: &Value,
    choices: &mut Choices<'_>,
    depth: usize,
) -> Value {
    let first = keywords.get("prefixItems").or(keywords.get("items"));
    let tuple = first.and_then(Value::as_array);
    let count = tuple.map_or(0, Vec::len) + choices.below(3);
    let item = |index: usize| {
        let named = tuple.and_then(|items| items.get(index));
        let rest = keywords.get(if keywords.contains_key("prefixItems") {
            "items"
        } else if tuple.is_some() {
            "additionalItems"
        } else {
            "items"
        });
        named.or(rest).cloned().unwrap_or(Value::Bool(true))
    };
    (0..count)
        .map(item)
        .filter(|item| *item != Value::Bool(false))
        .map(|item| sample(&item, root, choices, depth - 1))
        .collect()
}

fn members(
    keywords: &Map<String, Value>,
    root: &Value,
    choices: &mut Choices<'_>,
    depth: usize,
) -> Value {
    let mut found = Map::new();
    let named = keywords.get("properties").and_then(Value::as_object);
    let required = keywords.get("required").and_then(Value::as_array);
    for (key, member) in named.into_iter().flatten() {
        let is_required = required.is_some_and(|names| names.contains(&key.as_str().into()));
        if is_required || !choices.once_in(3) {
            found.insert(key.clone(), sample(member, root, choices, depth - 1));
        }
    }
    if let Some(rest) = keywords.get("additionalProperties")
        && *rest != Value::Bool(false)
    {
        for _ in 0..choices.below(3) {
            let key = choices.one(KEYS).to_owned();
            let member = sample(rest, root, choices, depth - 1);
            found.entry(key).or_insert(member);
        }
    }
    Value::Object(found)
}

/// Appends the texts of a value: parts by pointers, or JSON.
fn write(
    pointer: &str,
    value: &Value,
    choices: &mut Choices<'_>,
    pairs: &mut Vec<(String, String)>,
) {
    let by_parts = !choices.once_in(5);
    match value {
        Value::Array(items) if by_parts && !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                write(&format!("{pointer}/{index}"), item, choices, pairs);
            }
        }
        Value::Object(members) if by_parts && !members.is_empty() => {
            for (key, member) in members {
                write(
                    &format!("{pointer}/{}", escaped(key)),
                    member,
                    choices,
                    pairs,
                );
            }
        }
        Value::Array(_) | Value::Object(_) if choices.once_in(2) => {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            pairs.push((pointer.to_owned(), text));
        }
        Value::String(text) => pairs.push((pointer.to_owned(), text.clone())),
        other => pairs.push((pointer.to_owned(), other.to_string())),
    }
}

/// Changes one part into another.
fn spoil(choices: &mut Choices<'_>, pairs: &mut Vec<(String, String)>) {
    let at = choices.below(pairs.len());
    let text = match choices.below(2) {
        0 => choices.one(TEXTS),
        _ => choices.one(NUMBERS),
    };
    match choices.below(6) {
        0 | 1 if !pairs.is_empty() => text.clone_into(&mut pairs[at].1),
        2 if !pairs.is_empty() => {
            let pair = pairs.remove(at);
            pairs.push(pair);
        }
        3 if !pairs.is_empty() => {
            let pointer = format!("{}/{}", pairs[at].0, escaped(choices.one(KEYS)));
            pairs[at].0 = pointer;
        }
        4 if !pairs.is_empty() => {
            let (above, _) = pairs[at].0.rsplit_once('/').unwrap_or(("p", ""));
            let pointer = format!("{above}/{}", escaped(choices.one(KEYS)));
            pairs.push((pointer, text.to_owned()));
        }
        _ => {
            let name = choices.one(&["p", "q", "r", "op", "no"]);
            let mut pointer = name.to_owned();
            for _ in 0..choices.below(3) {
                pointer.push('/');
                pointer.push_str(&escaped(choices.one(KEYS)));
            }
            pairs.push((pointer, text.to_owned()));
        }
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
