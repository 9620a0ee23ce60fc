//! A control plane with gatehouse at its gate, and kubectl as its users use it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use testbed::{ControlPlane, Options};

/// The namespace that gatehouse runs in.
pub const NAMESPACE: &str = "gatehouse-system";

/// How long anything that has to come true may take. The garbage collector looks for new kinds every 30 seconds.
pub const PATIENCE: Duration = Duration::from_mins(1);

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A control plane, and what stands at its gate.
pub struct Bed {
    pub cluster: ControlPlane,
    gate: Mutex<Option<Gate>>,
}

impl Bed {
    /// Starts a control plane with the shipped rights in it, and then what `gate` starts.
    pub fn start(options: &Options, gate: fn(&ControlPlane) -> Result<Gate, String>) -> Result<Self, String> {
        let bed = Self::without_gate(options)?;
        let gate = gate(&bed.cluster)?;
        bed.set_gate(Some(gate));
        Ok(bed)
    }

    /// Starts a control plane with the shipped rights in it, and nobody at its gate.
    pub fn without_gate(options: &Options) -> Result<Self, String> {
        let cluster = ControlPlane::start(options).map_err(|error| error.to_string())?;
        let bed = Self { cluster, gate: Mutex::new(None) };
        bed.kubectl(&["apply", "-f", &root().join("deploy/base/namespace.yaml").to_string_lossy()]).ok();
        bed.kubectl(&["apply", "-f", &root().join("deploy/base/rbac.yaml").to_string_lossy()]).ok();
        Ok(bed)
    }

    /// Replaces the gate; the one before is killed.
    pub fn set_gate(&self, gate: Option<Gate>) {
        *self.gate.lock().unwrap() = gate;
    }

    /// Asks of the gate that runs.
    pub fn gate<T>(&self, ask: impl FnOnce(&Gate) -> T) -> T {
        ask(self.gate.lock().unwrap().as_ref().expect("a gate runs"))
    }

    /// kubectl with these words, as the administrator.
    pub fn kubectl(&self, words: &[&str]) -> Kubectl {
        let mut command = self.cluster.kubectl();
        command.args(words);
        Kubectl { command, input: String::new() }
    }

    /// A namespace for one test.
    pub fn namespace(&self) -> Namespace<'_> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.kubectl(&["create", "namespace", &name]).ok();
        Namespace { bed: self, name }
    }

    /// The logs' ends, for whoever has to find out.
    pub fn show_logs(&self) {
        let logs = self.cluster.folder();
        eprintln!("logs were in {}; set TESTBED_KEEP=1 to keep them", logs.display());
        if let Some(gate) = self.gate.lock().unwrap().as_ref() {
            let log = fs::read_to_string(&gate.log).unwrap_or_default();
            let lines: Vec<_> = log.lines().rev().take(15).collect();
            lines.iter().rev().for_each(|line| eprintln!("gatehouse: {line}"));
        }
    }
}

/// One call of kubectl.
pub struct Kubectl {
    command: Command,
    input: String,
}

impl Kubectl {
    /// What it reads with `-f -`.
    pub fn input(mut self, text: impl Into<String>) -> Self {
        self.input = text.into();
        self.command.args(["-f", "-"]);
        self
    }

