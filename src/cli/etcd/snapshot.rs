//! `gatehouse etcd snapshot`: what the Jobs of an EtcdCluster run to take a backup.
//!
//! Guarantees: the result is one line of JSON on standard output and in the termination message, and the exit code: 0
//! where there is another backup that was verified, and only then.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::super::duration;
use super::super::ending::{FAILED, Failure, OK, USAGE};
use super::super::output;
use super::pod::leave_message;
use crate::kinds::etcdcluster::backup::decision::{Clock, Retention, is_of_schedule};
use crate::kinds::etcdcluster::backup::manifest::{Owner, Report};
use crate::kinds::etcdcluster::backup::{self, Request, take};
use crate::kinds::etcdcluster::etcd::Tls;
use crate::kinds::etcdcluster::names;
use crate::runtime::clock;
use crate::runtime::signals::Signals;
use crate::runtime::supervisor::chain;

/// 128 and the number of SIGTERM.
const TERMINATED: u8 = 143;

/// The options of `gatehouse etcd snapshot`.
#[derive(Args, Debug)]
pub struct Options {
    /// URL of a member for clients; once for each member.
    #[arg(long = "endpoint", value_name = "URL", required = true)]
    endpoints: Vec<String>,
    /// Folder with ca.crt, tls.crt and tls.key. Absent: plain HTTP.
    #[arg(long, value_name = "FOLDER")]
    tls: Option<PathBuf>,
    /// Folder that the backup goes to. It is made where it is not there.
    #[arg(long, value_name = "FOLDER")]
    destination: PathBuf,
    /// Namespace of the EtcdCluster.
    #[arg(long, value_name = "NAME")]
    namespace: String,
    /// Name of the EtcdCluster.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// Uid of the EtcdCluster: whose backups are counted, and deleted.
    #[arg(long, value_name = "UID")]
    cluster: String,
    /// Identity of the etcd cluster, in hexadecimal. No backup is taken of another one.
    #[arg(long, value_name = "ID", value_parser = identity)]
    cluster_id: u64,
    /// Name of the Job that this runs in, which tells whether the schedule asked for it, and when. Absent: it did, now.
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// How many verified backups of the schedule are kept, at least, and as many of the others. Without this and
    /// --max-age: all.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    keep_last: Option<u32>,
    /// Up to which age backups are kept, at least, such as 720h.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    max_age: Option<Duration>,
    /// What a kubelet reads when the container has ended.
    #[arg(long, value_name = "FILE", default_value = "/dev/termination-log")]
    termination_log: PathBuf,
}

/// Takes a backup.
///
/// # Errors
/// There is no runtime for it. The report and the exit code say all else.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (report, code) = runtime.block_on(taken(options))?;
    // A thread may still try to write to where nothing can be written.
    runtime.shutdown_background();
    let line = report.line();
    leave_message(&options.termination_log, &line);
    output::print(&format!("{line}\n"))?;
    if let Report::Failed { message } = report {
        output::error(message);
    }
    Ok(ExitCode::from(code))
}

async fn taken(options: &Options) -> Result<(Report, u8), Failure> {
    let mut signals = Signals::listen()?;
    let tls = match options.tls.as_deref().map(tls).transpose() {
        Ok(tls) => tls,
        Err(message) => return Ok((Report::Failed { message }, USAGE)),
    };
    let (job, cron_job, now) = (options.job.as_deref(), names::backup(&options.name), clock::now());
    let request = Request {
        endpoints: options.endpoints.clone(),
        tls,
        folder: options.destination.clone(),
        owner: Owner {
            namespace: options.namespace.clone(),
            name: options.name.clone(),
            uid: options.cluster.clone(),
        },
        cluster_id: options.cluster_id,
        retention: Retention {
            keep_last: options.keep_last.and_then(|count| usize::try_from(count).ok()),
            max_age: options.max_age,
        },
        on_demand: job.is_some_and(|job| !is_of_schedule(job, &cron_job)),
        clock: Clock::of(job, &cron_job, now),
    };
    tokio::select! {
        taken = take(&request) => Ok(match taken {
            Ok(success) => (Report::Succeeded(Box::new(success)), OK),
            Err(error) => {
                let code = if matches!(error, backup::Error::Endpoint(_)) { USAGE } else { FAILED };
                (Report::Failed { message: chain(&error) }, code)
            }
        }),
        signal = signals.next() => {
            Ok((Report::Failed { message: format!("it was ended by {signal}") }, TERMINATED))
        }
    }
}

/// What a Secret of type kubernetes.io/tls has, mounted.
fn tls(folder: &Path) -> Result<Tls, String> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|error| format!("failed to read {}: {error}", path.display()))
    };
    let (authority, certificate, key) = (read("ca.crt")?, read("tls.crt")?, read("tls.key")?);
    Tls::from_pem(&authority, Some((&certificate, &key)))
        .map_err(|error| format!("{}: {}", folder.display(), chain(&error)))
}

fn identity(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|_| "expected an identity in hexadecimal".to_owned())
}
