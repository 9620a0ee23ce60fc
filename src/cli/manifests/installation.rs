//! What gatehouse writes by itself, as files for those who want to write it themselves (`--install=false`): the
//! definitions with their conversion, and the webhook configurations; and the policies, which it never writes. Pure.
//!
//! Never: holds a bundle. cert-manager's injector or the chart's values bring it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Resource;
use serde::Serialize;
use serde_json::{Value, json};

use super::generated::{Generated, HEADER};
use crate::cli::ending::Failure;
use crate::cli::output::Format;
use crate::install::{Address, Plan, definitions, policies, webhooks};

/// Makes cert-manager write the authority of this Certificate into `caBundle`.
const INJECT: (&str, &str) = ("cert-manager.io/inject-ca-from", "gatehouse-system/gatehouse");

/// For the administrator of a cluster, with cert-manager's injector; and for the chart, bare.
///
/// # Errors
/// An object that cannot be written as YAML.
pub fn generated() -> Result<Vec<Generated>, Failure> {
    let plan = plan();
    let resources = webhooks::resources();
    let (mutating, validating) = (
        webhooks::mutating(&plan, &resources, &webhooks::pod_hooks()),
        webhooks::validating(&plan, &resources),
    );
    let mut files = vec![
        file("administrator/conversion.yaml", injected(conversion(&plan)?))?,
        file("administrator/mutating.yaml", injected(typed(&mutating)?))?,
        file("administrator/validating.yaml", injected(typed(&validating)?))?,
        file("chart/gatehouse/files/mutating.yaml", typed(&mutating)?)?,
        file("chart/gatehouse/files/validating.yaml", typed(&validating)?)?,
    ];
    for definition in definitions::all(&plan) {
        let path = format!("chart/gatehouse/files/{}.yaml", definition.spec.names.plural);
        files.push(file(&path, typed(&definition)?)?);
    }
    for (folder, policies) in [("policies", policies::all()), ("only-v1", vec![policies::only_hub()])] {
        let mut documents = Vec::new();
        for policy in policies {
            let (of_chart, binding) = (typed(&policy.policy)?, typed(&policy.binding)?);
            let path = format!("chart/gatehouse/files/policies/{}.yaml", policy.suffix);
            files.push(file(&path, of_chart.clone())?);
            documents.extend([of_chart, binding]);
        }
        let content = HEADER.to_owned() + &Format::Yaml.write(&documents)?;
        files.push(Generated { path: format!("{folder}/policies.yaml"), content });
    }
    Ok(files)
}

fn plan() -> Plan {
    Plan::at(Address::Service {
        name: "gatehouse".to_owned(),
        namespace: "gatehouse-system".to_owned(),
        port: 443,
    })
}

fn file(path: &str, object: Value) -> Result<Generated, Failure> {
    Ok(Generated { path: path.to_owned(), content: HEADER.to_owned() + &Format::Yaml.write(&[object])? })
}

/// What a definition of `crds/` lacks, as a patch for any of them.
fn conversion(plan: &Plan) -> Result<Value, Failure> {
    let mut patch = typed(&definitions::with_conversion(CustomResourceDefinition::default(), plan))?;
    patch["metadata"]["name"] = "any".into();
    patch["spec"] = json!({ "conversion": patch["spec"]["conversion"] });
    Ok(patch)
}

/// An object with its type first.
fn typed<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Result<Value, Failure> {
    let mut whole = json!({ "apiVersion": K::api_version(&()), "kind": K::kind(&()) });
    if let (Value::Object(whole), Value::Object(object)) = (&mut whole, serde_json::to_value(object)?) {
        whole.extend(object);
    }
    Ok(whole)
}

fn injected(mut object: Value) -> Value {
    object["metadata"]["annotations"][INJECT.0] = INJECT.1.into();
    object
}
