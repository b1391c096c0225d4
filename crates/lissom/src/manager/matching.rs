//! Bipartite matching between programs and the CPUs that they may use. Pure.

/// A matching. Programs and CPUs are named by index.
pub struct Matching {
    /// `[program][cpu]`
    allowed: Vec<Vec<bool>>,
    /// `[cpu]`
    owner: Vec<Option<usize>>,
    /// `[cpu]`: whether the owner is final.
    settled: Vec<bool>,
    /// `[cpu]`: whether a search from here found no path to a free CPU. While programs only grow
    /// there will be none, so `grow` skips these CPUs.
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

    /// Iterate over the unsettled CPUs that `program` may use.
    pub fn open(&self, program: usize) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.owner.len()).filter(move |&cpu| self.allowed[program][cpu] && !self.settled[cpu])
    }

    /// Give `program` one more CPU. The others keep their number of CPUs, but perhaps not the same
    /// ones. Returns false, and changes nothing, if that is impossible; it then stays impossible.
    /// No CPU may be settled yet.
    pub fn grow(&mut self, program: usize) -> bool {
        let mut visited = self.exhausted.clone();
        let grew = self.augment(program, &mut visited);
        if !grew {
            self.exhausted = visited;
        }
        grew
    }

    /// Search for a path to a free CPU, and move each owner on it by one CPU. Returns whether there
    /// is one.
    fn augment(&mut self, program: usize, visited: &mut [bool]) -> bool {
        // Try free CPUs first: usually there is one, and the search ends.
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

    /// Give `program` this CPU for good, in exchange for one of its unsettled CPUs. Returns false,
    /// and changes nothing, if the CPU is settled or not allowed, or the program has no unsettled
    /// CPU. The same holds if another program would then have fewer CPUs.
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
        // Program 0 may run anywhere, program 1 only on CPU 2.
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
        // A program that has a choice moves.
        let mut matching = Matching::new(vec![vec![true; 2], vec![true; 2]], 2);
        assert!(matching.grow(0) && matching.grow(1) && of(&matching, 0) == [1]);
        assert!(matching.settle(0, 0) && of(&matching, 1) == [1]);
    }
}
