//! Dates from a ConfigMap.

use gatehouse::runtime::clock;
use jiff::tz::TimeZone;
use jiff::{ToSpan as _, Zoned};
use kit::bed::{Bed, Namespace};
use kit::objects::Ask;
use serde_json::json;

use super::{TDSETS, message, tdset, until_condition};
use crate::Test;

pub const TESTS: &[Test] = &[
    ("dates_in_a_config_map_decide", dates_in_a_config_map_decide),
    ("dates_that_cannot_be_read_are_ordinary_days", dates_that_cannot_be_read_are_ordinary_days),
];

fn put(namespace: &Namespace, text: &str) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "holidays"}, "data": {"2026": text}});
    namespace.bed.objects.must(Ask::apply(&object, &namespace.name, ""));
}

fn dates_in_a_config_map_decide(bed: &Bed) {
    let namespace = bed.namespace();
    let from = json!({"configMapKeyRef": {"name": "holidays", "key": "2026"}});
    let fields = json!({"timeZone": "Etc/UTC", "defaultReplicas": 3, "onUnreadableDates": "Hold",
        "exceptions": [{"name": "holidays", "datesFrom": from, "replicas": 0}]});
    namespace.create(&tdset("shop", &fields));
    let object = until_condition(&namespace, "shop", "ScheduleValid", "False", "DatesNotFound");
    assert_eq!(message(&object, "ScheduleValid"), "ConfigMap holidays does not exist");
    assert!(object["status"].get("scheduledReplicas").is_none(), "what is not known is not claimed");
    let made = bed.objects.list("deployments", &namespace.name, "").unwrap();
    assert!(made.is_empty(), "it would begin with a count that was not asked for: {made:?}");

    put(&namespace, "2001-01-01 # long ago\n");
    namespace.until_created("deployment/shop");
    namespace.until("deployment/shop", "{.spec.replicas}", "3");
    until_condition(&namespace, "shop", "ScheduleValid", "True", "Valid");

    // A day on either side, for a test that runs at midnight.
    let today = clock::now().to_zoned(TimeZone::UTC);
    let days = [-1, 0, 1].map(|days: i64| date(&today, days)).join("\n");
    put(&namespace, &days);
    namespace.until("deployment/shop", "{.spec.replicas}", "0");
    namespace.until("tdset/shop", "{.status.activeWindow}", "exception/holidays");

    put(&namespace, "2001-01-01\nChristmas\n");
    let object = until_condition(&namespace, "shop", "ScheduleValid", "False", "InvalidDates");
    let text = message(&object, "ScheduleValid");
    assert!(text.starts_with("ConfigMap holidays, key 2026: ") && text.contains("line 2"), "{text}");
    let (deployment, tdset) = (namespace.get("deployment", "shop"), namespace.get(TDSETS, "shop"));
    assert_eq!(deployment["spec"]["replicas"], 0, "the count stays while the dates are not known");
    assert!(tdset["status"].get("nextTransition").is_none(), "{tdset}");

    namespace.change("configmap/holidays", &json!({"data": {"2026": null, "2027": "2027-01-01"}}));
    let object = until_condition(&namespace, "shop", "ScheduleValid", "False", "DatesNotFound");
    assert_eq!(message(&object, "ScheduleValid"), "ConfigMap holidays has no key 2026");
    put(&namespace, "2001-01-01\n");
    namespace.until("deployment/shop", "{.spec.replicas}", "3");
}

fn dates_that_cannot_be_read_are_ordinary_days(bed: &Bed) {
    let namespace = bed.namespace();
    let from = json!({"configMapKeyRef": {"name": "holidays", "key": "2026"}});
    let fields = json!({"timeZone": "Etc/UTC", "defaultReplicas": 3,
        "exceptions": [{"name": "holidays", "datesFrom": from, "replicas": 0}]});
    namespace.create(&tdset("shop", &fields));
    namespace.until_created("deployment/shop");
    namespace.until("deployment/shop", "{.spec.replicas}", "3");
    let object = until_condition(&namespace, "shop", "ScheduleValid", "False", "DatesNotFound");
    let expected = "ConfigMap holidays does not exist; such days are ordinary ones";
    assert_eq!(message(&object, "ScheduleValid"), expected);
    // A line that is none is named, and the others count.
    let today = clock::now().to_zoned(TimeZone::UTC);
    let days = [-1, 0, 1].map(|days: i64| date(&today, days)).join("\n");
    put(&namespace, &format!("Christmas\n{days}\n"));
    namespace.until("deployment/shop", "{.spec.replicas}", "0");
    let object = until_condition(&namespace, "shop", "ScheduleValid", "False", "InvalidDates");
    let text = message(&object, "ScheduleValid");
    assert!(text.contains("line 1") && text.ends_with("; such days are ordinary ones"), "{text}");
}

fn date(today: &Zoned, days: i64) -> String {
    today.checked_add(days.days()).unwrap().strftime("%Y-%m-%d").to_string()
}
