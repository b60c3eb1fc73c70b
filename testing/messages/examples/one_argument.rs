use plaincall::Tool;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

async fn add(add: Add) -> plaincall::ToolResult {
    Ok((add.a + add.b).to_string())
}

fn main() {
    Tool::new(
        "add",
        |add: Add| async move { Ok((add.a + add.b).to_string()) },
    );
    Tool::new("add", add);
}
