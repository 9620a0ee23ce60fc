//! Database servers for one run of the tests.
//!
//! Guarantees: each has its data in a folder that goes with it, and ends with the process of the tests, however that ends.
//! One that a test has stopped or killed starts again on the same port.
//! Its superuser is `root`, without a password on the loopback interface; users of tests need theirs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rcgen::{CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};
use tempfile::TempDir;

use crate::ports::free_port;
use crate::process;
use crate::program::Program;
use crate::wait::eventually;

/// Where Debian has the programs of PostgreSQL.
const POSTGRES: &str = "/usr/lib/postgresql/15/bin";
/// PostgreSQL refuses to run as root, and MariaDB need not.
const USER: &str = "nobody";
/// Data that goes with the tests need not outlive the machine: each table waits for the disk otherwise.
const WITHOUT_SYNC: [&str; 3] =
    ["--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--innodb-buffer-pool-size=32M"];
/// Where data lies that goes with the tests, if that has so much room: a folder in memory, since tests make databases of
/// hundreds of files by the hundred.
const MEMORY: &str = "/dev/shm";
const ROOM: u64 = 4 << 30;
/// What installs what is missing.
const HINT: &str = "run tools/database-packages.sh";

/// All servers, side by side.
#[derive(Debug)]
pub struct Servers {
    /// PostgreSQL.
    pub postgres: Server,
    /// MariaDB.
    pub mariadb: Server,
    /// MySQL, where it was asked for.
    pub mysql: Option<Server>,
}

/// A server.
#[derive(Debug)]
pub struct Server {
    /// As `spec.database.engine` has it.
    pub engine: &'static str,
    /// The port, on each address.
    pub port: u16,
    /// Where its certificates and its log are.
    pub folder: TempDir,
    command: Command,
    program: Mutex<Option<Program>>,
    /// The folder that MySQL was unpacked into.
    unpacked: Option<PathBuf>,
}

impl Server {
    /// Starts them on the loopback interface, and on another address of this machine.
    ///
    /// # Errors
    /// A program is missing, or does not start.
    pub fn start_all(address: Option<&str>) -> Result<Servers, String> {
        let addresses = ["127.0.0.1"].into_iter().chain(address).collect::<Vec<_>>().join(",");
        std::thread::scope(|scope| {
            let mariadb = scope.spawn(|| Self::mariadb(&addresses));
            let postgres = Self::postgres(&addresses)?;
            let mariadb = mariadb.join().map_err(|_| "mariadb panicked".to_owned())??;
            Ok(Servers { postgres, mariadb, mysql: None })
        })
    }

