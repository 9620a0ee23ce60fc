use super::warning;

#[test]
fn a_warning_is_the_text_of_its_header() {
    assert_eq!(warning(r#"299 - "use gatehouse.dev/v1""#).as_deref(), Some("use gatehouse.dev/v1"));
    assert_eq!(warning(r#"299 - "a \"b\"""#).as_deref(), Some(r#"a "b""#));
}
