use super::*;

const ACCEPTED: &[&str] = &[
    "* * * * *",
    "0 2 * * *",
    "*/5 * * * *",
    "5/15 * * * *",
    "0-30/10 1,2,3 * * *",
    "? ? ? ? ?",
    "0 0 ? * MON-FRI",
    "0 0 1 JAN,jul *",
    "0 0 13 * +5",
    "007 02 * * *",
    "  0   2 * *   * ",
    "0\t2 * * *",
    "0 0 29 2 *",
    "0 0 30 2 1",
    "0 0 31 1,2 *",
    ",0,,30, * * * *",
    "*-9 * * * *",
    "0 0 * * 0-6",
    "*/100 * * * *",
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// Refused by syntax alone: the rule in the definition says so too.
const REFUSED: &[&str] = &[
    "",
    "daily",
    "* * * *",
    "0 0 2 * * *",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * 32 * *",
    "* * * 0 *",
    "* * * 13 *",
    "* * * * 7",
    "* * * * 0-7",
    "* * * * 5-7",
    "*/0 * * * *",
    "*/x * * * *",
    "*/-1 * * * *",
    "1-2-3 * * * *",
    "1/2/3 * * * *",
    "-1 * * * *",
    "0 0 L * *",
    "0 0 15W * *",
    "0 0 * * 1#2",
    "0 0 * * monday",
    "0 0 * * foo",
    "TZ=UTC 0 2 * * *",
    "CRON_TZ=Europe/Berlin 0 2 * * *",
    "@Daily",
    "@daily ",
    " @daily",
    "@every 1s",
    "@every",
    "@reboot",
    "1.5 * * * *",
    "0 2 * * * #",
];

#[test]
fn what_a_cron_job_takes_is_taken() {
    for text in ACCEPTED {
        assert!(Schedule::parse(text).is_ok(), "{text:?}: {:?}", Schedule::parse(text));
    }
}

#[test]
fn what_a_cron_job_refuses_is_refused() {
    for text in REFUSED {
        assert!(Schedule::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn the_rule_in_the_definition_agrees() {
    let pattern = CEL_RULE.strip_prefix("self.matches(r'").unwrap().strip_suffix("')").unwrap();
    let pattern = regex::Regex::new(pattern).unwrap();
    for text in ACCEPTED {
        assert!(pattern.is_match(text), "{text:?}");
    }
    for text in REFUSED {
        assert!(!pattern.is_match(text), "{text:?}");
    }
}

#[test]
fn refusals_name_the_field_and_what_is_allowed() {
    for (text, message) in [
        ("60 * * * *", "minute 60 is out of range: 0 to 59"),
        ("* * * * 7", "day of week 7 is out of range: 0 to 6"),
        ("0 5-2 * * *", "hour range \"5-2\" ends before it begins"),
        ("0 0 * foo *", "month \"foo\" is neither a number nor a known name"),
        ("*/0 * * * *", "minute step must be at least 1"),
        ("0 0 30 2 *", "never occurs: no month named has such a day"),
    ] {
        assert_eq!(Schedule::parse(text).unwrap_err().to_string(), message);
    }
    assert_eq!(Schedule::parse("@every 1h"), Err(CronError::Every));
    assert_eq!(Schedule::parse("TZ=UTC 0 2 * * *"), Err(CronError::Zone));
    assert_eq!(Schedule::parse("0 0 2 * * *"), Err(CronError::Fields(6)));
}

#[test]
fn dates_that_never_occur_are_found() {
    for text in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30,31 feb ?", ", * * * *", "0 0 , * *"] {
        assert_eq!(Schedule::parse(text), Err(CronError::Never), "{text}");
    }
}

#[test]
fn the_shortest_interval_counts_midnight_too() {
    for (text, minutes) in [
        ("* * * * *", 1),
        ("*/5 * * * *", 5),
        ("0 2 * * *", 1440),
        ("0,58 0,23 * * *", 2),
        ("0,58 0,23 1 * *", 58),
        ("0,58 0,23 * * 1", 58),
        ("0,58 0,23 * * 1,2", 2),
        ("*/7 * * * *", 4),
        ("@hourly", 60),
        ("@weekly", 1440),
    ] {
        assert_eq!(Schedule::parse(text).unwrap().shortest_interval(), minutes, "{text}");
    }
}

#[test]
fn either_day_is_enough_where_both_are_restricted() {
    let both = Schedule::parse("0 0 13 * 5").unwrap();
    assert!(both.matches_date(3, 13, 2) && both.matches_date(3, 6, 5) && !both.matches_date(3, 6, 2));
    let stepped = Schedule::parse("0 0 */2 * 5").unwrap();
    assert!(stepped.matches_date(3, 1, 2) && stepped.matches_date(3, 2, 5));
    let one = Schedule::parse("0 0 13 * *").unwrap();
    assert!(one.matches_date(3, 13, 2) && !one.matches_date(3, 6, 5));
}

proptest::proptest! {
    #![proptest_config(crate::properties::config())]

    #[test]
    fn whatever_is_taken_matches_the_rule_in_the_definition(
        text in "[*?0-9]{1,2}(/[0-9]{1,2})?( [*?0-9]{1,2}(-[0-9]{1,2})?){3} ([0-9]|[*?]|sun|MON)(,[0-9])?"
    ) {
        let pattern = CEL_RULE.strip_prefix("self.matches(r'").unwrap().strip_suffix("')").unwrap();
        if Schedule::parse(&text).is_ok() {
            proptest::prop_assert!(regex::Regex::new(pattern).unwrap().is_match(&text));
        }
    }

    #[test]
    fn no_text_is_fatal(text in "\\PC{0,40}") {
        let _ = Schedule::parse(&text);
    }
}
