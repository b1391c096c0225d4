//! The PLE window of each vCPU: how long it may spin before it exits.

use std::str::FromStr;

use crate::adapt::{Apple, Limits};

/// KVM's default ple_window, in cycles (Intel).
pub const DEFAULT: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Fixed(u32),
    /// KVM's default: each PLE exit of a vCPU doubles its window (ple_window_grow); scheduling it
    /// in resets the window to 4096 (ple_window_shrink)
    Kvm,
    /// A window for each VM, chosen by APPLE
    Apple(AppleSetup),
    /// No PLE exits
    Off,
}

impl FromStr for Policy {
    type Err = String;
    fn from_str(text: &str) -> Result<Policy, String> {
        match text {
            "kvm" => Ok(Policy::Kvm),
            "apple" => Ok(Policy::Apple(AppleSetup::PAPER)),
            "off" => Ok(Policy::Off),
            _ => match text.parse() {
                Ok(n @ 1..) => Ok(Policy::Fixed(n)),
                _ => Err("expected kvm, apple, off, or a number of cycles from 1".into()),
            },
        }
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Policy::Fixed(n) => f.pad(&n.to_string()),
            Policy::Kvm => f.pad("kvm"),
            Policy::Apple(_) => f.pad("apple"),
            Policy::Off => f.pad("off"),
        }
    }
}

/// APPLE's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppleSetup {
    pub limits: Limits,
    /// The first T, in cycles.
    pub start: u32,
    /// Number of PLE exits in an epoch.
    pub epoch: u32,
    /// Count switches that yields cause on other CPUs as wasted. KVM's exits and entries do not
    /// show them.
    pub counts_remote: bool,
    /// Count spins that the scheduler ended before the window did as wasted. KVM cannot observe
    /// them.
    pub counts_cut: bool,
}

impl AppleSetup {
    /// The paper's parameters.
    pub const PAPER: AppleSetup = AppleSetup {
        limits: Limits::PAPER,
        start: Limits::PAPERS_START,
        epoch: 1000,
        counts_remote: false,
        counts_cut: false,
    };
    /// Longer epochs, and a margin: T moves only if that saves 5 % of the waste.
    pub const STEADY: AppleSetup = AppleSetup {
        limits: Limits { margin_permille: 50, ..Self::PAPER.limits },
        epoch: 4000,
        ..Self::PAPER
    };
    /// Starts at KVM's own window, with a lower bound that suits ticket locks.
    pub const LOW: AppleSetup = AppleSetup {
        limits: Limits { lower: 512, step: 512, ..Self::PAPER.limits },
        start: DEFAULT,
        ..Self::PAPER
    };
    /// The paper's parameters, and spins that the scheduler ended count as wasted, too.
    pub const SEEING: AppleSetup = AppleSetup { counts_cut: true, ..Self::PAPER };
}

/// APPLE for one VM.
pub struct Controller {
    pub apple: Apple,
    pub setup: AppleSetup,
    exits: u32,
    wasted: u64,
    time: u64,
}

impl Controller {
    pub fn new(setup: AppleSetup) -> Controller {
        Controller {
            apple: Apple::new(setup.limits, setup.start),
            setup,
            exits: 0,
            wasted: 0,
            time: 0,
        }
    }

    /// Count a PLE exit. Returns whether the epoch is over: then the caller updates the VM's totals
    /// and calls `end`.
    pub fn exit(&mut self) -> bool {
        self.exits += 1;
        self.exits >= self.setup.epoch
    }

    /// End an epoch. wasted, time: cycles of the VM since its start.
    pub fn end(&mut self, wasted: u64, time: u64) {
        self.apple.epoch(wasted - self.wasted, time - self.time);
        (self.exits, self.wasted, self.time) = (0, wasted, time);
    }
}

/// KVM's rule on a PLE exit, for the default ple_window_max, the largest possible number.
pub fn grown(window: u32) -> u32 {
    window.saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies() {
        assert_eq!("kvm".parse(), Ok(Policy::Kvm));
        assert_eq!("4096".parse(), Ok(Policy::Fixed(4096)));
        for nonsense in ["", "0", "-1", "KVM", "5000000000"] {
            assert!(nonsense.parse::<Policy>().is_err(), "{nonsense}");
        }
        assert_eq!(grown(grown(DEFAULT)), 16384);
        assert_eq!(grown(u32::MAX), u32::MAX);
    }

    #[test]
    fn epochs_count_exits() {
        let mut controller = Controller::new(AppleSetup { epoch: 3, ..AppleSetup::PAPER });
        assert!(!controller.exit() && !controller.exit());
        assert!(controller.exit());
        controller.end(10, 100);
        assert_eq!(controller.apple.threshold(), 8192 + 1024, "T+d is next");
        assert!(!controller.exit());
    }
}
