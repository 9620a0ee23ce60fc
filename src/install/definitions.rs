//! The definitions of our kinds, with the conversion stanza that needs an address. Pure.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, WebhookConversion,
};

use super::{Plan, address, annotations};
use crate::kinds::KINDS;

/// The definitions of all kinds.
#[must_use]
pub fn all(plan: &Plan) -> Vec<CustomResourceDefinition> {
    KINDS.iter().map(|kind| with_conversion(kind.definition(), plan)).collect()
}

/// `definition`, converted by this gate.
#[must_use]
pub fn with_conversion(mut definition: CustomResourceDefinition, plan: &Plan) -> CustomResourceDefinition {
    definition.spec.conversion = Some(CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(address::of_conversion(plan)),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    });
    definition.metadata.annotations.get_or_insert_default().extend(annotations());
    definition
}

#[cfg(test)]
mod tests;
