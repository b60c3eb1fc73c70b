//! `${NAME}` in a value.

/// Puts in what the variables stand for: `${NAME}`, `${env:NAME}`, `${NAME:-what else}`. A dollar sign without a brace
/// is one.
///
/// # Errors
/// Says of each variable what is wrong with it.
pub(super) fn expand(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Vec<String>> {
    let mut whole = String::new();
    let mut wrong = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        whole.push_str(before);
        let Some((inside, after)) = behind.split_once('}') else {
            wrong.push("`${` has no `}`".to_owned());
            rest = "";
            break;
        };
        rest = after;
        match value(inside, variable) {
            Ok(value) => whole.push_str(&value),
            Err(message) => wrong.push(message),
        }
    }
    whole.push_str(rest);
    if wrong.is_empty() {
        Ok(whole)
    } else {
        Err(wrong)
    }
}

fn value(inside: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (name, otherwise) = match inside.split_once(":-") {
        Some((name, otherwise)) => (name, Some(otherwise)),
        None => (inside, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    if name.is_empty() || name.contains([':', '=', '\0']) {
        return Err(format!(
            "`${{{inside}}}` means nothing here; `${{NAME}}` stands for a variable of the environment"
        ));
    }
    match (variable(name), otherwise) {
        (Some(value), None) => Ok(value),
        // As shells do it: also for a variable that is empty.
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(otherwise)) => Ok(otherwise.to_owned()),
        (None, None) => Err(format!(
            "the variable `{name}` is not set; set it, or write `${{{name}:-what else}}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::expand;

    fn check(text: &str, expected: Result<&str, &[&str]>) {
        let variable = |name: &str| match name {
            "A" => Some("one".to_owned()),
            "NONE" => Some(String::new()),
            "TRICK" => Some("${A}".to_owned()),
            _ => None,
        };
        let expanded = expand(text, &variable);
        let expected = expected.map(str::to_owned);
        let expected =
            expected.map_err(|wrong| wrong.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(expanded, expected, "{text}");
    }

    #[test]
    fn variables() {
        check("plain $A ${A}/${env:A}", Ok("plain $A one/one"));
        check(
            "${B:-two}${NONE:-three}${NONE}${A:-four}${B:-}",
            Ok("twothreeone"),
        );
        // What comes in is not looked through again.
        check("${TRICK}", Ok("${A}"));
        check(
            "${B} ${input:key} ${A",
            Err(&[
                "the variable `B` is not set; set it, or write `${B:-what else}`",
                "`${input:key}` means nothing here; `${NAME}` stands for a variable of the environment",
                "`${` has no `}`",
            ]),
        );
    }
}
