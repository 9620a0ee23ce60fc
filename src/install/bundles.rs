//! The CA bundles by which API servers verify the gate, in the objects that carry them.
//!
//! Guarantees: what counts as in force was read back, and all of our objects carry it.
//! Never: writes.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};

use super::{Error, NAME, apply, definitions};
use crate::certs::Handle;
use crate::certs::certificate::Certificate;

/// An object that carries bundles.
pub(super) trait Carries {
    /// The bundle of each webhook in it; none where it lacks one.
    fn bundles(&self) -> Vec<Option<&ByteString>>;

    /// All certificates in them.
    fn certificates(&self) -> Vec<Certificate> {
        self.bundles().into_iter().flatten().flat_map(|pem| Certificate::read_all(&pem.0)).collect()
    }
}

impl Carries for MutatingWebhookConfiguration {
    fn bundles(&self) -> Vec<Option<&ByteString>> {
        self.webhooks.iter().flatten().map(|hook| hook.client_config.ca_bundle.as_ref()).collect()
    }
}

impl Carries for ValidatingWebhookConfiguration {
    fn bundles(&self) -> Vec<Option<&ByteString>> {
        self.webhooks.iter().flatten().map(|hook| hook.client_config.ca_bundle.as_ref()).collect()
    }
}

impl Carries for CustomResourceDefinition {
    fn bundles(&self) -> Vec<Option<&ByteString>> {
        let webhook = self.spec.conversion.as_ref().and_then(|conversion| conversion.webhook.as_ref());
        vec![webhook.and_then(|webhook| webhook.client_config.as_ref()?.ca_bundle.as_ref())]
    }
}

/// Reads the bundles as they are now, and reports what they have in common to the certificates.
///
/// # Errors
/// When one of our objects is not there, or could not be read.
pub async fn look(client: &Client, certificates: &Handle) -> Result<(), Error> {
    match in_force(client).await {
        Ok(trusted) => {
            certificates.saw_in_force(trusted);
            Ok(())
        }
        Err(error) => {
            if error.is_forbidden() {
                certificates.may_not_see_in_force();
            }
            Err(error.into())
        }
    }
}

/// The certificates that all of our objects carry.
async fn in_force(client: &Client) -> Result<Vec<Certificate>, apply::Error> {
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone());
    let validating = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let mut common = common_to(None, &apply::read(&mutating, NAME).await?);
    common = common_to(common, &apply::read(&validating, NAME).await?);
    for name in definitions::names() {
        common = common_to(common, &apply::read(&definitions, &name).await?);
    }
    Ok(common.unwrap_or_default())
}

/// What `common` and each bundle of the object have in common. None: nothing was looked at yet.
fn common_to(common: Option<Vec<Certificate>>, object: &impl Carries) -> Option<Vec<Certificate>> {
    object.bundles().into_iter().fold(common, |common, pem| {
        let next = pem.map(|pem| Certificate::read_all(&pem.0)).unwrap_or_default();
        Some(match common {
            None => next,
            Some(common) => common.into_iter().filter(|one| next.contains(one)).collect(),
        })
    })
}
