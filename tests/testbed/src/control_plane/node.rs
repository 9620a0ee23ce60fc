//! What a cluster with a node can besides, and what helps to find out why a test failed.

use std::{path::Path, process::Command};

use super::{ControlPlane, Kind};
use crate::{Error, logs};

impl ControlPlane {
    /// Whether pods run: there is a node. A cluster of others is taken to have one.
    #[must_use]
    pub fn has_node(&self) -> bool {
        match &self.kind {
            Kind::Ours(ours) => ours.plan.node.is_some(),
            Kind::Others => true,
        }
    }

    /// Loads the images of an archive (of OCI or of Docker) onto the node, under the references that the
    /// archive gives them. Says whether it did: which images a cluster of others has is their business.
    ///
    /// # Errors
    /// There is no node, or containerd refuses the archive.
    pub fn load_image(&self, archive: &Path) -> Result<bool, Error> {
        match &self.kind {
            Kind::Ours(ours) => {
                let (_, site) = ours.plan.node.as_ref().ok_or(Error::NoNode)?;
                site.load_image(&self.tools.require_for_node("ctr")?, archive).map(|()| true)
            }
            Kind::Others => Ok(false),
        }
    }

    /// A command on the node: it sees the node's network, files and processes. None for a cluster of others,
    /// and where there is no node.
    #[must_use]
    pub fn on_node(&self, program: &Path) -> Option<Command> {
        match &self.kind {
            Kind::Ours(ours) => ours.plan.node.as_ref().map(|(_, site)| site.inside(program)),
            Kind::Others => None,
        }
    }

    /// Where the API server writes a line of JSON for every request of gatehouse, if it does.
    #[must_use]
    pub fn audit_log(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Ours(ours) => ours.plan.audit_log(),
            Kind::Others => None,
        }
    }

    /// Copies all that helps to find out what went wrong into a folder: logs of the components and of all
    /// containers, objects, events, and descriptions of pods and nodes.
    ///
    /// # Errors
    /// Files cannot be written. What the cluster does not tell is noted in the file that would have had it.
    pub fn collect_logs(&self, into: &Path) -> Result<(), Error> {
        let kubectl = || self.kubectl();
        logs::collect((!self.is_existing()).then_some(self.folder.as_path()), &kubectl, into)
    }
}
