//! What a source names: each path that `use` brings in or that code writes out, and the words `async` and `await`.
//!
//! Guarantees: groups, renames and globs of `use` are seen through, a name that `use` brought in is followed, and the
//! arguments of macros are looked into. What is compiled for tests alone is left out.
//! Never: follows a type alias, a re-export or the type of a value.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::slice::Iter;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The names between the `::`. A glob ends with `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(Vec<String>);

impl Name {
    /// The names between the `::`.
    pub fn parts(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("::"))
    }
}

impl Name {
    /// Whether `wanted` is in it, somewhere, or behind the glob that it ends with.
    pub fn has(&self, wanted: &str) -> bool {
        let wanted: Vec<_> = wanted.split("::").collect();
        let is_at = |parts: &[String]| {
            let same = parts.iter().zip(&wanted).take_while(|(part, wanted)| part == *wanted).count();
            same == wanted.len() || (same > 0 && parts.get(same).is_some_and(|part| part == "*"))
        };
        (0..self.0.len()).any(|start| is_at(&self.0[start..]))
    }
}

/// What a source gives others by `pub use`: each name and the path that it stands for.
pub fn given_on(text: &str) -> BTreeMap<String, Vec<String>> {
    let Reader { mut imported, given_on, .. } = read(text);
    imported.retain(|name, _| given_on.contains(name));
    imported
}

fn read(text: &str) -> Reader {
    let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("no Rust: {error}: {text:.200}"));
    let mut reader = Reader::default();
    reader.read(tokens);
    reader
}

/// All that a source names, with what `use` brought in written out.
pub fn of(text: &str) -> Vec<Name> {
    let Reader { mut names, imported, .. } = read(text);
    for name in &mut names {
        // What is renamed in a circle, as `use a as b; use b as a;`, is not followed for ever.
        for _ in 0..imported.len() {
            match imported.get(&name.0[0]) {
                Some(path) if path[0] != name.0[0] => drop(name.0.splice(..1, path.iter().cloned())),
                _ => break,
            }
        }
    }
    names
}

#[derive(Default)]
struct Reader {
    names: Vec<Name>,
    /// What each name stands for that `use` brought in.
    imported: BTreeMap<String, Vec<String>>,
    /// Those of them that a `pub use` brought in.
    given_on: BTreeSet<String>,
    /// What comes next is public.
    is_public: bool,
}

impl Reader {
    fn read(&mut self, tokens: TokenStream) {
        let all: Vec<_> = tokens.into_iter().collect();
        let mut rest = all.iter();
        while let Some(token) = rest.next() {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => skip_what_is_for_tests(&mut rest),
                // The parentheses of `pub(crate)`.
                TokenTree::Group(group) if self.is_public && group.delimiter() == Delimiter::Parenthesis => {
                    continue;
                }
                TokenTree::Group(group) => self.read(group.stream()),
                TokenTree::Ident(word) if word == "pub" => {
                    self.is_public = true;
                    continue;
                }
                TokenTree::Ident(word) => self.word(&word.to_string(), &mut rest),
                _ => {}
            }
            self.is_public = false;
        }
    }

    fn word(&mut self, word: &str, rest: &mut Iter<TokenTree>) {
        let next = rest.as_slice().first();
        let is_extern_crate = word == "crate" && matches!(next, Some(TokenTree::Ident(_)));
        // `use<'a>` says which lifetimes a type captures.
        let is_use = word == "use" && !next.is_some_and(|next| is(next, '<'));
        if is_use || is_extern_crate {
            return self.import(rest, &[]);
        }
        let mut path = vec![word.to_owned()];
        while let [first, second, TokenTree::Ident(next), ..] = rest.as_slice()
            && is(first, ':')
            && is(second, ':')
        {
            path.push(next.to_string());
            rest.nth(2);
        }
        if path.len() > 1 || ["async", "await"].contains(&word) {
            self.names.push(Name(path));
        }
    }

    /// One tree of a `use`, and the comma or semicolon behind it.
    fn import(&mut self, rest: &mut Iter<TokenTree>, before: &[String]) {
        let (mut path, mut name, mut is_group) = (before.to_vec(), None, false);
        while let Some(token) = rest.next() {
            match token {
                TokenTree::Ident(word) if word == "as" => name = rest.next().map(ToString::to_string),
                TokenTree::Ident(word) if word == "self" && !path.is_empty() => {}
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Punct(punct) if punct.as_char() == '*' => path.push("*".to_owned()),
                TokenTree::Group(group) => {
                    is_group = true;
                    let trees: Vec<_> = group.stream().into_iter().collect();
                    let mut trees = trees.iter();
                    while !trees.as_slice().is_empty() {
                        self.import(&mut trees, &path);
                    }
                }
                token if is(token, ',') || is(token, ';') => break,
                _ => {}
            }
        }
        if let (Some(last), false) = (path.last(), is_group) {
            let name = name.unwrap_or_else(|| last.clone());
            if self.is_public {
                self.given_on.insert(name.clone());
            }
            self.imported.insert(name, path.clone());
            self.names.push(Name(path));
        }
    }
}

