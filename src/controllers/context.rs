//! What all reconciliations of a kind in a realm do in the same way: read the object, and show it on the metrics page.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Resource as _};

use super::Watched;
use super::manifest::Place;
use super::metrics::KindMetrics;
use super::outcome::Error;
use super::reconciler::{Context, ObjectChange, Read, Reconciler};
use crate::runtime::call::call;

impl<Kind: Reconciler> Context<Kind> {
    /// The object as the API server has it now.
    ///
    /// # Errors
    /// When the API server does not say.
    pub async fn read_live(&self, watched: Arc<Watched<Kind::Object>>) -> Result<Read<Kind::Object>, Error> {
        let place = Place::of_metadata::<Kind::Object>(watched.meta());
        let api: Api<Watched<Kind::Object>> = Api::namespaced(self.client.clone(), &place.namespace);
        let found = call(api.get_opt(&place.name)).await.map_err(Error::of("read", &place))?;
        let found = found.filter(|found| found.meta().uid == watched.meta().uid);
        Ok(found.map_or(Read::Gone, |found| Read::Found(Arc::new(found))))
    }

    /// Shows that of an object from now on, unless the object is gone.
    pub fn show(&self, metadata: &ObjectMeta, line: <Kind::Metrics as KindMetrics>::Line) {
        self.objects.show(metadata, line);
    }

    /// Shows nothing of an object, for which nothing is done.
    pub fn hide(&self, kind: &Kind, metadata: &ObjectMeta) {
        kind.notice(ObjectChange::Hidden(metadata));
        self.objects.hide(metadata);
    }
}
