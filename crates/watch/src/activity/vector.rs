//! Activity vectors: how many runnable threads a program had, and how many CPUs they need (Rubio et
//! al.). Pure.

use std::time::Duration;

/// Time for which a process had 0, 1, 2 ... runnable threads in one period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityVector {
    /// `[i]`: time with exactly i threads; last entry: with as many or more.
    time: Vec<Duration>,
    /// `[i]`: whether `time[i]` was written in this period. Other entries count as 0, so a long
    /// vector need not be cleared each period.
    valid: Vec<bool>,
}

impl ActivityVector {
    pub fn new(time: Vec<Duration>, valid: Vec<bool>) -> ActivityVector {
        assert_eq!(time.len(), valid.len());
        ActivityVector { time, valid }
    }

    /// Iterate over the times with 0, 1, 2 ... threads in this period.
    pub fn times(&self) -> impl Iterator<Item = Duration> {
        self.time
            .iter()
            .zip(&self.valid)
            .map(|(&time, &valid)| if valid { time } else { Duration::ZERO })
    }

    /// Return whether any thread was runnable in this period.
    pub fn ran(&self) -> bool {
        self.times().skip(1).any(|time| !time.is_zero())
    }

    /// Return the largest n such that the process had n or more runnable threads for at least
    /// `min_threshold` in all. 0: idle. A shorter burst loses little by waiting for a CPU.
    pub fn typical_thread_count(&self, min_threshold: Duration) -> u32 {
        let mut with_as_many = Duration::ZERO;
        for i in (1..self.time.len()).rev() {
            if self.valid[i] {
                with_as_many += self.time[i];
            }
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

    /// Build a vector of milliseconds with 0, 1, 2 ... threads; None: not written in this period.
    fn vector(times: &[Option<u64>]) -> ActivityVector {
        let time = times.iter().map(|t| Duration::from_millis(t.unwrap_or(1000))).collect();
        ActivityVector::new(time, times.iter().map(Option::is_some).collect())
    }

    #[test]
    fn typical_thread_counts() {
        let count = |times: &[Option<u64>]| vector(times).typical_thread_count(MIN_THRESHOLD);
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[Some(100)]), 0);
        assert_eq!(count(&[Some(50), Some(50)]), 1);
        // A burst of 4 threads for 1 ms does not justify 4 CPUs.
        assert_eq!(count(&[Some(9), Some(90), Some(0), Some(0), Some(1)]), 1);
        assert_eq!(count(&[Some(8), Some(90), Some(0), Some(0), Some(2)]), 4);
        // 1 ms with 3 and 1 ms with 4 threads are 2 ms with at least 3.
        assert_eq!(count(&[Some(8), Some(90), Some(0), Some(1), Some(1)]), 3);
        assert_eq!(count(&[Some(99), Some(1)]), 0);
        // Entries of an earlier period do not count.
        assert_eq!(count(&[Some(50), Some(50), None, None]), 1);
        assert_eq!(count(&[None, None]), 0);
        // Without a threshold, an entry of 0 still does not count.
        assert_eq!(vector(&[Some(100), Some(0)]).typical_thread_count(Duration::ZERO), 0);
    }
}
