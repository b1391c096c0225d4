//! Activity vectors: how many runnable threads a program had, and how many CPUs they need (Rubio et
//! al.). Pure.

use std::time::Duration;

/// Time for which a process had 0, 1, 2 ... runnable threads in one period. The last entry is with
/// as many or more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityVector(Vec<Duration>);

impl ActivityVector {
    pub fn new(times: Vec<Duration>) -> ActivityVector {
        ActivityVector(times)
    }

    /// Iterate over the times with 0, 1, 2 ... threads in this period.
    pub fn times(&self) -> impl Iterator<Item = Duration> {
        self.0.iter().copied()
    }

    /// Return whether any thread was runnable in this period.
    pub fn ran(&self) -> bool {
        self.times().skip(1).any(|time| !time.is_zero())
    }

    /// Return the largest n such that the process had n or more runnable threads for at least
    /// `min_threshold` in all. 0: idle. A shorter burst loses little by waiting for a CPU.
    pub fn typical_thread_count(&self, min_threshold: Duration) -> u32 {
        let mut with_as_many = Duration::ZERO;
        for i in (1..self.0.len()).rev() {
            with_as_many += self.0[i];
            if with_as_many >= min_threshold && with_as_many > Duration::ZERO {
                return i as u32;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_THRESHOLD: Duration = Duration::from_millis(2);

    /// Build a vector of milliseconds with 0, 1, 2 ... threads.
    fn vector(times: &[u64]) -> ActivityVector {
        ActivityVector::new(times.iter().copied().map(Duration::from_millis).collect())
    }

    #[test]
    fn typical_thread_counts() {
        let count = |times: &[u64]| vector(times).typical_thread_count(MIN_THRESHOLD);
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[100]), 0);
        assert_eq!(count(&[50, 50]), 1);
        // A burst of 4 threads for 1 ms does not justify 4 CPUs.
        assert_eq!(count(&[9, 90, 0, 0, 1]), 1);
        assert_eq!(count(&[8, 90, 0, 0, 2]), 4);
        // 1 ms with 3 and 1 ms with 4 threads are 2 ms with at least 3.
        assert_eq!(count(&[8, 90, 0, 1, 1]), 3);
        assert_eq!(count(&[99, 1]), 0);
        // Without a threshold, an entry of 0 still does not count.
        assert_eq!(vector(&[100, 0]).typical_thread_count(Duration::ZERO), 0);
    }
}
