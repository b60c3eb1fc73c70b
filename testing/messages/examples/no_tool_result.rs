use plaincall::Tool;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn main() {
    Tool::new("add", |add: Add, _| async move { add.a + add.b });
    Tool::new("add", |add: Add, _| async move { Ok(add.a + add.b) });
}
