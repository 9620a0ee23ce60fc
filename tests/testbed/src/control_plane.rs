//! The control plane, or with a node the whole cluster, as tests hold it.

mod node;

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Options, ProcessId,
    command::run,
    component::Component,
    files::{own_folder, private_folder, remove_folder},
    kubeconfig::{self, Cluster, User},
    launch::Running,
    node::{Ground, Parts},
    plan::Plan,
    reaper::Reaper,
    teardown,
    tools::Tools,
};

/// With clients connected it would take a minute to end by itself.
const API_SERVER_GRACE: Duration = Duration::from_secs(2);

/// A control plane that runs, or the cluster of others that stands for one. Dropped, it ends what it started
/// and removes its folder, unless that is to be kept.
#[derive(Debug)]
pub struct ControlPlane {
    kind: Kind,
    folder: PathBuf,
    kubeconfig: PathBuf,
    cluster: Cluster,
    user: User,
    kubectl: PathBuf,
    tools: Tools,
    kubeconfigs: AtomicU32,
}

#[derive(Debug)]
enum Kind {
    Ours(Box<Ours>),
    Others,
}

#[derive(Debug)]
struct Ours {
    plan: Plan,
    /// None once it has been detached.
    state: Mutex<Option<State>>,
}

/// Dropped in this order: when the reaper looks, the components are gone, and the folder is all it has to do.
#[derive(Debug)]
struct State {
    running: Running,
    ground: Option<Ground>,
    reaper: Reaper,
}

/// A process that was started for a control plane.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunningProcess {
    /// The name of its program, or the one it was started under.
    pub label: String,
    /// Which process it is.
    #[serde(flatten)]
    pub id: ProcessId,
    /// Where its output goes.
    pub log: PathBuf,
}

impl ControlPlane {
    /// Starts a control plane and waits, a minute at most, until it is ready and its default namespace is
    /// there.
    ///
    /// # Errors
    /// A binary is missing, a component ended, or a minute was too short; the latter two with the logs' last
    /// lines.
    pub fn start(options: &Options) -> Result<Self, Error> {
        let assets = options.assets.as_deref();
        let tools = Tools::of(options.version, assets);
        if let Some(kubeconfig) = &options.existing {
            return Self::existing(kubeconfig, options.folder.as_deref(), tools);
        }
        let parts = if options.node { Some(Parts::find(&tools)?) } else { None };
        let folder = own_folder(options.folder.as_deref())?;
        let mut reaper = Reaper::start((!options.keep).then_some(folder.as_path()))?;
        teardown::record_boot(&folder)?;
        let mut ground = None;
        if options.node {
            let name = options.name.as_deref().unwrap_or("unnamed");
            ground = Some(Ground::lay(&folder, name, &mut reaper)?);
        }
        let node = parts.zip(ground.as_ref().map(|ground| ground.site.clone()));
        let mut plan = Plan::new(options, &tools, &folder, node)?;
        let running = plan.launch(&mut reaper)?;
        let state = State { running, ground, reaper };
        Ok(Self {
            kubeconfig: plan.kubeconfig(),
            cluster: plan.cluster(),
            user: plan.admin(),
            kubectl: tools.path("kubectl"),
            kind: Kind::Ours(Box::new(Ours { plan, state: Mutex::new(Some(state)) })),
            folder,
            tools,
            kubeconfigs: AtomicU32::new(0),
        })
    }

    /// Takes a cluster of others, for which nothing is started and nothing is asked of its API server.
    fn existing(kubeconfig: &Path, folder: Option<&Path>, tools: Tools) -> Result<Self, Error> {
        let kubeconfig = std::path::absolute(kubeconfig)
            .map_err(Error::io(format!("finding {}", kubeconfig.display())))?;
        let program = tools.any_kubectl();
        let folder = own_folder(folder)?;
        let mut command = kubeconfig::kubectl(&program, &kubeconfig, &folder);
        command.args(["config", "view", "--minify", "--flatten", "--raw", "--output=json"]);
        let parsed = run(&mut command).and_then(|text| {
            kubeconfig::parse(&text).map_err(|source| Error::BadRecord { path: kubeconfig.clone(), source })
        });
        let (cluster, user) = parsed.inspect_err(|_| drop(remove_folder(&folder)))?;
        Ok(Self {
            kind: Kind::Others,
            folder,
            kubeconfig,
            cluster,
            user,
            kubectl: program,
            tools,
            kubeconfigs: AtomicU32::new(0),
        })
    }

    /// The kubeconfig of its administrator: group `system:masters` if it is ours.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The URL of its API server.
    #[must_use]
    pub fn server(&self) -> &str {
        self.cluster.server()
    }

    /// The folder of its logs and other files; for a cluster of others, a folder for kubeconfigs and caches.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether others run this cluster.
    #[must_use]
    pub fn is_existing(&self) -> bool {
        matches!(self.kind, Kind::Others)
    }

    /// Whether controllers work: without them Deployments and Jobs get no Pods and garbage is not collected.
    /// A cluster of others is taken to have them.
    #[must_use]
    pub fn has_controller_manager(&self) -> bool {
        match &self.kind {
            Kind::Ours(ours) => ours.plan.has_controller_manager(),
            Kind::Others => true,
        }
    }

    /// kubectl as the administrator.
    #[must_use]
    pub fn kubectl(&self) -> Command {
        self.kubectl_as(&self.kubeconfig)
    }

