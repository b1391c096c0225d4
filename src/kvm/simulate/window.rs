//! How long a vCPU may spin before it exits: the PLE window of each vCPU.

use std::str::FromStr;

use crate::adapt::{Apple, Limits};

/// KVM's default: ple_window. Intel's is in cycles.
pub const DEFAULT: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Fixed(u32),
    /// KVM's default: doubled by each PLE exit of a vCPU (ple_window_grow), 4096 again when it is
    /// scheduled in (ple_window_shrink)
    Kvm,
    /// A window for each VM, found by APPLE
    Apple,
    /// No PLE exits
    Off,
}

impl FromStr for Policy {
    type Err = String;
    fn from_str(text: &str) -> Result<Policy, String> {
        match text {
            "kvm" => Ok(Policy::Kvm),
            "apple" => Ok(Policy::Apple),
            "off" => Ok(Policy::Off),
            _ => match text.parse() {
                Ok(n @ 1..) => Ok(Policy::Fixed(n)),
                _ => Err("kvm, apple, off, or a number of cycles from 1".into()),
            },
        }
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Policy::Fixed(n) => f.pad(&n.to_string()),
            Policy::Kvm => f.pad("kvm"),
            Policy::Apple => f.pad("apple"),
            Policy::Off => f.pad("off"),
        }
    }
}

/// How APPLE is set up.
#[derive(Clone, Copy, Debug)]
pub struct AppleSetup {
    pub limits: Limits,
    /// T at first, in cycles.
    pub start: u32,
    /// PLE exits of an epoch.
    pub epoch: u32,
    /// Whether the switches that yields cause on other CPUs are wasted time, too. KVM's exits and
    /// entries do not tell.
    pub counts_remote: bool,
    /// Whether spins that the scheduler ended before the window did are wasted, too. KVM cannot see
    /// them.
    pub counts_cut: bool,
}

impl AppleSetup {
    /// The paper's parameters: T0 8192, bounds 4096 and 32768, a fixed step of 1024, no margin,
    /// epochs of 1000 PLE exits.
    pub const PAPER: AppleSetup = AppleSetup {
        limits: Limits {
            lower: 4096,
            upper: 32_768,
            step: 1024,
            step_permille: 0,
            margin_permille: 0,
        },
        start: 8192,
        epoch: 1000,
        counts_remote: false,
        counts_cut: false,
    };
    /// Longer epochs, and T moves only if that saves 5 % of the waste.
    pub const STEADY: AppleSetup = AppleSetup {
        limits: Limits { margin_permille: 50, ..Self::PAPER.limits },
        epoch: 4000,
        ..Self::PAPER
    };
    /// From KVM's own window, with a lower bound that suits ticket locks.
    pub const LOW: AppleSetup = AppleSetup {
        limits: Limits { lower: 512, step: 512, ..Self::PAPER.limits },
        start: DEFAULT,
        ..Self::PAPER
    };
    /// With what KVM cannot see.
    pub const SEEING: AppleSetup = AppleSetup { counts_cut: true, ..Self::PAPER };
}

/// APPLE at work for one VM.
pub struct Controller {
    pub apple: Apple,
    epoch: u32,
    exits: u32,
    wasted: u64,
    time: u64,
}

impl Controller {
    pub fn new(setup: AppleSetup) -> Controller {
        Controller {
            apple: Apple::new(setup.limits, setup.start),
            epoch: setup.epoch,
            exits: 0,
            wasted: 0,
            time: 0,
        }
    }

    /// A PLE exit. True if the epoch is over: then the caller brings the VM's totals up to date,
    /// and calls `end`.
    pub fn exit(&mut self) -> bool {
        self.exits += 1;
        self.exits >= self.epoch
    }

    /// The VM has wasted so much of so much CPU time since it was started.
    pub fn end(&mut self, wasted: u64, time: u64) {
        self.apple.epoch(wasted - self.wasted, time - self.time);
        (self.exits, self.wasted, self.time) = (0, wasted, time);
    }
}

/// KVM's rule, on a PLE exit. ple_window_max is the largest number there is.
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
