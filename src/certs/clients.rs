//! The CA certificates of clients, in a file that another program writes.
//!
//! Guarantees: what is trusted stays trusted until a valid replacement was read completely and accepted; a failure is
//! logged once. Assumes, as [`super::files`] does, nothing about how the file changes. Never: writes.

use std::convert::Infallible;
use std::path::Path;

use rustls::pki_types::CertificateDer;

use super::certificate::Certificate;
use super::files::PAUSE;
use super::{BoxError, files};

/// Reads the file without end, and has `take` trust what is new in it; `taken` hears of each time that it does.
/// Dropping the future ends it.
pub async fn keep(
    path: &Path,
    take: impl Fn(Vec<CertificateDer<'static>>) -> Result<(), BoxError>,
    taken: impl Fn(),
) -> Infallible {
    let (mut seen, mut failure) = (None, None);
    loop {
        match read(path, seen.as_ref(), &take).await {
            Ok(Some(new)) => {
                tracing::info!(path = %path.display(), "trusting the authority of clients from its file");
                taken();
                (seen, failure) = (Some(new), None);
            }
            Ok(None) => failure = None,
            Err(error) => {
                let said = error.to_string();
                if failure.as_ref() != Some(&said) {
                    tracing::warn!(reason = said, "failed to read the authority of clients");
                }
                failure = Some(said);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What the file holds, where that is other than `seen` and was taken.
async fn read(
    path: &Path,
    seen: Option<&Vec<u8>>,
    take: &impl Fn(Vec<CertificateDer<'static>>) -> Result<(), BoxError>,
) -> Result<Option<Vec<u8>>, BoxError> {
    let content = files::read(path).await?;
    if seen == Some(&content) {
        return Ok(None);
    }
    let authorities: Vec<_> = Certificate::read_all(&content).iter().map(|one| one.der().clone()).collect();
    if authorities.is_empty() {
        return Err(files::Error::NoCertificate(path.to_owned()).into());
    }
    take(authorities)?;
    Ok(Some(content))
}