    /// kubectl with a kubeconfig of this control plane.
    #[must_use]
    pub fn kubectl_as(&self, kubeconfig: &Path) -> Command {
        kubeconfig::kubectl(&self.kubectl, kubeconfig, &self.folder)
    }

    /// etcdctl against its etcd, unless others run it.
    #[must_use]
    pub fn etcdctl(&self) -> Option<Command> {
        let Kind::Ours(ours) = &self.kind else {
            return None;
        };
        let mut command = Command::new(self.tools.path("etcdctl"));
        command.envs(ours.plan.etcdctl_environment());
        Some(command)
    }

    /// Where the binary of this name is, whether or not it has been built.
    #[must_use]
    pub fn tool(&self, name: &str) -> PathBuf {
        if name == "kubectl" { self.kubectl.clone() } else { self.tools.path(name) }
    }

    /// A kubeconfig that speaks as this user with exactly these groups (and `system:authenticated`), by
    /// impersonation: RBAC and admission see that user and not the administrator.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn kubeconfig_for(&self, user: &str, groups: &[&str]) -> Result<PathBuf, Error> {
        self.write_kubeconfig(&self.user.impersonating(user, groups))
    }

    /// A kubeconfig that presents this bearer token.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn kubeconfig_with_token(&self, token: &str) -> Result<PathBuf, Error> {
        self.write_kubeconfig(&User::with_token(token))
    }

    /// A kubeconfig with a fresh token of a ServiceAccount, which must exist.
    ///
    /// # Errors
    /// The API server gives no token, or the file cannot be written.
    pub fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<PathBuf, Error> {
        let mut command = self.kubectl();
        command.args(["create", "token", name, "--namespace", namespace]);
        self.kubeconfig_with_token(run(&mut command)?.trim())
    }

    /// What was started for it and has not been stopped, oldest first.
    #[must_use]
    pub fn processes(&self) -> Vec<RunningProcess> {
        let Kind::Ours(ours) = &self.kind else {
            return Vec::new();
        };
        let state = lock(&ours.state);
        let ground = state.iter().filter_map(|state| state.ground.as_ref()?.holder());
        let components = state.iter().flat_map(|state| state.running.components());
        ground
            .chain(components)
            .map(|component| RunningProcess {
                label: component.label().to_owned(),
                id: component.process().clone(),
                log: component.log().to_owned(),
            })
            .collect()
    }

    /// Stops the API server as an update would, by asking it: it takes no new connections from then on. It is
    /// killed after two seconds.
    ///
    /// # Errors
    /// The cluster is one of others, or the process outlives being killed.
    pub fn stop_api_server(&self) -> Result<(), Error> {
        self.with_state(|_, state| {
            state.running.api_server.take().map_or(Ok(()), |component| component.stop(API_SERVER_GRACE))
        })
    }

    /// Kills the API server, as a crash would.
    ///
    /// # Errors
    /// The cluster is one of others.
    pub fn kill_api_server(&self) -> Result<(), Error> {
        self.with_state(|_, state| {
            drop(state.running.api_server.take());
            Ok(())
        })
    }

    /// Starts a stopped API server, with the same address and data, and waits until it is ready.
    ///
    /// # Errors
    /// The cluster is one of others, or the API server does not become ready.
    pub fn start_api_server(&self) -> Result<(), Error> {
        self.with_state(|plan, state| {
            if state.running.api_server.is_none() {
                let component: Component = plan.relaunch_api_server(&mut state.reaper)?;
                state.running.api_server = Some(component);
            }
            Ok(())
        })
    }

    /// Stops the API server and starts it with the same address and data.
    ///
    /// # Errors
    /// As of [`ControlPlane::stop_api_server`] and [`ControlPlane::start_api_server`].
    pub fn restart_api_server(&self) -> Result<(), Error> {
        self.stop_api_server()?;
        self.start_api_server()
    }

    /// Leaves everything running without us, and the folder in place. The caller has recorded
    /// [`ControlPlane::processes`].
    ///
    /// # Errors
    /// What watches over the processes has ended.
    pub fn detach(self) -> Result<(), Error> {
        let Kind::Ours(ours) = &self.kind else {
            return Ok(());
        };
        let Some(State { running, ground, reaper }) = lock(&ours.state).take() else {
            return Ok(());
        };
        reaper.release()?;
        running.let_go();
        if let Some(ground) = ground {
            ground.let_go();
        }
        Ok(())
    }

    fn with_state(&self, work: impl FnOnce(&Plan, &mut State) -> Result<(), Error>) -> Result<(), Error> {
        let Kind::Ours(ours) = &self.kind else {
            return Err(Error::NotOurs);
        };
        let mut state = lock(&ours.state);
        state.as_mut().map_or(Err(Error::NotOurs), |state| work(&ours.plan, state))
    }

    fn write_kubeconfig(&self, user: &User) -> Result<PathBuf, Error> {
        let folder = self.folder.join("kubeconfigs");
        private_folder(&folder)?;
        let path = folder.join(self.kubeconfigs.fetch_add(1, Ordering::Relaxed).to_string());
        kubeconfig::write(&path, &self.cluster, user)?;
        Ok(path)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if self.is_existing() {
            let _ = remove_folder(&self.folder);
        }
    }
}

impl fmt::Display for ControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "control plane at {}", self.server())
    }
}

fn lock(state: &Mutex<Option<State>>) -> MutexGuard<'_, Option<State>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
