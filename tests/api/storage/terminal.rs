//! A migration that a person looks at.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use kit::bed::Bed;
use kit::wait::eventually;
use serde_json::json;

use super::moving::SLOWLY;
use super::widgets::{Widgets, command};

/// What clears a line and goes to its beginning.
const CLEAR: &str = "\r\u{1b}[2K";

/// `gatehouse storage` at a terminal, which `script` of util-linux makes. Dropped, it is killed.
pub struct Terminal {
    script: Child,
    /// What is typed.
    keys: ChildStdin,
    /// All that the terminal got.
    got: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts it with these words.
    pub fn start(kubeconfig: &Path, words: &[&str]) -> Self {
        let meant = command(kubeconfig, words);
        let all = std::iter::once(meant.get_program()).chain(meant.get_args());
        let quoted: Vec<_> = all.map(|word| format!("'{}'", word.to_string_lossy())).collect();
        let mut script = Command::new("script");
        script.args(["--quiet", "--flush", "--return", "--command", &format!("exec {}", quoted.join(" "))]);
        script.arg("/dev/null").env("SHELL", "/bin/sh").env("KUBECONFIG", kubeconfig);
        let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script runs");
        let (keys, mut output) =
            (script.stdin.take().expect("a pipe"), script.stdout.take().expect("a pipe"));
        let got = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&got);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shared.lock().unwrap_or_else(PoisonError::into_inner).extend(&bytes[..count]);
            }
        });
        Self { script, keys, got, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.got.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).and_then(|()| self.keys.flush()).expect("it is there");
    }

    /// Waits until it has ended: with which code, and all that it has written.
    pub fn end(mut self) -> (Option<i32>, String) {
        self.reader.take().map(JoinHandle::join).expect("it is read").expect("it is read to its end");
        let code = self.script.wait().expect("it ends").code();
        (code, self.text())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _ended = (self.script.kill(), self.script.wait());
    }
}

/// The lines that a terminal shows in the end.
fn shown(text: &str) -> Vec<&str> {
    let lines = text.split("\r\n").map(|line| line.rsplit(CLEAR).next().unwrap_or_default());
    lines.filter(|line| !line.is_empty()).collect()
}

/// The bars that were drawn, one over the other.
pub fn bars(text: &str) -> Vec<&str> {
    let drawn = text.split(CLEAR).filter(|drawn| drawn.contains(['█', '░']));
    drawn.map(|drawn| drawn.split("\r\n").next().unwrap_or_default()).collect()
}

/// How many objects a bar says are dealt with.
fn dealt_with(bar: &str) -> Option<usize> {
    bar.split_once("/201 objects, ")?.0.rsplit(' ').next()?.parse().ok()
}

pub fn a_terminal_shows_a_bar_and_ctrl_c_ends_it(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "terminal", false);
    widgets.make(200);
    widgets.store_as_v1();
    let name = widgets.name.as_str();
    let words = [&["migrate", name][..], &SLOWLY].concat();
    let mut terminal = Terminal::start(bed.cluster.kubeconfig(), &words);
    // A run goes on behind the pages that are done: the first one has ten objects.
    eventually(|| {
        let text = terminal.text();
        let done =
            |bar: &&str| bar.contains(" % pass 1: ") && dealt_with(bar).is_some_and(|count| count > 20);
        if bars(&text).iter().any(done) { Ok(()) } else { Err(format!("not so far: {text:?}")) }
    });
    terminal.press(b"\x03");
    let (code, text) = terminal.end();
    assert_eq!(code, Some(1), "{text:?}");
    let bar = bars(&text)[0];
    assert!(bar.starts_with(&format!("{name} ")) && bar.contains(" % pass 1: "), "{bar}");
    assert!(bar.contains("/s, 1 at a time"), "{bar}");
    let left = shown(&text);
    let [told, ended] = left[..] else { panic!("two lines: {left:?}") };
    assert_eq!(told, "SIGINT: ends when what is under way is answered");
    let is_ended = ended.starts_with(&format!("{name}: interrupted after "));
    assert!(is_ended && ended.ends_with(" objects: run again to go on"), "{ended}");
    assert_ne!(widgets.in_etcd("v1alpha1").len(), 0, "it was interrupted before its end");

    let (code, text) = Terminal::start(bed.cluster.kubeconfig(), &words).end();
    assert_eq!(code, Some(0), "{text:?}");
    let left = shown(&text);
    let [on, first, second, ended] = left[..] else { panic!("four lines: {left:?}") };
    assert!(on.starts_with(&format!("{name}: pass 1: goes on after ")), "{on}");
    assert!(first.starts_with(&format!("{name}: pass 1: 201 objects: ")), "{first}");
    assert!(second.starts_with(&format!("{name}: pass 2: 201 objects: 0 rewritten, ")), "{second}");
    assert!(ended.ends_with("; storedVersions names v1alpha1 no more"), "{ended}");
    assert!(bars(&text).iter().any(|bar| bar.contains(" % pass 2: ")), "{text:?}");
    assert_eq!((widgets.in_etcd("v1alpha1").len(), widgets.stored_versions()), (0, json!(["v1"])));
}
