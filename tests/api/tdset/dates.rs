//! Dates from a ConfigMap.

use gatehouse::runtime::clock;
use jiff::tz::TimeZone;
use jiff::{ToSpan as _, Zoned};
use kit::bed::{Bed, Namespace};
use kit::objects::Ask;
use kit::operator::Fate;
use serde_json::{Value, json};

use super::{TDSETS, message, tdset, until_condition};
use crate::Test;
use crate::site::{Site, role};

pub const TESTS: &[Test] =
    &kit::tests![dates_in_a_config_map_decide, dates_that_cannot_be_read_are_ordinary_days];

/// Those on sites.
pub const ON_CLOCKS: &[Test] = &kit::tests![dates_that_may_not_be_read_are_unknown];

/// A TDSet of three replicas, and of none on the dates of the ConfigMap.
fn with_holidays(on_unreadable: Option<&str>) -> Value {
    let from = json!({"configMapKeyRef": {"name": "holidays", "key": "2026"}});
    let fields = json!({"timeZone": "Etc/UTC", "defaultReplicas": 3, "onUnreadableDates": on_unreadable,
        "exceptions": [{"name": "holidays", "datesFrom": from, "replicas": 0}]});
    tdset("shop", &fields)
}

fn put(namespace: &Namespace, text: &str) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "holidays"}, "data": {"2026": text}});
    namespace.bed.objects.must(Ask::apply(&object, &namespace.name, ""));
}

fn dates_in_a_config_map_decide(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&with_holidays(Some("Hold")));
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
    let expected = "ConfigMap holidays, key 2026: line 2 is not a date: expected one such as 2026-12-25";
    assert_eq!(text, expected, "what a line says is for those who may read the ConfigMap");
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
    namespace.create(&with_holidays(None));
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

/// The right to watch ConfigMaps is there, and that to read them is missing at first.
fn dates_that_may_not_be_read_are_unknown(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let fewer = role(&namespace, |resource, verb| (resource, verb) != ("configmaps", "get"));
    let _operator = site.start(Fate::Lives);
    put(&namespace, "2001-01-01\n");
    namespace.create(&with_holidays(Some("Hold")));
    let object = until_condition(&namespace, "shop", "ScheduleValid", "Unknown", "Forbidden");
    let expected = "gatehouse may not get configmaps of the core API group: grant that to its ServiceAccount";
    assert_eq!(message(&object, "ScheduleValid"), expected);
    let made = bed.objects.list("deployments", &namespace.name, "").unwrap();
    assert!(made.is_empty(), "it would begin with a count that was not asked for: {made:?}");

    // No watch tells of a right: it looks again after half a minute.
    fewer.give_back();
    site.jump(1);
    namespace.until_created("deployment/shop");
    namespace.until("deployment/shop", "{.spec.replicas}", "3");
    until_condition(&namespace, "shop", "ScheduleValid", "True", "Valid");
}

fn date(today: &Zoned, days: i64) -> String {
    today.checked_add(days.days()).unwrap().strftime("%Y-%m-%d").to_string()
}
