//! The blocks of a stored program, and of a compound statement of MariaDB.
//!
//! Guarantees: a keyword opens or closes a block only where a statement can begin, and END closes a CASE expression only
//! behind a value: a word that is a name (`begin`, `end`, `if`) does neither.
//! Assumes: the server refuses a text that has two statements, or half of one. A program that is read wrongly is therefore
//! an error of syntax, of which nothing has run.

use super::tokens::{Kind, Token};

/// What is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// BEGIN, IF, CASE, and the loops.
    Statements,
    /// What stands before the BEGIN of a block that is written as in Oracle.
    Declarations,
    /// A package, which has programs in it.
    Package,
}

/// What ends a condition, and is followed by statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    Then,
    Do,
    /// That of REPEAT … UNTIL.
    End,
}

/// What is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Routine,
    Trigger,
    Event,
    Package,
}

/// What can come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The first word of a statement of the script.
    First,
    /// What a CREATE or ALTER is of.
    Kind {
        alters: bool,
        skips: bool,
    },
    /// What follows a BEGIN that may begin a transaction.
    Begun,
    /// The name, parameters and characteristics of a program.
    Header {
        program: Program,
        has_parameters: bool,
        returns: bool,
    },
    /// What follows AS: declarations, or the text of a program in another language.
    As,
    /// What follows FOR EACH ROW.
    Row {
        skips: bool,
    },
    /// A statement within a program.
    Statement,
    /// The colon behind a label.
    Label,
    /// The rest of a label in `<<` and `>>`.
    Arrows,
    /// The rest of a statement, up to its semicolon.
    Rest,
    Condition {
        until: Until,
        cases: u32,
    },
    Declare {
        is_handler: bool,
    },
    /// The conditions that a handler is for.
    Handler {
        wants_condition: bool,
    },
}

/// Follows a statement from token to token.
#[derive(Clone, Debug)]
pub struct Blocks {
    at: At,
    open: Vec<Block>,
    parens: u32,
    previous: String,
    /// The token before is a value, behind which an END closes.
    is_behind_value: bool,
    oracle: bool,
}

/// What may be created and has statements in it.
fn program(word: &str) -> Option<Program> {
    match word {
        "PROCEDURE" | "FUNCTION" => Some(Program::Routine),
        "TRIGGER" => Some(Program::Trigger),
        "EVENT" => Some(Program::Event),
        "PACKAGE" => Some(Program::Package),
        _ => None,
    }
}

/// What is created that has none, though such a word may follow as a name.
const OTHERS: [&str; 16] = [
    "DATABASE",
    "FULLTEXT",
    "INDEX",
    "LIBRARY",
    "LOGFILE",
    "RESOURCE",
    "ROLE",
    "SCHEMA",
    "SEQUENCE",
    "SERVER",
    "SPATIAL",
    "TABLE",
    "TABLESPACE",
    "UNIQUE",
    "USER",
    "VIEW",
];

/// Words that a value follows.
const BEFORE_VALUES: [&str; 24] = [
    "AND", "AS", "BETWEEN", "BINARY", "BY", "CASE", "DISTINCT", "DIV", "ELSE", "FROM", "HAVING", "IN",
    "INTERVAL", "LIKE", "MOD", "NOT", "ON", "OR", "REGEXP", "SELECT", "THEN", "WHEN", "WHERE", "XOR",
];

/// Words that begin a statement without blocks. RETURN is one where the head has said RETURNS.
const VERBS: [&str; 24] = [
    "ALTER", "CALL", "CREATE", "DELETE", "DO", "DROP", "EXECUTE", "GET", "GRANT", "INSERT", "LOAD",
    "OPTIMIZE", "PREPARE", "RENAME", "REPLACE", "RESIGNAL", "REVOKE", "SELECT", "SET", "SIGNAL", "TRUNCATE",
    "UPDATE", "VALUES", "WITH",
];

impl Blocks {
    /// At the beginning of a statement.
    #[must_use]
    pub const fn new(oracle: bool) -> Self {
        Self {
            at: At::First,
            open: Vec::new(),
            parens: 0,
            previous: String::new(),
            is_behind_value: false,
            oracle,
        }
    }