    /// Starts MySQL on the loopback interface, which is unpacked first where it is not there (`tools/mysql.sh`).
    ///
    /// # Errors
    /// It cannot be had, or does not start.
    pub fn mysql() -> Result<Self, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/mysql.sh");
        let unpacked = Command::new(&script).output();
        let unpacked = unpacked.map_err(|error| format!("{}: {error}", script.display()))?;
        let [printed, said] = [&unpacked.stdout, &unpacked.stderr].map(|text| String::from_utf8_lossy(text));
        let root = match printed.lines().last() {
            Some(root) if unpacked.status.success() => PathBuf::from(root),
            _ => return Err(format!("{}: {printed}{said}", script.display())),
        };
        let (folder, data) = room()?;
        // The folder may be in one that only its owner enters, so that no other user can run it.
        if is_root() {
            ran(Command::new("chown").arg("root").arg(&data))?;
        }
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        let loader = libraries.join("ld-linux-x86-64.so.2");
        let server = || {
            let mut command = alone(None, &loader.display().to_string(), folder.path());
            command.arg("--library-path").arg(&libraries).arg(root.join("usr/sbin/mysqld"));
            command.args(["--no-defaults", "--user=root", "--secure-file-priv=NULL"]);
            for (setting, path) in [
                ("basedir", root.join("usr")),
                ("lc-messages-dir", root.join("usr/share/mysql")),
                ("plugin-dir", root.join("usr/lib/mysql/plugin")),
                ("datadir", data.clone()),
                ("tmpdir", folder.path().to_owned()),
                ("socket", folder.path().join("socket")),
                ("pid-file", folder.path().join("pid")),
            ] {
                command.arg(format!("--{setting}={}", path.display()));
            }
            command
        };
        ran(server().arg("--initialize-insecure"))?;
        let port = free_port()?;
        let mut command = server();
        command.args(["--skip-log-bin", "--mysqlx=OFF", "--bind-address=127.0.0.1"]).args(WITHOUT_SYNC);
        command.arg(format!("--port={port}"));
        let server = Self::started("MySQL", folder, port, command)?;
        Ok(Self { unpacked: Some(root), ..server })
    }

    /// Starts PostgreSQL for one test alone, which may stop it.
    ///
    /// # Errors
    /// It does not start.
    pub fn postgres_alone() -> Result<Self, String> {
        Self::postgres("127.0.0.1")
    }

    fn postgres(addresses: &str) -> Result<Self, String> {
        let (folder, data) = room()?;
        let initdb = format!("{POSTGRES}/initdb");
        let words =
            ["--auth=trust", "--username=root", "--no-sync", "--encoding=UTF8", "--locale=C", "--pgdata"];
        ran(as_nobody(&initdb, folder.path()).args(words).arg(&data))?;
        certificates(folder.path())?;
        let hba = "local all root trust\nhost all root 127.0.0.1/32 trust\n\
                   hostssl all by_certificate 127.0.0.1/32 cert\nhost all all all scram-sha-256\n";
        fs::write(data.join("pg_hba.conf"), hba).map_err(|error| error.to_string())?;
        let port = free_port()?;
        let mut command = as_nobody(&format!("{POSTGRES}/postgres"), folder.path());
        let settings = [
            format!("port={port}"),
            format!("listen_addresses={addresses}"),
            format!("unix_socket_directories={}", folder.path().display()),
            "fsync=off".to_owned(),
            "max_wal_size=128MB".to_owned(),
            "max_connections=200".to_owned(),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", folder.path().join("server.crt").display()),
            format!("ssl_key_file={}", folder.path().join("server.key").display()),
            format!("ssl_ca_file={}", folder.path().join("ca.crt").display()),
        ];
        command.arg("-D").arg(&data);
        for setting in settings {
            command.arg("-c").arg(setting);
        }
        Self::started("PostgreSQL", folder, port, command)
    }

    fn mariadb(addresses: &str) -> Result<Self, String> {
        let (folder, data) = room()?;
        let mut install = as_nobody("mariadb-install-db", folder.path());
        install.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
        ran(install.arg(format!("--datadir={}", data.display())))?;
        certificates(folder.path())?;
        let port = free_port()?;
        let mut command = as_nobody("mariadbd", folder.path());
        command.args(["--no-defaults", "--skip-log-bin"]).arg(format!("--bind-address={addresses}"));
        command.args(WITHOUT_SYNC).arg("--skip-sync-frm");
        command.arg(format!("--datadir={}", data.display())).arg(format!("--port={port}"));
        command.arg(format!("--socket={}", folder.path().join("socket").display()));
        command.arg(format!("--tmpdir={}", folder.path().display()));
        for (setting, file) in [("ssl-ca", "ca.crt"), ("ssl-cert", "server.crt"), ("ssl-key", "server.key")] {
            command.arg(format!("--{setting}={}", folder.path().join(file).display()));
        }
        Self::started("MariaDB", folder, port, command)
    }

    fn started(engine: &'static str, folder: TempDir, port: u16, command: Command) -> Result<Self, String> {
        let program = Program::start(&command, &folder.path().join("log"))?;
        let server =
            Self { engine, port, folder, command, program: Mutex::new(Some(program)), unpacked: None };
        server.until_it_answers();
        Ok(server)
    }

    fn until_it_answers(&self) {
        let engine = self.engine;
        eventually(|| self.try_sql("", "SELECT 1").map_err(|error| format!("{engine}: {error}; {HINT}")));
    }

    /// Stops it as its administrator does: it ends what its sessions do, and tells their clients.
    pub fn stop(&self) {
        self.end(if self.engine == "PostgreSQL" { process::interrupt } else { process::terminate });
    }

    /// Ends it as a crash would.
    pub fn kill(&self) {
        self.end(process::kill);
    }

    /// Starts it again with the data that it has.
    pub fn start(&self) {
        let program = Program::resume(&self.command, &self.folder.path().join("log"));
        *self.locked() = Some(program.unwrap_or_else(|why| panic!("{why}")));
        self.until_it_answers();
    }

    fn end(&self, signal: fn(u32)) {
        let program = self.locked().take().expect("it runs");
        // Behind unshare, where that was needed: it ends with the first process of its namespace.
        let own =
            if is_root() { program.id().child().expect("unshare has a child") } else { program.id().clone() };
        signal(own.pid());
        let _code = program.code();
    }

    fn locked(&self) -> MutexGuard<'_, Option<Program>> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a statement returns, in a database, or in that of the superuser.
    ///
    /// # Errors
    /// The server does not answer, or refuses it.
    pub fn try_sql(&self, database: &str, text: &str) -> Result<Vec<Vec<String>>, sqlx::Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            if self.engine == "PostgreSQL" {
                let database = if database.is_empty() { "postgres" } else { database };
                let mut connection = self.postgres_options().database(database).connect().await?;
                let rows = sqlx::raw_sql(AssertSqlSafe(text.to_owned())).fetch_all(&mut connection).await?;
                Ok(rows
                    .iter()
                    .map(|row| {
                        texts(row.len(), |at| row.try_get_unchecked(at).expect("what the driver promises"))
                    })
                    .collect())
            } else {
                let mut connection = self.mysql_options(database).connect().await?;
                let rows = sqlx::raw_sql(AssertSqlSafe(text.to_owned())).fetch_all(&mut connection).await?;
                Ok(rows
                    .iter()
                    .map(|row| {
                        texts(row.len(), |at| row.try_get_unchecked(at).expect("what the driver promises"))
                    })
                    .collect())
            }
        })
    }

    /// The same for one that has to go well.
    #[track_caller]
    pub fn sql(&self, database: &str, text: &str) -> Vec<Vec<String>> {
        self.try_sql(database, text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Makes a database, and a user of its own who has this password and may do anything in it.
    pub fn make(&self, database: &str, user: &str, password: &str) {
        let quoted = password.replace('\'', "''");
        if self.engine == "PostgreSQL" {
            self.sql("", &format!("CREATE ROLE {user} LOGIN PASSWORD '{quoted}'"));
            self.sql("", &format!("CREATE DATABASE {database} OWNER {user}"));
            self.sql(database, &format!("GRANT ALL ON SCHEMA public TO {user}"));
        } else {
            let quoted = quoted.replace('\\', r"\\");
            self.sql("", &format!("CREATE DATABASE {database}"));
            self.sql("", &format!("CREATE USER {user}@'%' IDENTIFIED BY '{quoted}'"));
            self.sql("", &format!("GRANT ALL ON {database}.* TO {user}@'%'"));
        }
    }

    /// A program of the engine, such as `psql` or `mariadb-dump`, with the options that lead its superuser to this server.
    pub fn client(&self, program: &str) -> Command {
        if self.engine == "PostgreSQL" {
            let mut command = Command::new(format!("{POSTGRES}/{program}"));
            command.args(["--host=127.0.0.1", "--username=root"]).arg(format!("--port={}", self.port));
            return command;
        }
        let mut command = match &self.unpacked {
            Some(root) => unpacked(root, &root.join("usr/bin").join(program)),
            None => Command::new(program),
        };
        command.args(["--no-defaults", "--host=127.0.0.1", "--user=root", "--default-character-set=utf8mb4"]);
        command.arg(if self.unpacked.is_some() { "--ssl-mode=DISABLED" } else { "--skip-ssl" });
        command.arg(format!("--port={}", self.port));
        command
    }

    /// How the superuser comes to PostgreSQL.
    pub fn postgres_options(&self) -> PgConnectOptions {
        let options =
            PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(self.port).username("root");
        options.ssl_mode(PgSslMode::Disable)
    }

    /// How the superuser comes to MariaDB and MySQL.
    pub fn mysql_options(&self, database: &str) -> MySqlConnectOptions {
        let options = MySqlConnectOptions::new().host("127.0.0.1").port(self.port).username("root");
        let options = options.ssl_mode(MySqlSslMode::Disabled);
        if database.is_empty() { options } else { options.database(database) }
    }
}

/// A program of a folder that has the libraries of that program, too.
fn unpacked(root: &Path, program: &Path) -> Command {
    let libraries = root.join("usr/lib/x86_64-linux-gnu");
    let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
    command.arg("--library-path").arg(&libraries).arg(program);
    command
}

fn texts(count: usize, get: impl Fn(usize) -> Option<String>) -> Vec<String> {
    (0..count).map(|at| get(at).unwrap_or_else(|| "NULL".to_owned())).collect()
}

/// A folder that the server's user may reach, and one for its data that is the user's.
fn room() -> Result<(TempDir, PathBuf), String> {
    let failed = |error: std::io::Error| error.to_string();
    let has_room = rustix::fs::statvfs(MEMORY).is_ok_and(|place| place.f_bavail * place.f_frsize >= ROOM);
    let place = if has_room { PathBuf::from(MEMORY) } else { std::env::temp_dir() };
    let folder = tempfile::Builder::new().prefix("gatehouse-migrate-").tempdir_in(place).map_err(failed)?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).map_err(failed)?;
    let data = folder.path().join("data");
    fs::create_dir(&data).map_err(failed)?;
    owned(folder.path())?;
    owned(&data)?;
    Ok((folder, data))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn owned(path: &Path) -> Result<(), String> {
    if !is_root() {
        return Ok(());
    }
    ran(Command::new("chown").arg(USER).arg(path))
}

fn as_nobody(program: &str, folder: &Path) -> Command {
    alone(Some(USER), program, folder)
}

/// A program, as another user where one is named and this one may.
fn alone(user: Option<&str>, program: &str, folder: &Path) -> Command {
    let mut command = if is_root() {
        // In a process namespace of its own, whose first process ends with its parent: a process of PostgreSQL that
        // sleeps does not see that the first one was killed.
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "setpriv", "--pdeathsig", "KILL"]);
        if let Some(user) = user {
            command.args(["--reuid", user, "--regid", "nogroup", "--clear-groups"]);
        }
        command.arg(program);
        command
    } else {
        Command::new(program)
    };
    let path = std::env::var("PATH").unwrap_or_default();
    command.current_dir(folder).env("HOME", folder).env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

fn ran(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}; {HINT}"))?;
    if output.status.success() {
        return Ok(());
    }
    let [said, failed] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    Err(format!("{command:?}: {said}{failed}; {HINT}"))
}

/// An authority, a certificate for 127.0.0.1 and one of a client, and another authority.
fn certificates(folder: &Path) -> Result<(), String> {
    let failed = |error: rcgen::Error| error.to_string();
    let authority = |name: &str| {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key)?;
        Ok((certificate.pem(), Issuer::new(params, key)))
    };
    let (pem, issuer) = authority("tests").map_err(failed)?;
    let (other, _) = authority("others").map_err(failed)?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| error.to_string())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(|error| error.to_string())?;
        owned(&path)
    };
    write("ca.crt", &pem)?;
    write("other.crt", &other)?;
    for (file, name) in [("server", "127.0.0.1"), ("client", "by_certificate")] {
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names = vec![SanType::IpAddress([127, 0, 0, 1].into())];
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
        write(&format!("{file}.crt"), &certificate.pem())?;
        write(&format!("{file}.key"), &key.serialize_pem())?;
    }
    Ok(())
}
