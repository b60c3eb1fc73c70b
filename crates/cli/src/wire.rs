//! A document in its wire form, with what the tools' definitions add to it.

use plaincall_call::{Document, Segment, Syntax, ToolCall, bind};
use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use crate::tools::Tools;
use crate::translate::sentences;

/// A document as `parse` prints it. With definitions, a call of the emoji syntax also has `arguments`, or
/// `argumentsError` (`spec/emoji.md` 6).
pub(crate) struct Wire<'a> {
    pub(crate) document: &'a Document,
    pub(crate) tools: Option<&'a Tools>,
}

impl Serialize for Wire<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(tools) = self.tools else {
            return self.document.serialize(serializer);
        };
        let segments: Vec<WireSegment<'_>> = self
            .document
            .segments
            .iter()
            .map(|segment| WireSegment { segment, tools })
            .collect();
        let mut fields = serializer.serialize_struct("Document", 3)?;
        fields.serialize_field("syntax", &self.document.syntax.map(Syntax::name))?;
        fields.serialize_field("segments", &segments)?;
        fields.serialize_field("diagnostics", &self.document.diagnostics)?;
        fields.end()
    }
}

struct WireSegment<'a> {
    segment: &'a Segment,
    tools: &'a Tools,
}

impl Serialize for WireSegment<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Segment::Call(call) = self.segment else {
            return self.segment.serialize(serializer);
        };
        if call.syntax == Syntax::Block {
            return self.segment.serialize(serializer);
        }
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("type", "call")?;
        fields.serialize_entry("span", &(call.span.start, call.span.end))?;
        fields.serialize_entry("termination", call.termination.name())?;
        fields.serialize_entry(
            "call",
            &Bound {
                call,
                tools: self.tools,
            },
        )?;
        fields.end()
    }
}

/// A call of the emoji syntax, held against the definition of its tool.
struct Bound<'a> {
    call: &'a ToolCall,
    tools: &'a Tools,
}

impl Serialize for Bound<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { call, tools } = self;
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("tool_name", &call.name)?;
        fields.serialize_entry("raw_args", call.raw_args().unwrap_or_default())?;
        fields.serialize_entry("body", call.body().unwrap_or_default())?;
        match tools.find(&call.name) {
            None => fields.serialize_entry(
                "argumentsError",
                &format!("there is no tool with the name `{}`", call.name),
            )?,
            Some(tool) => match bind(tool, call) {
                Ok(arguments) => fields.serialize_entry("arguments", &arguments)?,
                Err(problems) => {
                    fields.serialize_entry("argumentsError", &sentences(&problems))?;
                }
            },
        }
        fields.end()
    }
}
