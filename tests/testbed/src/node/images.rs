//! Images, which come from archives: there is no registry.

use std::path::Path;

use crate::{
    Error,
    command::feed,
    node::{containerd, namespaces::Entrance},
};

/// Loads the images of an archive (of OCI or of Docker) under the references that it gives them.
pub(crate) fn load(ctr: &Path, entrance: Entrance, archive: &Path) -> Result<(), Error> {
    let mut command = containerd::client(ctr, entrance);
    command.args(["images", "import", "--no-unpack=false", "-"]);
    feed(&mut command, archive).map(drop)
}