    /// Whether a semicolon here is within the statement.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes the next token; `is_before_colon` where a single colon follows it.
    pub fn take(&mut self, token: &Token, text: &str, is_before_colon: bool) {
        let is_word = token.kind == Kind::Word && !token.is_qualified;
        // A long word is no keyword.
        let is_short = token.end - token.start <= 16;
        let word = if is_word && is_short { token.text(text).to_ascii_uppercase() } else { String::new() };
        match token.kind {
            Kind::Mark(b'(') => self.parens += 1,
            Kind::Mark(b')') => self.parens = self.parens.saturating_sub(1),
            Kind::Mark(b';') => {
                self.parens = 0;
                self.at = At::Statement;
                self.remember(token, String::new());
                return;
            }
            _ => {}
        }
        self.step(token, &word, is_before_colon);
        self.remember(token, word);
    }

    fn remember(&mut self, token: &Token, word: String) {
        self.is_behind_value = match token.kind {
            Kind::Mark(mark) => mark == b')',
            Kind::Word => !BEFORE_VALUES.contains(&word.as_str()),
            Kind::Name | Kind::Text | Kind::Variable | Kind::Delimiter => true,
        };
        self.previous = word;
    }

    fn step(&mut self, token: &Token, word: &str, is_before_colon: bool) {
        match self.at {
            At::First => self.first(token, word, is_before_colon),
            At::Kind { alters, skips } => self.kind(token, word, alters, skips),
            At::Begun if word == "WORK" => self.at = At::Rest,
            At::Begun => {
                self.enter(Block::Statements);
                self.statement(token, word, is_before_colon);
            }
            At::Header { program, has_parameters, returns } => {
                self.header(token, word, is_before_colon, program, has_parameters, returns);
            }
            At::As if token.kind == Kind::Text => self.at = At::Rest,
            At::As => {
                self.enter(Block::Declarations);
                self.statement(token, word, is_before_colon);
            }
            At::Row { skips: true } | At::Label => self.at = At::Statement,
            At::Row { skips: false } => match word {
                "FOLLOWS" | "PRECEDES" => self.at = At::Row { skips: true },
                _ => self.statement(token, word, is_before_colon),
            },
            At::Statement => self.statement(token, word, is_before_colon),
            At::Arrows => {
                if token.kind == Kind::Mark(b'>') {
                    self.at = At::Statement;
                }
            }
            At::Rest => {}
            At::Condition { until, cases } => self.condition(word, until, cases),
            At::Declare { is_handler } => match word {
                "HANDLER" => self.at = At::Declare { is_handler: true },
                "FOR" if is_handler => self.at = At::Handler { wants_condition: true },
                _ => {}
            },
            At::Handler { wants_condition } => self.handler(token, word, is_before_colon, wants_condition),
        }
    }

    fn first(&mut self, token: &Token, word: &str, is_before_colon: bool) {
        match word {
            "CREATE" => self.at = At::Kind { alters: false, skips: false },
            "ALTER" => self.at = At::Kind { alters: true, skips: false },
            "BEGIN" if !is_before_colon => self.at = At::Begun,
            "IF" | "CASE" | "LOOP" | "WHILE" | "REPEAT" | "FOR" => {
                self.statement(token, word, is_before_colon);
            }
            "DECLARE" if self.oracle => self.statement(token, word, is_before_colon),
            _ if is_before_colon => self.at = At::Label,
            _ => self.at = At::Rest,
        }
    }

    fn kind(&mut self, token: &Token, word: &str, alters: bool, skips: bool) {
        if token.kind == Kind::Mark(b'=') {
            self.at = At::Kind { alters, skips: true };
        } else if skips {
            self.at = At::Kind { alters, skips: false };
        } else if let Some(program) = program(word).filter(|program| !alters || *program == Program::Event) {
            self.at = At::Header { program, has_parameters: false, returns: false };
        } else if OTHERS.contains(&word) || alters && program(word).is_some() {
            self.at = At::Rest;
        }
    }

