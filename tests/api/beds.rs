//! The control planes that tests share.
//!
//! Guarantees: one is started when the first test needs it, once however many wait for it, and ends with the last that
//! has it; one that cannot be started fails each test that needs it, and says what to do.

use std::sync::OnceLock;

use kit::bed::Bed;
use testbed::{KubernetesVersion, Options};

/// A control plane that several tests share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ground {
    /// The newest version with controllers, and gatehouse at its gate; or the cluster that `KUBECONFIG` names.
    Newest,
    /// The oldest version, which keeps an audit log, and gatehouse at its gate.
    Oldest,
    /// For replicas that tests start: who leads is theirs.
    Elections,
    /// For installations that tests make, and spoil.
    Installations,
    /// For installations that are taken away, with controllers that collect what belonged to them.
    Removals,
    /// For operators that tests start, each with a namespace and a clock of its own. The gate works none of them.
    Clocks,
}

impl Ground {
    pub const ALL: [Self; 6] =
        [Self::Newest, Self::Oldest, Self::Elections, Self::Installations, Self::Removals, Self::Clocks];

    /// What the names of its tests begin with.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Newest => "v1.37",
            Self::Oldest => "v1.34",
            Self::Elections | Self::Installations | Self::Removals | Self::Clocks => "alone",
        }
    }

    /// Whether it is started at once, as most tests need it.
    pub const fn is_for_most(self) -> bool {
        matches!(self, Self::Newest | Self::Oldest)
    }

    fn start(self) -> Result<Bed, String> {
        let options = Options::from_env().map_err(|error| error.to_string())?;
        let options = match self {
            Self::Newest => options,
            Self::Oldest => {
                Options { version: KubernetesVersion::V1_34, audit: true, ..ours(options, false) }
            }
            Self::Elections | Self::Installations => ours(options, false),
            Self::Removals | Self::Clocks => Options { audit: true, ..ours(options, true) },
        };
        let wants_controllers = options.controller_manager;
        let program = kit::gatehouse!();
        let bed = match self {
            Self::Newest | Self::Oldest => Bed::with_gate(&options, program, &[])?,
            Self::Elections | Self::Installations | Self::Removals => Bed::start(&options, program)?,
            Self::Clocks => Bed::with_gate(&options, program, &WORKS_NONE)?,
        };
        if wants_controllers && !bed.cluster.has_controller_manager() {
            return Err(
                "these tests need kube-controller-manager, which the folder that KUBEBUILDER_ASSETS names \
                        does not have: unset that variable, and run `make tools`"
                    .to_owned(),
            );
        }
        Ok(bed)
    }
}

/// Options of a gate that works no namespace of a test.
pub const WORKS_NONE: [&str; 2] = ["--watch-namespaces", "none"];

/// One that is started here, whatever cluster there is besides.
pub fn ours(options: Options, controller_manager: bool) -> Options {
    Options { existing: None, controller_manager, ..options }
}

/// A control plane that is started when it is needed.
pub struct Shared {
    ground: Ground,
    bed: OnceLock<Result<Bed, String>>,
}

impl Shared {
    pub const fn new(ground: Ground) -> Self {
        Self { ground, bed: OnceLock::new() }
    }

    /// Starts it, unless it has been.
    pub fn start(&self) -> &Result<Bed, String> {
        self.bed.get_or_init(|| self.ground.start())
    }

    /// The control plane.
    #[track_caller]
    pub fn bed(&self) -> &Bed {
        let started = self.start().as_ref();
        started.unwrap_or_else(|why| panic!("unable to start the control plane of {:?}: {why}", self.ground))
    }
}
