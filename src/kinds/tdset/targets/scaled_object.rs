//! The bounds of a ScaledObject of KEDA, read like a workload: watched by metadata, and read again where it has changed.

use std::sync::Arc;

use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::{Api, ResourceExt as _};

use super::super::observation::{self, Blocker, Bounds};
use super::{Targets, is_absent, known};
use crate::controllers::manifest::Place;
use crate::controllers::outcome::Error;
use crate::kinds::tdset::api::status::Reason;
use crate::runtime::call::call;

/// The ScaledObject of KEDA.
pub fn scaled_objects() -> ApiResource {
    ApiResource {
        group: "keda.sh".to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: "keda.sh/v1alpha1".to_owned(),
        kind: "ScaledObject".to_owned(),
        plural: "scaledobjects".to_owned(),
    }
}

impl Targets {
    /// The bounds of a ScaledObject of KEDA; none where there is none of that name.
    ///
    /// # Errors
    /// When the API server does not say.
    pub async fn scaled_object(
        &self,
        uid: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Result<Option<Bounds>, Blocker>, Error> {
        let resource = scaled_objects();
        let place =
            Place { resource: resource.clone(), namespace: namespace.to_owned(), name: name.to_owned() };
        let key = (resource.api_version.clone(), resource.kind.clone());
        let is_known = self.kinds().contains_key(&key);
        if !is_known {
            let list = match call(self.client.list_api_group_resources(&resource.api_version)).await {
                Ok(list) => Some(list),
                Err(error) if is_absent(&error) => None,
                Err(error) => return Err(Error::of("read", &place)(error)),
            };
            let resources = list.iter().flat_map(|list| &list.resources);
            if !resources.into_iter().any(|one| one.name == resource.plural) {
                let message =
                    format!("{} is not served by this cluster: is KEDA installed?", resource.api_version);
                return Ok(Err(Blocker::ready(Reason::AutoscalerNotFound, message)));
            }
            self.kinds().insert(key, resource.clone());
        }
        let objects = self.watch(uid, &resource);
        let version = known(&objects, namespace, name).and_then(|known| known.resource_version());
        let found = match self.scaled_objects.of(uid) {
            Some(found) if version.is_some() && found.resource_version() == version => found,
            _ => {
                let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
                match call(api.get_opt(name)).await {
                    Ok(Some(mut found)) => {
                        observation::trim(&mut found.metadata);
                        Arc::new(found)
                    }
                    Ok(None) => {
                        self.scaled_objects.forget(uid);
                        return Ok(Ok(None));
                    }
                    Err(error) if error.is_forbidden() => {
                        let blocker = Blocker::forbidden("get and patch", &resource.plural, &resource.group);
                        return Ok(Err(blocker));
                    }
                    Err(error) => return Err(Error::of("read", &place)(error)),
                }
            }
        };
        self.scaled_objects.update(uid, |last| *last = Some(Arc::clone(&found)));
        Ok(Ok(Some(Bounds::of_scaled_object(&found, place))))
    }
}