    fn header(
        &mut self,
        token: &Token,
        word: &str,
        is_before_colon: bool,
        program: Program,
        has_parameters: bool,
        returns: bool,
    ) {
        let is_after_parens = token.kind == Kind::Mark(b')') && self.parens == 0;
        if self.parens > 0 || is_after_parens {
            let has_parameters = has_parameters || is_after_parens;
            self.at = At::Header { program, has_parameters, returns };
            return;
        }
        match (program, word) {
            (Program::Trigger, "ROW") if self.previous == "EACH" => self.at = At::Row { skips: false },
            (Program::Event, "DO") => self.at = At::Statement,
            (Program::Package, "AS" | "IS") => self.enter(Block::Package),
            (Program::Package, "PROCEDURE" | "FUNCTION") if self.previous != "PACKAGE" => {
                self.enter(Block::Package);
                self.statement(token, word, is_before_colon);
            }
            (Program::Routine, "AS" | "IS") => self.at = At::As,
            (Program::Routine, "RETURNS") => {
                self.at = At::Header { program, has_parameters, returns: true };
            }
            (Program::Routine, _) if has_parameters => {
                let is_type = self.previous == "RETURNS" || self.previous.starts_with("CHAR");
                let opens = ["IF", "CASE", "LOOP", "WHILE", "REPEAT", "FOR"];
                if word == "BEGIN" && !is_before_colon {
                    self.enter(Block::Statements);
                } else if opens.contains(&word) || is_before_colon {
                    self.statement(token, word, is_before_colon);
                } else if VERBS.contains(&word) && !is_type || word == "RETURN" && returns {
                    self.at = At::Rest;
                }
            }
            _ => {}
        }
    }

    fn enter(&mut self, block: Block) {
        self.open.push(block);
        self.at = At::Statement;
    }

    fn statement(&mut self, token: &Token, word: &str, is_before_colon: bool) {
        let is_named = matches!(token.kind, Kind::Word | Kind::Name);
        if is_named && is_before_colon {
            self.at = At::Label;
            return;
        }
        // Behind a label of Oracle, and what follows a BEGIN.
        if token.kind == Kind::Mark(b'<') {
            self.at = At::Arrows;
            return;
        }
        let is_atomic =
            self.previous == "BEGIN" && word == "NOT" || self.previous == "NOT" && word == "ATOMIC";
        if token.kind == Kind::Mark(b'>') || is_atomic {
            self.at = At::Statement;
            return;
        }
        let last = self.open.last().copied();
        self.at = match word {
            "BEGIN" => {
                // It ends what is declared before it, or what a package begins with, and is closed by the same END.
                if matches!(last, Some(Block::Declarations | Block::Package)) {
                    self.open.pop();
                }
                self.open.push(Block::Statements);
                At::Statement
            }
            "LOOP" | "REPEAT" => {
                self.open.push(Block::Statements);
                At::Statement
            }
            "IF" | "CASE" => {
                self.open.push(Block::Statements);
                At::Condition { until: Until::Then, cases: 0 }
            }
            "WHILE" | "FOR" => {
                self.open.push(Block::Statements);
                At::Condition { until: Until::Do, cases: 0 }
            }
            "ELSE" | "EXCEPTION" => At::Statement,
            "ELSEIF" | "ELSIF" | "WHEN" => At::Condition { until: Until::Then, cases: 0 },
            "UNTIL" => At::Condition { until: Until::End, cases: 0 },
            "END" => {
                self.open.pop();
                At::Rest
            }
            "DECLARE" if self.oracle => {
                self.open.push(Block::Declarations);
                At::Statement
            }
            "DECLARE" => At::Declare { is_handler: false },
            "PROCEDURE" | "FUNCTION" if last == Some(Block::Package) => {
                At::Header { program: Program::Routine, has_parameters: false, returns: false }
            }
            _ => At::Rest,
        };
    }

    fn condition(&mut self, word: &str, until: Until, cases: u32) {
        let is_outside = cases == 0 && self.parens == 0;
        self.at = match (word, until) {
            ("CASE", _) => At::Condition { until, cases: cases + 1 },
            ("END", _) if cases > 0 && self.is_behind_value => At::Condition { until, cases: cases - 1 },
            ("END", Until::End) if is_outside && self.is_behind_value => {
                self.open.pop();
                At::Rest
            }
            ("THEN", Until::Then) | ("DO" | "LOOP", Until::Do) if is_outside => At::Statement,
            _ => self.at,
        };
    }

    fn handler(&mut self, token: &Token, word: &str, is_before_colon: bool, wants_condition: bool) {
        let is_value = word == "VALUE" && self.previous == "SQLSTATE";
        self.at = match (token.kind, word) {
            (Kind::Mark(b','), _) => At::Handler { wants_condition: true },
            _ if !wants_condition => return self.statement(token, word, is_before_colon),
            (_, "SQLSTATE" | "NOT") => At::Handler { wants_condition: true },
            _ if is_value => At::Handler { wants_condition: true },
            _ => At::Handler { wants_condition: false },
        };
    }
}
