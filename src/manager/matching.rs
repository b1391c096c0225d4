//! Which program gets which CPU, while each may run on some only: a bipartite matching, each
//! program to as many CPUs as it has been given. Pure.

/// Programs and CPUs by index.
pub struct Matching {
    /// `[program][cpu]`
    allowed: Vec<Vec<bool>>,
    /// `[cpu]`
    owner: Vec<Option<usize>>,
    /// `[cpu]`: whether the owner stays.
    settled: Vec<bool>,
    /// `[cpu]`: from where a search has found no way to a free one. There will be none while
    /// programs only grow, so nobody looks there again.
    exhausted: Vec<bool>,
}

impl Matching {
    pub fn new(allowed: Vec<Vec<bool>>, cpus: usize) -> Matching {
        assert!(allowed.iter().all(|a| a.len() == cpus));
        Matching {
            allowed,
            owner: vec![None; cpus],
            settled: vec![false; cpus],
            exhausted: vec![false; cpus],
        }
    }

    pub fn owner(&self, cpu: usize) -> Option<usize> {
        self.owner[cpu]
    }

    pub fn is_settled(&self, cpu: usize) -> bool {
        self.settled[cpu]
    }

    /// What it could still be given for good, as far as that depends on it alone.
    pub fn open(&self, program: usize) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.owner.len()).filter(move |&cpu| self.allowed[program][cpu] && !self.settled[cpu])
    }

    /// One CPU more for a program. The others keep as many as they have, but perhaps not the same.
    /// False: that is not possible, nor will it be, and nothing has changed.
    /// Pre: nothing is settled.
    pub fn grow(&mut self, program: usize) -> bool {
        let mut visited = self.exhausted.clone();
        let grew = self.augment(program, &mut visited);
        if !grew {
            self.exhausted = visited;
        }
        grew
    }

    fn augment(&mut self, program: usize, visited: &mut [bool]) -> bool {
        // Those that nobody has first: most often there is one, and the search ends here.
        let usable = |m: &Matching, cpu: usize| m.allowed[program][cpu] && !m.settled[cpu];
        let free =
            (0..self.owner.len()).rev().find(|&cpu| usable(self, cpu) && self.owner[cpu].is_none());
        if let Some(cpu) = free {
            self.owner[cpu] = Some(program);
            return true;
        }
        for cpu in (0..self.owner.len()).rev() {
            if !usable(self, cpu) || visited[cpu] || self.owner[cpu] == Some(program) {
                continue;
            }
            visited[cpu] = true;
            let other = self.owner[cpu].expect("none is free");
            if self.augment(other, visited) {
                self.owner[cpu] = Some(program);
                return true;
            }
        }
        false
    }

    /// The program gets this CPU for good, in place of one that it has. False: somebody would have
    /// fewer then, or it may not, or all of its CPUs are settled; nothing has changed.
    pub fn settle(&mut self, program: usize, cpu: usize) -> bool {
        if !self.allowed[program][cpu] || self.settled[cpu] {
            return false;
        }
        let before = self.owner[cpu];
        if before == Some(program) {
            self.settled[cpu] = true;
            return true;
        }
        let of_program = |m: &Matching, c: usize| m.owner[c] == Some(program) && !m.settled[c];
        let given_up: Vec<usize> = (0..self.owner.len()).filter(|&c| of_program(self, c)).collect();
        self.settled[cpu] = true;
        for given_up in given_up {
            self.owner[cpu] = Some(program);
            self.owner[given_up] = None;
            if before.is_none_or(|other| self.augment(other, &mut vec![false; self.owner.len()])) {
                return true;
            }
            self.owner[given_up] = Some(program);
            self.owner[cpu] = before;
        }
        self.settled[cpu] = false;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(matching: &Matching, program: usize) -> Vec<usize> {
        (0..matching.owner.len()).filter(|&c| matching.owner(c) == Some(program)).collect()
    }

    #[test]
    fn others_move_away() {
        // 0 may run anywhere, 1 on CPU 2 only.
        let mut matching = Matching::new(vec![vec![true; 3], vec![false, false, true]], 3);
        assert!(matching.grow(0));
        assert_eq!(of(&matching, 0), [2]);
        assert!(matching.grow(1));
        assert_eq!((of(&matching, 0), of(&matching, 1)), (vec![1], vec![2]));
        assert!(!matching.grow(1));
        assert!(matching.grow(0) && !matching.grow(0));
        assert_eq!((of(&matching, 0), of(&matching, 1)), (vec![0, 1], vec![2]));
    }

    #[test]
    fn settled_ones_stay() {
        let mut matching = Matching::new(vec![vec![true; 3], vec![false, true, true]], 3);
        assert!(matching.grow(0) && matching.grow(1) && matching.grow(1));
        assert!(!matching.settle(0, 2), "the other needs it");
        assert!(matching.settle(0, 0) && !matching.settle(0, 0));
        assert!(matching.settle(1, 1) && matching.settle(1, 2));
        assert_eq!((of(&matching, 0), of(&matching, 1)), (vec![0], vec![1, 2]));
        // One that has a choice gives way.
        let mut matching = Matching::new(vec![vec![true; 2], vec![true; 2]], 2);
        assert!(matching.grow(0) && matching.grow(1) && of(&matching, 0) == [1]);
        assert!(matching.settle(0, 0) && of(&matching, 1) == [1]);
    }
}