fn is(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

/// Behind a `#`: passes by the item that `[cfg(test)]` is said of.
fn skip_what_is_for_tests(rest: &mut Iter<TokenTree>) {
    let is_for_tests = |token: &TokenTree| token.to_string().replace(' ', "") == "[cfg(test)]";
    if !rest.as_slice().first().is_some_and(is_for_tests) {
        return;
    }
    rest.next();
    let words = rest.as_slice().iter().take_while(|token| !is(token, ';') && !is_block(token));
    let words: Vec<_> = words.map(ToString::to_string).collect();
    let has = |word: &str| words.iter().any(|one| one == word);
    let ends_with_a_block = ["fn", "mod", "impl", "trait", "struct", "enum"].iter().any(|item| has(item));
    // What is no item, as a field, is looked into.
    if ends_with_a_block || ["use", "const", "static", "type"].iter().any(|item| has(item)) {
        rest.find(|token| is(token, ';') || (ends_with_a_block && is_block(token)));
    }
}

fn is_block(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

#[cfg(test)]
mod tests {
    use super::{Name, given_on, of};

    fn names(text: &str, wanted: &str) -> bool {
        of(text).iter().any(|name| name.has(wanted))
    }

    #[test]
    fn what_is_brought_in_is_named_however_it_is_written() {
        for text in [
            "use std::fs;",
            "use ::std::fs::read;",
            "use std::{env, fs};",
            "pub(crate) use std::{env::{self, args}, fs::{self}};",
            "use {std::fs as files, std::fmt};",
            "use std::*;",
            "use std as s; fn f() { s::fs::read(p); }",
            "use std::{self as s}; fn f() { s::fs::read(p); }",
            "extern crate std as s; fn f() { s::fs::read(p); }",
            "use a as b; use std as a; fn f() { b::fs::read(p); }",
            "fn f() { let text = std::fs::read(p); }",
            "fn f() -> Vec<std :: fs::File> { todo!() }",
            "fn f() { assert!(matches!(std::fs::read(p), Ok(_)), \"{}\", 1); }",
            "#[serde(with = 1)] mod m { impl A { fn f() { use std::fs; } } }",
            "#[cfg(test)]\nuse a::{b, c};\nuse std::fs;",
            "#[cfg(test)]\n#[path = \"x\"]\npub mod t;\nuse std::fs;",
            "#[cfg(test)]\nconst A: [A; 1] = [A {}];\nuse std::fs;",
            "#[cfg(not(test))]\nuse std::fs;",
            "struct A { #[cfg(test)]\n a: B, b: std::fs::File }",
            "fn f() -> impl A + use<'_> { std::fs::read(p) }",
        ] {
            assert!(names(text, "std::fs"), "{text}: {:?}", of(text));
        }
    }

    #[test]
    fn what_is_not_named_is_not_found() {
        for text in [
            "use std::fmt; use own::fs;",
            "// use std::fs;\n/// std::fs\nconst A: &str = \"std::fs\";",
            "use own as std; fn f() { std::fs::read(p); }",
            "#[cfg(test)]\nmod tests { use std::fs; }",
            "#[cfg(test)]\nuse std::{env, fs};",
            "#[cfg(test)]\n#[must_use]\npub(crate) fn f() -> A { std::fs::read(p) }",
            "use super::*; use std::fmt::*;",
            "use a as b; use b as a; fn f() { a::c(); }",
        ] {
            assert!(!names(text, "std::fs"), "{text}: {:?}", of(text));
        }
    }

    #[test]
    fn what_a_module_gives_on_is_what_it_brings_in_publicly() {
        let text = "use a::A; pub use b::{B, c as C}; pub(super) use d::D; pub fn e(f: F) { use g::G; }";
        let given: Vec<_> = given_on(text).into_iter().map(|(name, path)| (name, path.join("::"))).collect();
        let expected = [("B", "b::B"), ("C", "b::c"), ("D", "d::D")];
        assert_eq!(given, expected.map(|(name, path)| (name.to_owned(), path.to_owned())));
    }

    #[test]
    fn words_and_crates_are_distinguished_from_names_of_values() {
        assert!(names("async fn f() { g().await }", "async") && names("fn f() { g().await }", "await"));
        assert!(names("fn f() { tokio::select! { _ = a => {} } }", "tokio") && names("use tokio;", "tokio"));
        assert!(!names("fn f(tokio: A) { tokio.run() }", "tokio"));
        let name = Name(vec!["jiff".to_owned(), "Timestamp".to_owned(), "now".to_owned()]);
        assert!(name.has("Timestamp::now") && !name.has("Timestamp::now_v7") && !name.has("Zoned::now"));
    }
}
