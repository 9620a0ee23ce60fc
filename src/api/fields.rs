//! The fields of an object, found by their names.
//!
//! A map hashes each name that is looked up, in a way that makes no choice of names slow. Nearly all objects have a few
//! fields: comparing their names one by one takes a fraction of one hash.

use serde_json::{Map, Value};

/// Fields that are compared one by one.
const FEW: usize = 16;

/// The value under `name`.
pub fn get<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if fields.len() > FEW {
        return fields.get(name);
    }
    fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// As [`get`], to change it.
pub fn get_mut<'a>(fields: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Value> {
    if fields.len() > FEW {
        return fields.get_mut(name);
    }
    fields.iter_mut().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// Takes the field `name` out, and leaves the others in their order.
pub fn take(fields: &mut Map<String, Value>, name: &str) -> Option<Value> {
    get(fields, name)?;
    fields.shift_remove(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_found_among_few_and_among_many() {
        for others in [0, FEW - 1, FEW, 3 * FEW] {
            let mut fields: Map<_, _> = (0..others).map(|at| (format!("f{at}"), json!(at))).collect();
            assert_eq!(get(&fields, "a"), None);
            assert_eq!(take(&mut fields, "a"), None);
            fields.shift_insert(0, "a".to_owned(), json!("found"));
            assert_eq!(get(&fields, "a"), Some(&json!("found")));
            get_mut(&mut fields, "a").unwrap().take();
            assert_eq!(take(&mut fields, "a"), Some(Value::Null));
            assert!(fields.keys().eq((0..others).map(|at| format!("f{at}")).collect::<Vec<_>>().iter()));
        }
    }
}
