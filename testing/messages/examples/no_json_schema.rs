use plaincall::Tool;

#[derive(serde::Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

fn main() {
    Tool::new("add", |add: Add, _| async move {
        Ok((add.a + add.b).to_string())
    });
}