    fn run(mut self) -> (bool, String, String) {
        let child = self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("kubectl starts");
        child.stdin.take().expect("piped").write_all(self.input.as_bytes()).expect("kubectl reads");
        let output = child.wait_with_output().expect("kubectl ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("kubectl writes UTF-8");
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    /// It works; its output.
    #[track_caller]
    pub fn ok(self) -> String {
        self.attempt().unwrap_or_else(|why| panic!("{why}"))
    }

    /// Its output; what it says, where it fails.
    pub fn attempt(self) -> Result<String, String> {
        let words = format!("{:?}", self.command.get_args().collect::<Vec<_>>());
        let (worked, output, errors) = self.run();
        if worked { Ok(output) } else { Err(format!("kubectl {words}: {errors}")) }
    }

    /// It works; what it prints beside its output: warnings.
    #[track_caller]
    pub fn warnings(self) -> String {
        let (worked, _, errors) = self.run();
        assert!(worked, "{errors}");
        errors
    }

    /// It fails; what it says.
    #[track_caller]
    pub fn fails(self) -> String {
        let words = format!("{:?}", self.command.get_args().collect::<Vec<_>>());
        let (worked, output, errors) = self.run();
        assert!(!worked, "kubectl {words} should fail, and says {output}{errors}");
        errors
    }
}

/// A namespace of one test's own.
pub struct Namespace<'a> {
    pub bed: &'a Bed,
    pub name: String,
}

impl Namespace<'_> {
    /// kubectl in this namespace.
    pub fn kubectl(&self, words: &[&str]) -> Kubectl {
        let mut all = vec!["--namespace", &self.name];
        all.extend(words);
        self.bed.kubectl(&all)
    }

    /// One object as it is served: `get("tdsets.v1.gatehouse.dev", "shop")`.
    #[track_caller]
    pub fn get(&self, resource: &str, name: &str) -> Value {
        serde_json::from_str(
            &self.kubectl(&["get", resource, name, "-o", "json", "--show-managed-fields"]).ok(),
        )
        .expect("JSON")
    }

    /// Waits until a field has a value, watching: `until("deployment/shop", "{.spec.replicas}", "5")`.
    #[track_caller]
    pub fn until(&self, object: &str, field: &str, value: &str) {
        // kubectl gives up at once on what is not there yet.
        eventually(|| self.kubectl(&["get", object]).attempt());
        let condition = format!("--for=jsonpath={field}={value}");
        self.kubectl(&["wait", &condition, object, &format!("--timeout={}s", PATIENCE.as_secs())]).ok();
    }

    /// Waits until an object is gone.
    #[track_caller]
    pub fn until_gone(&self, object: &str) {
        self.kubectl(&["wait", "--for=delete", object, &format!("--timeout={}s", PATIENCE.as_secs())]).ok();
    }

    /// Waits until an object is there.
    #[track_caller]
    pub fn until_created(&self, object: &str) {
        self.kubectl(&["wait", "--for=create", object, &format!("--timeout={}s", PATIENCE.as_secs())]).ok();
    }
}

