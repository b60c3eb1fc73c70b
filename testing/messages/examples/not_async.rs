use plaincall::Tool;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn main() {
    Tool::new("add", |add: Add, _| Ok((add.a + add.b).to_string()));
}
