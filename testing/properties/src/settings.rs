//! Settings of a model and fields of a request, made of the fuzzer's bytes.

use plaincall_gateway::{ArgumentMode, Markers, ModelSettings};
use plaincall_syntax::Dialect;
use serde_json::{Value, json};

/// Returns the settings that a byte selects.
pub(crate) fn settings(byte: u8) -> ModelSettings {
    let bit = |place: u8| byte >> place & 1 == 1;
    let mut settings = ModelSettings::default();
    settings.dialect = match byte & 3 {
        0 | 1 => Dialect::block(),
        2 => Dialect::emoji(),
        _ => Dialect::block().start("<<").end("<</").arg("<:"),
    };
    if bit(2) {
        settings.markers = Markers::Keyed;
    }
    if bit(3) {
        settings.arguments = ArgumentMode::Stream;
    }
    match (byte >> 4) & 3 {
        0 | 1 => {}
        2 => settings.dialect = settings.dialect.without_reasoning(),
        _ => settings.dialect = settings.dialect.for_reply().in_reasoning(),
    }
    settings.repair_rounds = u32::from(byte >> 6);
    settings
}

/// Returns the fields besides the tools that a byte selects.
pub(crate) fn fields(byte: u8) -> Value {
    let mut fields = match byte & 7 {
        0..=2 => json!({}),
        3 => json!({"tool_choice": "none"}),
        4 => json!({"tool_choice": "required"}),
        5 => json!({"tool_choice": {"type": "function", "function": {"name": "now"}}}),
        6 => json!({"parallel_tool_calls": false}),
        _ => json!({"response_format": {"type": "json_object"}}),
    };
    if byte >> 3 & 3 == 3 {
        fields["stop"] = json!(["x"]);
    }
    if byte >> 5 & 1 == 1 {
        fields["stream_options"] = json!({"include_usage": true});
    }
    fields
}
