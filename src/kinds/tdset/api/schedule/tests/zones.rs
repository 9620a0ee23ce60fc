//! Every zone of the database, and any of them.

use super::*;

/// A zone, and the day around which a fortnight is scanned: half of the time one on which its clocks change.
fn arbitrary_place() -> impl Strategy<Value = (String, Date)> {
    let names: Vec<String> = time_zone::names().collect();
    let day = 0..40 * 365_i32;
    (prop::sample::select(names), day, any::<bool>(), any::<prop::sample::Index>()).prop_map(
        |(name, day, at_change, pick)| {
            let zone = time_zone::find(&name).unwrap();
            let (from, until) = (at("2000-01-01T00:00:00Z"), at("2040-01-01T00:00:00Z"));
            let shifts = time_zone::shifts(&zone, from, until);
            let middle = match shifts.len() {
                changes @ 1.. if at_change => shifts[pick.index(changes)].before.date(),
                _ => date(2000, 1, 1) + day.days(),
            };
            (name, middle)
        },
    )
}

#[test]
fn what_is_announced_in_any_zone_is_what_a_scan_of_every_minute_finds() {
    let case = arbitrary_place().prop_flat_map(|(zone, middle)| {
        let spec = arbitrary_spec(&zone, middle, 1);
        (Just(zone), Just(middle), spec)
    });
    runner(24).run(&case, |(zone, middle, spec)| agrees(&spec, &fortnight(&zone, middle, 1))).unwrap();
}

/// Three windows that share their boundaries: on every day on which clocks change, anywhere, each is followed by the
/// next, and no moment is left to none.
#[test]
fn adjacent_windows_neither_part_nor_overlap_in_any_zone() {
    let windows = vec![
        window("a", "00:00", "02:30", 2),
        window("b", "02:30", "03:15", 3),
        window("c", "03:15", "24:00", 4),
    ];
    let (from, until) = (at("2026-01-01T00:00:00Z"), at("2028-01-01T00:00:00Z"));
    let mut days = 0;
    for name in time_zone::names() {
        let spec = TDSetSpec { overlap: Some(Overlap::Max), ..spec(&name, windows.clone()) };
        let schedule = parse(&spec);
        for shift in time_zone::shifts(schedule.zone(), from, until) {
            days += 1;
            let start = shift.time - 36.hours();
            let changes = schedule.changes(start).take_while(|change| change.time < shift.time + 36.hours());
            for change in changes {
                let step = format!("{}{}", change.from.source, change.to.source);
                let follows = ["ab", "bc", "ca", "ac"].contains(&step.as_str());
                assert!(follows, "{name} {}: {step}", schedule.local(change.time));
            }
            for half_hours in 0..144 {
                let moment = start + SignedDuration::from_mins(half_hours * 30);
                assert_ne!(schedule.effective(moment).source, Source::Default, "{name} {moment}");
            }
        }
    }
    assert!(days > 400, "only {days} changes of the clocks");
}
