//! What lies below `deploy/`: that the chart and the kustomizations give the same objects, and that these fit the
//! binary, its rights and the schemas of Kubernetes. `tests/api/deploy.rs` shows that API servers take them.
//!
//! helm, kustomize, kubeconform and its schemas come from `tools/build.sh deploy`, which the tests run; a part that is
//! missing is an error that says what to do, and nothing is skipped.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what it expects by unwrapping"
)]

mod command_line;
mod docs;
mod monitoring;
mod other_tools;
mod rights;
mod same;
mod schemas;
mod values;
mod versions;