/// Waits until `look` finds what it looks for; what it said last, where it does not.
#[track_caller]
pub fn eventually<T>(look: impl Fn() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(last) => assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {last}"),
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// Waits until the API server serves a definition. `kubectl wait` ends with an error where it has no conditions yet.
#[track_caller]
pub fn until_established(cluster: &ControlPlane, definition: &str) {
    eventually(|| {
        let output = cluster.kubectl().args(["get", "crd", definition, "--output=json"]).output();
        let output = output.map_err(|error| error.to_string())?;
        let object: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        let conditions = object["status"]["conditions"].as_array();
        let is_so = |one: &Value| one["type"] == "Established" && one["status"] == "True";
        if conditions.is_some_and(|all| all.iter().any(is_so)) { Ok(()) } else { Err(object.to_string()) }
    });
}

/// A gatehouse that runs as its ServiceAccount, reached by the API server on this machine. Dropped, it is killed.
pub struct Gate {
    shell: Child,
    pid: u32,
    pub log: PathBuf,
    pub address: SocketAddr,
    pub health: SocketAddr,
}

impl Gate {
    /// Starts one and waits until the cluster points at it.
    pub fn install(cluster: &ControlPlane) -> Result<Self, String> {
        Self::install_with(cluster, &[])
    }

    /// The same with more options.
    pub fn install_with(cluster: &ControlPlane, options: &[&str]) -> Result<Self, String> {
        let kubeconfig = cluster
            .kubeconfig_for_service_account(NAMESPACE, "gatehouse")
            .map_err(|error| error.to_string())?;
        let mut words = vec!["serve", "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"];
        words.extend([
            "--webhook-url",
            "https://127.0.0.1:0",
            "--drain-delay",
            "100ms",
            "--drain-deadline",
            "1s",
        ]);
        words.extend(options);
        let mut gate = Self::spawn(cluster.folder(), Some(&kubeconfig), &words)?;
        gate.wait_for("installed")?;
        Ok(gate)
    }

    /// Starts gatehouse with these words, and waits until it listens. It ends when this process does: a shell
    /// reads from a pipe that we hold, and kills it when the pipe breaks. The shell ends when gatehouse does, and as
    /// it did.
    pub fn spawn(folder: &Path, kubeconfig: Option<&Path>, words: &[&str]) -> Result<Self, String> {
        const SCRIPT: &str = r#"
            exec 3<&0
            "$@" </dev/null >/dev/null 3<&- &
            gate=$!
            echo $gate
            (read -r _ <&3; kill -9 $gate) >/dev/null 2>&1 &
            watcher=$!
            wait $gate
            code=$?
            kill $watcher
            exit $code"#;
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let log = folder.join(format!("gatehouse-{}.log", NEXT.fetch_add(1, Ordering::Relaxed)));
        let file = File::create(&log).map_err(|error| error.to_string())?;
        let mut command = Command::new("sh");
        command
            .args(["-c", SCRIPT, "sh", env!("CARGO_BIN_EXE_gatehouse"), "--log-format", "json"])
            .args(words);
        command.env_remove("KUBECONFIG").env("GATEHOUSE_LOG", "info,gatehouse=debug");
        if let Some(kubeconfig) = kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file).spawn();
        let mut shell = started.map_err(|error| error.to_string())?;
        let mut line = String::new();
        let output = shell.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        let pid = line.trim().parse().map_err(|_| format!("no process id: {line:?}"))?;
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut gate = Self { shell, pid, log, address: nowhere, health: nowhere };
        let serving = gate.wait_for("serving")?;
        let address =
            |field: &str| serving[field].as_str().and_then(|text| text.parse().ok()).ok_or("no address");
        (gate.address, gate.health) = (address("address")?, address("health")?);
        Ok(gate)
    }

    /// The first log line with that message.
    pub fn wait_for(&mut self, message: &str) -> Result<Value, String> {
        let begun = Instant::now();
        loop {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            if let Some(line) = lines.find(|line| line["message"] == message) {
                return Ok(line);
            }
            let ended = self.shell.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || begun.elapsed() > PATIENCE {
                return Err(format!("gatehouse does not say {message:?}; its log:\n{log}"));
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.pid.to_string()]).status();
        assert!(sent.expect("kill runs").success(), "gatehouse has ended before");
    }

    /// Ends it as a crash would.
    pub fn kill(mut self) {
        self.signal("-KILL");
        let _ended = self.shell.wait();
    }

    /// The operator's process, while it runs.
    pub fn operator(&self) -> Option<u32> {
        // A child is listed with the thread that started it.
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid)).ok()?;
        let children = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children")));
        let children: Vec<_> = children.flatten().collect();
        children.iter().flat_map(|line| line.split_whitespace()).find_map(|pid| pid.parse().ok())
    }

    /// Ends the operator's process as a crash would; the gate goes on.
    pub fn kill_operator(&self) {
        let operator = self.operator().expect("the operator's process runs");
        let sent = Command::new("kill").args(["-KILL", &operator.to_string()]).status();
        assert!(sent.expect("kill runs").success(), "the operator has ended before");
    }

    /// Ends it as an update would, and waits until it has drained; whether it ended well.
    pub fn stop(self) -> bool {
        self.terminate();
        self.ended_well()
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Waits until it has ended; whether it ended well.
    pub fn ended_well(mut self) -> bool {
        // Waiting would close the pipe.
        let pipe = self.shell.stdin.take();
        let ended = self.shell.wait().expect("the shell ends");
        drop(pipe);
        ended.success()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Closing the pipe makes the shell kill it.
        drop(self.shell.stdin.take());
        let _ended = self.shell.wait();
    }
}
