//! An object that other clients write to all the time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kit::wait::eventually;
use serde_json::{Value, json};

use super::cluster::{Etcd, NAME};
use super::{NEWEST, gone_with_its_object};
use crate::cluster::{Bed, Namespace};
use crate::release::Way;

/// Between two writes to the object.
const PAUSE: Duration = Duration::from_millis(40);

/// Fewer writes would tell nothing.
const FEW: u64 = 100;

/// Labels and annotations are written while one member becomes three, which comes to its end all the same.
pub fn etcd_grows_although_its_object_is_written_all_the_time(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-busy");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 1);
    etcd.until_settled(1);
    etcd.write();
    let begun = Instant::now();
    let writes = while_written(bed, &namespace, || {
        etcd.scale(3);
        etcd.goes_on(100);
    });
    let lasted = begun.elapsed();
    let report = etcd.expect_kept(100);
    report.expect_no_outage();
    crate::figure(format!(
        "{}: etcd: 3 members after {lasted:.1?}, beside {writes} writes to the object: {report}",
        way.name()
    ));
    gone_with_its_object(bed, &namespace);
}

/// Lets something happen while the labels and, by another client, the annotations of the cluster are written; how often
/// they were.
fn while_written(bed: &Bed, namespace: &Namespace<'_>, happens: impl FnOnce()) -> u64 {
    let (is_over, writes) = (AtomicBool::new(false), AtomicU64::new(0));
    let write = |field: &str| {
        while !is_over.load(Ordering::Relaxed) {
            let number = writes.fetch_add(1, Ordering::Relaxed);
            let change: Value = json!({"metadata": {field: {"example.com/written": number.to_string()}}});
            bed.change(("etcdclusters", NAME), &namespace.name, change);
            std::thread::park_timeout(PAUSE);
        }
    };
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| write("labels"));
        scope.spawn(|| write("annotations"));
        happens();
        eventually(|| match writes.load(Ordering::Relaxed) {
            enough if enough >= FEW => Ok(()),
            few => Err(format!("{few} writes are too few to tell")),
        });
    });
    writes.load(Ordering::Relaxed)
}

/// Says that it is over, also where a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
