//! Signs and values of a list of tools, which the prompt explains (`spec/prompt.md` 1).

use std::collections::BTreeSet;

use plaincall_tool::{ToolSpec, usage::UsageBody};

/// Something that the prompt explains only if a tool needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    /// A parameter or a property that may be missing.
    Optional,
    /// A default.
    Default,
    /// A choice of values or schemas.
    Choice,
    List,
    Object,
    /// An object with names that it does not list.
    OtherNames,
    Null,
    /// More than one tool.
    SeveralTools,
    /// Parameters on the line of a call in the emoji syntax.
    Line,
    OptionalOnLine,
    RestOfLine,
    /// A body with the text of one parameter.
    TextBody,
    /// A body with all parameters as JSON.
    JsonBody,
    /// A call without a body.
    NoBody,
}

pub(super) type Needs = BTreeSet<Need>;

impl Need {
    /// A value of any schema.
    pub(super) const OF_ANY: [Self; 3] = [Self::List, Self::Object, Self::Null];

    /// Adds what the usage of a tool shows.
    pub(super) fn add_usage(needs: &mut Needs, tool: &ToolSpec) {
        let usage = tool.usage();
        needs.insert(match usage.body {
            UsageBody::Nothing => Self::NoBody,
            UsageBody::Parameter(_) => Self::TextBody,
            UsageBody::Json => Self::JsonBody,
        });
        for item in &usage.line {
            needs.insert(Self::Line);
            if item.takes_rest {
                needs.insert(Self::RestOfLine);
            }
            if !item.parameter.required {
                needs.insert(Self::OptionalOnLine);
            }
        }
    }
}
