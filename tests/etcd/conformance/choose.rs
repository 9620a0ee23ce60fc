//! What is done next.

use kit::membership::trace::{Line, Seat, Step};
use kit::membership::{Answer, quorum};
use kit::random::Random;

use super::run::{PLACES, Run, UNKNOWN};

impl Run {
    /// One of the steps that make sense now, and now and then one that does not.
    pub fn choose(&self, dice: &mut Random) -> Step {
        let seats: Vec<Seat> = self.seats().copied().collect();
        if seats.is_empty() {
            return self.choose_without_quorum(dice);
        }
        let runs = |seat: &Seat| self.running.contains(&seat.id);
        let voters: Vec<_> = seats.iter().copied().filter(|seat| !seat.is_learner).collect();
        let live: Vec<_> = voters.iter().copied().filter(runs).collect();
        let asked = self.whom(dice, &seats, &live);
        let mut ways: Vec<(usize, Step)> = vec![
            (6, Step::Write { asked }),
            (2, Step::List { asked }),
            (1, Step::Remove { asked, id: UNKNOWN }),
            (1, Step::Promote { asked, id: UNKNOWN }),
            (1, Step::MoveLeader { asked, to: UNKNOWN }),
        ];
        if !self.is_past() {
            ways.push((8, Step::Wait));
        }
        self.grow(&mut ways, asked, &seats);
        let spare = live.len() - quorum(voters.len());
        for seat in &seats {
            let (id, is_up, is_empty) = (seat.id, runs(seat), self.empty.contains(&seat.id));
            let is_spare = seat.is_learner || spare > 0;
            match (seat.is_learner, is_up) {
                (true, true) => {
                    ways.extend([(14, Step::Promote { asked, id }), (2, Step::Remove { asked, id })]);
                }
                (true, false) => {
                    ways.extend([(4, Step::Promote { asked, id }), (2, Step::Remove { asked, id })]);
                }
                (false, true) => {
                    ways.extend([(3, Step::Remove { asked, id }), (1, Step::Promote { asked, id })]);
                }
                (false, false) => ways.push((if is_empty { 6 } else { 4 }, Step::Remove { asked, id })),
            }
            ways.push((if seat.is_learner { 1 } else { 2 }, Step::MoveLeader { asked, to: id }));
            if is_empty && !seat.is_started {
                ways.push((16, Step::Join(id)));
            } else if is_up {
                if seat.is_learner || !self.forgets_when_killed() {
                    ways.push((if is_spare { 5 } else { 2 }, Step::Kill(id)));
                }
            } else if !is_empty {
                ways.push((8, Step::Restart(id)));
            }
            if !is_empty && is_spare && (!is_up || spare > 0) {
                ways.push((1, Step::Wipe(id)));
            }
        }
        weigh(dice, &ways)
    }

    fn grow(&self, ways: &mut Vec<(usize, Step)>, asked: u64, seats: &[Seat]) {
        let id = self.next;
        let free = (0..PLACES).find(|place| seats.iter().all(|seat| seat.place != *place));
        let has_learner = seats.iter().any(|seat| seat.is_learner);
        if let Some(place) = free.filter(|_| seats.len() < PLACES as usize) {
            ways.push((if has_learner { 2 } else { 12 }, Step::Add { asked, id, place }));
        }
        ways.push((1, Step::Add { asked, id, place: seats[0].place }));
    }

    /// Whether the one voter that is left would come back as one of two: the model does not know of that.
    fn forgets_when_killed(&self) -> bool {
        let is_entry = |line: &&Line| !matches!(line.step, Step::List { .. } | Step::MoveLeader { .. });
        let mut entries =
            self.trace.lines.iter().rev().filter(|line| line.answer == Some(Answer::Done)).filter(is_entry);
        let last = entries.next().map(|line| line.step);
        let voters = self.seats().filter(|seat| !seat.is_learner).count();
        voters == 1 && matches!(last, Some(Step::Remove { .. }))
    }

    /// Mostly the leader or another voter, and now and then one that cannot do it.
    fn whom(&self, dice: &mut Random, seats: &[Seat], live: &[Seat]) -> u64 {
        let leader = self.view.as_ref().map(|view| view.leader);
        match dice.below(20) {
            0..9 => leader,
            9..17 => dice.pick(live).map(|seat| seat.id),
            _ => dice.pick(seats).filter(|seat| seat.is_started).map(|seat| seat.id),
        }
        .or(leader)
        .unwrap_or(1)
    }

    /// Little can be done, and it ends soon.
    fn choose_without_quorum(&self, dice: &mut Random) -> Step {
        let before = self.trace.lines.iter().rev().find_map(|line| line.seen.as_ref());
        let seats: Vec<Seat> = before.map(|view| view.members.clone()).unwrap_or_default();
        let up: Vec<_> =
            seats.iter().filter(|seat| self.running.contains(&seat.id)).map(|seat| seat.id).collect();
        let asked = dice.pick(&up).unwrap_or(seats[0].id);
        let any = dice.pick(&seats).map_or(1, |seat| seat.id);
        let mut ways = vec![
            (2, Step::Write { asked }),
            (1, Step::List { asked }),
            (2, Step::Remove { asked, id: any }),
            (1, Step::Promote { asked, id: any }),
            (1, Step::MoveLeader { asked, to: any }),
            (1, Step::Add { asked, id: self.next, place: PLACES - 1 }),
        ];
        for seat in seats {
            if !self.running.contains(&seat.id) && !self.empty.contains(&seat.id) {
                ways.push((8, Step::Restart(seat.id)));
            }
        }
        weigh(dice, &ways)
    }
}

fn weigh(dice: &mut Random, ways: &[(usize, Step)]) -> Step {
    let mut at = dice.below(ways.iter().map(|(weight, _)| weight).sum());
    for (weight, step) in ways {
        if at < *weight {
            return *step;
        }
        at -= weight;
    }
    Step::Look
}
