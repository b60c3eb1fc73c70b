//! What the schema of a tool says about its parameters, found out once.

use std::collections::HashMap;
use std::sync::Arc;

use plaincall_call::{EmojiShape, ExpectedParts, ExpectedValue, Shape, ToolSpec};
use serde_json::Value;

/// The shape of a tool that is called again and again. To walk through its schema for each argument takes longer than
/// all else that is done with the argument, and most arguments are plain parameters: for these the answers are kept.
#[derive(Debug)]
pub(crate) struct KnownShape {
    tool: Arc<ToolSpec>,
    root: ExpectedParts,
    parameters: HashMap<String, ExpectedValue>,
}

impl KnownShape {
    pub(crate) fn new(tool: &Arc<ToolSpec>) -> Self {
        let parameters = tool.parameters().iter().map(|parameter| {
            let expected = tool.value(&[&parameter.name]);
            (parameter.name.clone(), expected)
        });
        Self {
            root: tool.parts(&[]),
            parameters: parameters.collect(),
            tool: Arc::clone(tool),
        }
    }
}

impl Shape for KnownShape {
    fn value(&self, place: &[&str]) -> ExpectedValue {
        let known = match place {
            [parameter] => self.parameters.get(*parameter).copied(),
            _ => None,
        };
        known.unwrap_or_else(|| self.tool.value(place))
    }

    fn parts(&self, place: &[&str]) -> ExpectedParts {
        if place.is_empty() {
            self.root
        } else {
            self.tool.parts(place)
        }
    }

    fn way(&self, place: &[&str]) -> Vec<ExpectedParts> {
        match place {
            [_] => vec![self.root],
            _ => self.tool.way(place),
        }
    }

    fn spells(&self, place: &[&str]) -> bool {
        self.tool.spells(place)
    }

    fn read(&self, place: &[&str], text: &str) -> Option<Value> {
        self.tool.read(place, text)
    }

    fn emoji(&self, raw_args: &str) -> EmojiShape {
        self.tool.emoji(raw_args)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plaincall_call::{Shape as _, read_tool_definitions};

    use super::KnownShape;

    #[test]
    fn it_says_what_the_tool_says() {
        let check = |parameters: &str, places: &[&[&str]]| {
            let tools = format!(r#"[{{"function":{{"name":"tool","parameters":{parameters}}}}}]"#);
            let tool = Arc::new(read_tool_definitions(&tools).unwrap().remove(0));
            let known = KnownShape::new(&tool);
            for place in places {
                assert_eq!(
                    known.value(place),
                    tool.value(place),
                    "{parameters} {place:?}"
                );
                assert_eq!(
                    known.parts(place),
                    tool.parts(place),
                    "{parameters} {place:?}"
                );
                assert_eq!(known.way(place), tool.way(place), "{parameters} {place:?}");
            }
        };
        let places: &[&[&str]] = &[
            &[],
            &["a"],
            &["b"],
            &["x"],
            &["0"],
            &["a", "0"],
            &["b", "c"],
        ];
        for parameters in [
            r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":["string","null"]}}}"#,
            r#"{"type":"object","properties":{"a":{"type":"integer"}},"patternProperties":{"^x":{"type":"string"}}}"#,
            r#"{"type":"object","properties":{"b":{"type":"object"}},"additionalProperties":true,"maxProperties":2}"#,
            r#"{"anyOf":[{"type":"object","properties":{"a":{"const":1}}},{"type":"object","properties":{"b":{}}}]}"#,
        ] {
            check(parameters, places);
        }
    }
}
