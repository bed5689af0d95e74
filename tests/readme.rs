//! The README says what the program says.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

const BEGIN: &str = "<!-- settings: made by `nomina config --markdown` -->\n";
const END: &str = "<!-- end of settings -->";

#[test]
fn the_settings_table_is_that_of_the_program() {
    let readme = include_str!("../README.md");
    let (_, rest) = readme.split_once(BEGIN).unwrap();
    let (table, _) = rest.split_once(END).unwrap();
    assert_eq!(table.trim(), nomina::config::markdown().trim());
}
