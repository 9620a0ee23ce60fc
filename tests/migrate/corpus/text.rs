//! Reads the scripts of the corpus.
//!
//! A file has a script below each line `-- == NAME ==`. `NAME/1`, `NAME/2` are the scripts of one folder. An empty line ends
//! a statement, as does the sign ¶, which is left out; a line `~` becomes an empty line that ends nothing; ␍ becomes a
//! carriage return. These ends are their author's: no reader of gatehouse has a part in them. `NAME none ==` runs outside of
//! a transaction. `NAME bare ==` has bodies that the client of MySQL or MariaDB does not read without a delimiter.

use std::fs;

use kit::root;

/// The scripts of a folder, which begin from an empty database.
#[derive(Debug)]
pub struct Script {
    /// The file and the name, as `my/text.sql: a view`.
    pub name: String,
    pub parts: Vec<Part>,
}

/// A script.
#[derive(Debug)]
pub struct Part {
    pub text: String,
    /// Where statements end, in bytes.
    pub ends: Vec<usize>,
    /// It runs outside of a transaction.
    pub is_outside: bool,
    /// The client needs a delimiter.
    pub is_bare: bool,
}

/// The scripts in folders of the corpus.
pub fn scripts(folders: &[&str]) -> Vec<Script> {
    let mut scripts: Vec<Script> = Vec::new();
    for folder in folders {
        let path = root().join("tests/migrate/corpus").join(folder);
        let files = fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut files: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        for file in files {
            let text = fs::read_to_string(path.join(&file)).unwrap();
            add(&mut scripts, &format!("{folder}/{file}"), &text);
        }
    }
    scripts
}

fn add(scripts: &mut Vec<Script>, file: &str, text: &str) {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.split('\n') {
        if let Some(title) = line.strip_prefix("-- == ").and_then(|rest| rest.strip_suffix(" ==")) {
            sections.push((title, Vec::new()));
        } else {
            sections.last_mut().unwrap_or_else(|| panic!("{file} begins without a name")).1.push(line);
        }
    }
    for (title, lines) in sections {
        let (title, is_outside) = title.strip_suffix(" none").map_or((title, false), |title| (title, true));
        let (title, is_bare) = title.strip_suffix(" bare").map_or((title, false), |title| (title, true));
        let (text, ends) = read(&lines);
        let part = Part { text, ends, is_outside, is_bare };
        let (title, number) = title.split_once('/').unwrap_or((title, "1"));
        let name = format!("{file}: {title}");
        match scripts.iter_mut().find(|script| script.name == name) {
            Some(script) if number != "1" => script.parts.push(part),
            None if number == "1" => scripts.push(Script { name, parts: vec![part] }),
            _ => panic!("{name} is there twice, or has no first part"),
        }
    }
}

fn read(lines: &[&str]) -> (String, Vec<usize>) {
    let used = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    let (mut text, mut ends) = (String::new(), Vec::new());
    for line in &lines[..used] {
        if line.is_empty() {
            ends.push(text.len());
        }
        let line = if *line == "~" { "" } else { line };
        for (place, piece) in line.split('¶').enumerate() {
            if place > 0 {
                ends.push(text.len());
            }
            text.push_str(&piece.replace('␍', "\r"));
        }
        text.push('\n');
    }
    (text, ends)
}

impl Part {
    /// Where a statement may be put in: before the first one, and where one ends.
    pub fn places(&self) -> Vec<usize> {
        std::iter::once(0).chain(self.ends.iter().copied()).collect()
    }

    /// The text with a statement at that place that fails on each engine.
    pub fn failing(&self, place: usize) -> String {
        let (before, after) = self.text.split_at(place);
        let delimiter = before.lines().rev().find_map(delimiter).unwrap_or(";");
        format!("{before}SELECT * FROM missing_table_x{delimiter}\n{after}")
    }

    /// What the client of MySQL and MariaDB reads.
    pub fn for_client(&self) -> String {
        if !self.is_bare {
            return self.text.clone();
        }
        let mut text = "DELIMITER ~~~\n".to_owned();
        let mut begin = 0;
        for end in self.ends.iter().copied().chain([self.text.len()]) {
            let statement = self.text[begin..end].trim();
            begin = end;
            let statement = statement.strip_suffix(';').unwrap_or(statement);
            if !statement.is_empty() {
                text.push_str(statement);
                text.push_str("\n~~~\n");
            }
        }
        text
    }
}

/// The delimiter that a line sets.
fn delimiter(line: &str) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    words.next().filter(|word| word.eq_ignore_ascii_case("DELIMITER"))?;
    words.next()
}
