//! What an exploration makes of a way to a broken rule before it is told.

/// Leaves out of a way what is not needed: `walk` tells what a way breaks, and goes on to tell `broken` of what is left.
pub fn shortest<Action: Clone, Rule: PartialEq>(
    mut way: Vec<Action>,
    broken: &Rule,
    walk: impl Fn(&[Action]) -> Option<Rule>,
) -> Vec<Action> {
    let mut at = way.len();
    while at > 0 {
        at -= 1;
        let mut shorter = way.clone();
        shorter.remove(at);
        if walk(&shorter).as_ref() == Some(broken) {
            way = shorter;
            at = at.min(way.len());
        }
    }
    way
}
