//! What users and engineers read is in plain words: messages, help, `kubectl explain`, what is below `deploy`, the
//! docs, and the comments of all sources.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use gatehouse::cli::Cli;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::sources::{Source, below, root};

/// Words that make a sentence hard to read, or that make persons of programs. Each has a plain one.
const FORBIDDEN: &[&str] = &[
    "anew",
    "are told",
    "come to grief",
    "come to nothing",
    "comes to grief",
    "has a hand in",
    "have a hand in",
    "heals it",
    "is told",
    "judged and worked",
    "lies between",
    "makes sense",
    "no way up",
    "nobody",
    "nothing moves",
    "of before",
    "see to the",
    "seen to",
    "somebody",
    "who is there",
    "who the members are",
    "whoever",
    "works the objects",
];

/// What is read as it lies there, below these folders and in these files.
const READ: &[&str] = &["deploy", "docs", "examples", "CHANGELOG.md", "README.md"];

/// The forbidden words in a text, in whatever way it is broken into lines.
fn forbidden(text: &str) -> Vec<&'static str> {
    let text = text.to_lowercase();
    let words: Vec<_> = text.split_whitespace().collect();
    let text = words.join(" ");
    let is_edge = |edge: Option<char>| !edge.is_some_and(char::is_alphanumeric);
    let has = |wanted: &&&str| {
        text.match_indices(**wanted).any(|(at, found)| {
            is_edge(text[..at].chars().next_back()) && is_edge(text[at + found.len()..].chars().next())
        })
    };
    FORBIDDEN.iter().filter(has).copied().collect()
}

/// A text that has forbidden words, with these words.
fn violation(place: &str, text: &str) -> Option<String> {
    let found = forbidden(text);
    (!found.is_empty()).then(|| format!("{place}: {found:?}"))
}

/// The texts that a source has between quotation marks, without its comments and its tests.
fn quoted(file: &Source) -> String {
    let code = file.text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let tokens: TokenStream = code.parse().unwrap_or_else(|error| panic!("{}: {error}", file.path.display()));
    let mut texts = String::new();
    collect(tokens, &mut texts);
    texts
}

/// The comments of a source, those of its tests among them. Slashes inside of a text follow no space.
fn comments(file: &Source) -> String {
    let mut comments = String::new();
    for line in file.text.lines() {
        let mut starts = line.match_indices("//").map(|(at, _)| at);
        if let Some(at) = starts.find(|at| line[..*at].chars().next_back().is_none_or(char::is_whitespace)) {
            comments.push_str(line[at..].trim_start_matches(['/', '!']));
            comments.push('\n');
        }
    }
    comments
}

/// Comments are attributes here.
fn collect(tokens: TokenStream, texts: &mut String) {
    let mut is_attribute = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) if is_attribute && group.delimiter() == Delimiter::Bracket => (),
            TokenTree::Group(group) => collect(group.stream(), texts),
            TokenTree::Literal(literal) => {
                // Lines that are joined by a backslash.
                let text = literal.to_string().replace("\\\n", "\n");
                if text.contains('"') {
                    texts.push_str(&text);
                    texts.push('\n');
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == '#' || is_attribute && punct.as_char() == '!' => {
                is_attribute = true;
                continue;
            }
            TokenTree::Punct(_) | TokenTree::Ident(_) => (),
        }
        is_attribute = false;
    }
}

/// The help of a command and of those below it.
fn helped(command: &mut Command, helps: &mut Vec<(String, String)>) {
    helps.push((format!("{} --help", command.get_name()), command.render_long_help().to_string()));
    for command in command.get_subcommands_mut() {
        helped(command, helps);
    }
}

/// Every text below these.
fn texts(path: &Path, found: &mut Vec<(String, String)>) {
    if path.is_dir() {
        let mut entries: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for entry in &entries {
            texts(entry, found);
        }
    } else if let Ok(text) = fs::read_to_string(path) {
        found.push((path.strip_prefix(root()).unwrap().display().to_string(), text));
    }
}

#[test]
fn texts_and_comments_are_in_plain_words() {
    let mut found = Vec::new();
    for path in READ {
        texts(&root().join(path), &mut found);
    }
    helped(&mut Cli::command(), &mut found);
    let sources = below(&["src"]);
    let messages = sources.iter().filter(|file| !file.is_unit_test());
    found.extend(messages.map(|file| (file.path.display().to_string(), quoted(file))));
    let mut commented = below(&["src", "tests", "benches"]);
    commented.retain(|file| !file.path.ends_with("words.rs"));
    found.extend(commented.iter().map(|file| (file.path.display().to_string(), comments(file))));
    let broken: Vec<_> = found.iter().filter_map(|(place, text)| violation(place, text)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_forbidden_word_is_found() {
    assert_eq!(forbidden("Nobody\n  knows, as nobodys do"), ["nobody"]);
    assert_eq!(forbidden("of\nbefore; often before"), ["of before"]);
    assert_eq!(forbidden("a new one"), [""; 0]);
    let text = "//! Nobody.\n#[doc = \"nobody\"]\nfn f() -> &'static str { \"who is \\\n   there\" }";
    let file = Source::planted("src/a.rs", text);
    assert_eq!(forbidden(&quoted(&file)), ["who is there"]);
    let tests = format!("{text}\n#[cfg(test)]\nmod tests {{ const A: &str = \"whoever\"; }}");
    assert_eq!(forbidden(&quoted(&Source::planted("src/a.rs", &tests))), ["who is there"]);
}

#[test]
fn a_forbidden_word_is_found_in_comments() {
    let text =
        "//! Who is\n//! there\nfn f() {\n    g(); // nobody\n    h(\"http://whoever\")\n}\n/// Is told\n";
    assert_eq!(
        forbidden(&comments(&Source::planted("src/a.rs", text))),
        ["is told", "nobody", "who is there"]
    );
}
