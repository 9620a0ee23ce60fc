//! Dynamic volumes: folders of the machine that the controller manager's host-path provisioner makes.
//!
//! It makes them for root alone, and `fsGroup` does not reach volumes of this kind. So they are opened to all
//! just before a container starts: the runtime is runc behind a few lines of shell. What a container does to
//! the mode of its volume stays, since only folders as the provisioner left them are touched.

use std::path::Path;

/// A default StorageClass. A claim is bound when a pod wants it, as at most clouds.
pub(crate) const STORAGE_CLASS: &str = r#"
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: kubernetes.io/host-path
volumeBindingMode: WaitForFirstConsumer
allowVolumeExpansion: true
"#;

/// The script that stands for runc.
pub(crate) fn opening_runtime(runc: &Path) -> String {
    let runc = runc.display().to_string().replace('\'', r"'\''");
    format!(
        r#"#!/bin/sh
case " $* " in
*" create "*) find /tmp/hostpath_pv -mindepth 1 -maxdepth 1 -perm 0750 -user root -exec chmod 0777 {{}} + ;;
esac
exec '{runc}' "$@"
"#
    )
}
