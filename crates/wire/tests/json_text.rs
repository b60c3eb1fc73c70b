//! JSON texts in their exact form.

use plaincall_wire::write;

fn check(text: &str) {
    assert_eq!(write(text), serde_json::to_string(text).expect("JSON"));
}

#[test]
fn texts_are_written_as_everybody_writes_them() {
    // Every character below 300, alone and at each position of a word.
    for c in (0..300).filter_map(char::from_u32) {
        for place in 0..20 {
            check(&format!(
                "{}{c}{}",
                "x".repeat(place),
                "é".repeat(20 - place)
            ));
            check(&format!("{}{c}{c}", "\u{1F600}".repeat(place)));
        }
    }
}

#[test]
fn lists_and_words() {
    assert_eq!(write(&vec![Some(1_u64), None]), "[1,null]");
    assert_eq!(write(&Vec::<bool>::new()), "[]");
    assert_eq!(write(&(true, false).0), "true");
}
