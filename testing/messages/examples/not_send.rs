use std::rc::Rc;

use plaincall::Tool;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn main() {
    Tool::new("add", |add: Add, _| async move {
        let sum = Rc::new(add.a + add.b);
        tokio::task::yield_now().await;
        Ok(sum.to_string())
    });
}
