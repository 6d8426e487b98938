//! The search for circles, on crates of a few lines.

use std::path::Path;

use super::circles::{circles, folder_circles};

/// The circles of a crate, each as its files.
fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let sources = files
        .iter()
        .map(|(path, text)| (path.into(), (*text).to_owned()))
        .collect();
    let circles = circles(Path::new("lib.rs"), &sources);
    let names = |circle: super::circles::Circle| {
        let files = circle.modules.iter();
        files.map(|file| file.display().to_string()).collect()
    };
    circles.into_iter().map(names).collect()
}

#[track_caller]
fn clean(files: &[(&str, &str)]) {
    assert_eq!(found(files), Vec::<Vec<String>>::new());
}

#[test]
fn a_circle_is_found_and_shown_with_its_imports() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod outside; use a::A;"),
        ("outside.rs", "pub struct O;"),
        (
            "a.rs",
            "use crate::b::{B, other as second}; pub struct A(crate::outside::O);",
        ),
        ("b.rs", "pub struct B(crate::c::C); pub fn other() {}"),
        ("c.rs", "pub struct C; fn f() { let _ = super::a::A; }"),
    ];
    let sources = files
        .iter()
        .map(|(path, text)| (path.into(), (*text).to_owned()))
        .collect();
    let circles = circles(Path::new("lib.rs"), &sources);
    let reported: Vec<_> = circles.iter().map(ToString::to_string).collect();
    assert_eq!(
        reported,
        [
            "circle of 3 modules: a.rs, b.rs, c.rs\n  a.rs imports B, other from b.rs\n  b.rs imports C from c.rs\n  \
             c.rs imports A from a.rs\n"
        ]
    );
}

#[test]
fn folders_are_in_a_circle_although_no_files_are() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "mod one; mod two;"),
        ("a/one.rs", "use crate::b::B; pub struct One;"),
        ("a/two.rs", "pub struct Two;"),
        ("b.rs", "use crate::a::two::Two; pub struct B;"),
    ];
    clean(&files);
    let sources = files.map(|(path, text)| (path.into(), text.to_owned())).into();
    let circles = folder_circles(Path::new("lib.rs"), &sources);
    let reported: Vec<_> = circles.iter().map(ToString::to_string).collect();
    assert_eq!(
        reported,
        ["circle of 2 modules: a, b\n  a imports B from b\n  b imports Two from a\n"]
    );
}

#[test]
fn two_circles_are_two() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::a::A; pub struct B;"),
        ("c.rs", "use crate::d::D; use crate::a::A; pub struct C;"),
        ("d.rs", "use crate::c::C; pub struct D;"),
    ];
    assert_eq!(found(&files), [["a.rs", "b.rs"], ["c.rs", "d.rs"]]);
}

#[test]
fn a_parent_that_only_re_exports_is_in_no_circle() {
    clean(&[
        ("lib.rs", "mod a; pub use a::*;"),
        ("a.rs", "mod b; mod c; pub use b::B; pub(crate) use c::C; pub struct A;"),
        ("a/b.rs", "use super::A; pub struct B;"),
        // By way of the parent, and really from its sibling.
        ("a/c.rs", "use super::B; use crate::A; pub struct C;"),
    ]);
}

#[test]
fn a_parent_that_uses_what_it_re_exports_imports_it() {
    let parent = |rest: &str| format!("mod b; pub use b::B; pub struct A; {rest}");
    let child = ("a/b.rs", "use super::A; pub struct B; impl B { pub const NEW: B = B; }");
    for rest in [
        "fn f() -> B { todo!() }",
        "fn f() { B::NEW; }",
        "fn f() { println!(\"{}\", B::NEW); }",
        "fn f() { b::B::NEW; }",
        "use b::B as C;",
        "use b::*;",
    ] {
        let parent = parent(rest);
        let files = [("lib.rs", "mod a;"), ("a.rs", &parent), child];
        assert_eq!(found(&files), [["a/b.rs", "a.rs"]], "{rest}");
    }
    clean(&[("lib.rs", "mod a;"), ("a.rs", &parent("fn f(c: crate::C) {}")), child]);
}

#[test]
fn a_re_export_is_followed_to_where_the_name_is_defined() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::*;"),
        ("a.rs", "mod c; pub use c::C;"),
        ("a/c.rs", "use crate::b::B; pub struct C;"),
        ("b.rs", "use crate::C; pub struct B;"),
    ];
    assert_eq!(found(&files), [["a/c.rs", "b.rs"]]);
}

#[test]
fn the_type_that_kube_derives_belongs_to_its_spec() {
    let files = [
        ("lib.rs", "mod spec; mod crd; pub use spec::*;"),
        (
            "spec.rs",
            "#[kube(group = \"g\", kind = \"Thing\")] pub struct ThingSpec(crate::crd::Rule);",
        ),
        ("crd.rs", "use crate::Thing; pub struct Rule;"),
    ];
    assert_eq!(found(&files), [["crd.rs", "spec.rs"]]);
}

#[test]
fn tests_documentation_and_visibility_do_not_count() {
    clean(&[
        ("lib.rs", "mod a; mod b;"),
        (
            "a.rs",
            "//! See [`crate::b::B`].
             pub(in crate::b) struct A;
             /// As [`crate::b::B`].
             #[cfg(test)] mod tests { use crate::b::B; }
             #[cfg(test)] mod more;
             #[cfg(test)] use crate::b::B;
             #[cfg(all(test, unix))] fn f(b: crate::b::B) {}
             #[test] fn t() { crate::b::B; }
             impl A { #[cfg(test)] fn g(b: crate::b::B) {} }",
        ),
        ("b.rs", "pub struct B(crate::a::A);"),
    ]);
}

#[test]
fn code_that_tests_only_may_leave_out_counts() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub struct A; #[cfg(not(test))] use crate::b::B;"),
        ("b.rs", "pub struct B(crate::a::A);"),
    ];
    assert_eq!(found(&files), [["a.rs", "b.rs"]]);
}

#[test]
fn super_is_the_parent_in_both_styles_of_files_and_in_a_block() {
    for parent in ["a.rs", "a/mod.rs"] {
        let files = [
            ("lib.rs", "mod a;"),
            (parent, "mod b; mod c;"),
            ("a/b.rs", "use super::c::C; pub struct B;"),
            ("a/c.rs", "pub struct C; mod inner { use super::super::b::B; }"),
        ];
        assert_eq!(found(&files), [["a/b.rs", "a/c.rs"]], "{parent}");
    }
}

#[test]
fn a_method_and_a_variable_of_the_same_name_are_no_import() {
    clean(&[
        ("lib.rs", "mod a;"),
        (
            "a.rs",
            "mod b; pub use b::run; pub struct A;
             fn f(a: A) { let run = 1; g(run); a.run(); println!(\"{}\", a.run()); }",
        ),
        ("a/b.rs", "use super::A; pub fn run() {}"),
    ]);
}

#[test]
fn a_name_in_an_attribute_is_an_import() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        (
            "a.rs",
            "pub struct A { #[serde(default = \"crate::b::limit\")] limit: u8 }",
        ),
        ("b.rs", "use crate::a::A; pub fn limit() -> u8 { 0 }"),
    ];
    assert_eq!(found(&files), [["a.rs", "b.rs"]]);
}
