//! Splits a script of SQLite into its statements, by the rules of its tokenizer (tokenize.c) and of `sqlite3_complete`.

use super::{Begun, Cursor, Statement, Token, not_split};

/// The byte order mark, which is a blank wherever it lies.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// The statements of a script.
pub(super) fn split(text: &str) -> Result<Vec<Statement>, String> {
    let mut cursor = Cursor::of(text);
    let (mut statements, mut open) = (Vec::new(), Open::default());
    while let Some((start, token)) = next(&mut cursor)? {
        if token == Token::Semicolon && (!open.is_trigger() || open.tail == Tail::End) {
            statements.extend(std::mem::take(&mut open).begun.ended(start));
            continue;
        }
        open.begun.add(&mut cursor, start, token);
        open.tail = match (token, open.tail) {
            (Token::Semicolon, _) => Tail::Semicolon,
            (Token::Word(word), Tail::Semicolon) if word.eq_ignore_ascii_case("END") => Tail::End,
            _ => Tail::Else,
        };
    }
    statements.extend(open.begun.ended(text.trim_end().len()));
    Ok(statements)
}

/// How a trigger goes on: it is over with the semicolon behind an END that follows a semicolon.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Tail {
    #[default]
    Else,
    Semicolon,
    End,
}

#[derive(Default)]
struct Open {
    begun: Begun,
    tail: Tail,
}

impl Open {
    fn is_trigger(&self) -> bool {
        let explained = ["EXPLAIN", "QUERY", "PLAN"];
        let mut words =
            self.begun.words.iter().map(String::as_str).skip_while(|word| explained.contains(word));
        let first = words.next();
        let second =
            words.next().filter(|word| !matches!(*word, "TEMP" | "TEMPORARY")).or_else(|| words.next());
        first == Some("CREATE") && second == Some("TRIGGER")
    }
}

/// What comes next, and where it begins.
fn next<'a>(cursor: &mut Cursor<'a>) -> Result<Option<(usize, Token<'a>)>, String> {
    skip_blank(cursor);
    if cursor.is_at_end() {
        return Ok(None);
    }
    let start = cursor.at;
    let first = cursor.byte(0);
    cursor.at += 1;
    let closing = match first {
        b'\'' => "'",
        b'"' => "\"",
        b'`' => "`",
        b'[' => "]",
        b';' => return Ok(Some((start, Token::Semicolon))),
        first if is_of_name(first) => {
            cursor.skip(is_of_name);
            let word = cursor.text.get(start..cursor.at).unwrap_or_default();
            let is_word = !first.is_ascii_digit() && first != b'$';
            return Ok(Some((start, if is_word { Token::Word(word) } else { Token::Other })));
        }
        _ => return Ok(Some((start, Token::Other))),
    };
    // A doubled quote ends one part and begins another.
    if cursor.skip_behind(closing) {
        return Ok(Some((start, Token::Other)));
    }
    Err(not_split("the quoted text", cursor.line_at(start)))
}

fn skip_blank(cursor: &mut Cursor<'_>) {
    loop {
        match (cursor.byte(0), cursor.byte(1)) {
            (b' ' | b'\t' | b'\n' | 0x0c | b'\r', _) => cursor.at += 1,
            (b'-', b'-') => cursor.skip(|byte| byte != b'\n'),
            (b'/', b'*') => {
                cursor.at += 2;
                // Without its end, all that is left is comment.
                cursor.skip_behind("*/");
            }
            _ if cursor.rest().starts_with(MARK) => cursor.at += MARK.len(),
            _ => return,
        }
    }
}

const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        split(text).unwrap().iter().map(|one| &text[one.start..one.end]).collect()
    }

    #[test]
    fn a_statement_ends_where_sqlite_ends_it() {
        for (text, count) in [
            ("INSERT INTO a VALUES ('b;''c', \"d;\", `e;`, [f;], x'00'); SELECT 1", 2),
            ("SELECT 'a\\'; COMMIT", 2),
            ("-- a;\rb\nSELECT 1; /* ; /* */ SELECT 2", 2),
            ("SELECT 1; /* ; no end", 1),
            ("CREATE TABLE trigger (begin, end); INSERT INTO a VALUES (1)", 2),
        ] {
            assert_eq!(texts(text).len(), count, "{text}");
        }
        assert!(split("SELECT 1;\nSELECT 'secret").unwrap_err().contains("line 2"));
    }

    #[test]
    fn a_trigger_stays_whole() {
        for text in [
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE b SET c = CASE WHEN d THEN 1 END; END",
            "create temp trigger begin after insert on end begin select begin, end from b; select 2; end",
            "CREATE TRIGGER IF NOT EXISTS t INSTEAD OF UPDATE OF begin ON a BEGIN SELECT 1;/**/END",
        ] {
            assert_eq!(texts(&format!("{text}; SELECT 1;")), [text, "SELECT 1"]);
        }
    }

    #[test]
    fn a_byte_order_mark_hides_no_word() {
        let statements = split("SELECT 1;\u{feff}\n\u{feff} COMMIT;\u{feff}").unwrap();
        let words: Vec<_> = statements.iter().map(|one| one.words.join(" ")).collect();
        assert_eq!((words, statements[1].line), (vec!["SELECT".to_owned(), "COMMIT".to_owned()], 2));
    }
}
