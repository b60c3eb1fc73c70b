use plaincall_plan::CallFailure;

#[test]
fn sentences() {
    let table = [
        ("not_approved", "", "this call was not approved"),
        (
            "approval",
            "no answer",
            "the call could not be approved: no answer",
        ),
        ("timed_out", "0.02", "timed out after 20 ms"),
        ("timed_out", "60", "timed out after 60 s"),
        (
            "running",
            "x",
            "x; it still runs, and may still take effect",
        ),
        ("cancelled", "", "the tool was cancelled"),
        ("failed", "", "the tool failed"),
        ("failed", "x", "the tool failed: x"),
        (
            "unwritable",
            "E",
            "the tool ran, but its result cannot be written as text: E",
        ),
        ("no_function", "f", "the tool `f` has no function"),
    ];
    for (name, detail, expected) in table {
        let failure = CallFailure::named(name, detail);
        assert_eq!(failure.map(|it| it.to_string()).as_deref(), Some(expected));
    }
    assert_eq!(CallFailure::named("other", ""), None);
}
