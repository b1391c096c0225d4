//! Exit codes, the same for all verbs:
//!
//! | code | |
//! |---|---|
//! | 0 | done |
//! | 1 | failed |
//! | 2 | wrong use |
//! | 126, 127 | a program cannot be executed, was not found |
//! | 128 + N | ended by signal N |
//!
//! A verb that has other codes names them in its help.

use std::fmt;
use std::io;

use crate::output;

pub const FAILED: i32 = 1;
pub const WRONG_USE: i32 = 2;
pub const NOT_EXECUTABLE: i32 = 126;
pub const NOT_FOUND: i32 = 127;

/// An error with an exit code of its own. Its message names the fix.
#[derive(Debug)]
pub struct Failure {
    pub code: i32,
    pub message: String,
}

impl Failure {
    pub fn wrong_use(message: impl Into<String>) -> Failure {
        Failure { code: WRONG_USE, message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Return the exit code of a verb. Prints its error, if any, on standard error.
pub fn code(done: anyhow::Result<i32>) -> i32 {
    let error = match done {
        Ok(code) => return code,
        Err(error) => error,
    };
    if is_closed(&error) {
        return 0;
    }
    crate::message!("lissom: {error:#}");
    error.downcast_ref::<Failure>().map_or(FAILED, |failure| failure.code)
}

/// Return whether the error means that standard output is closed, which is no failure.
pub fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(output::is_closed)
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn codes() {
        assert_eq!(code(Ok(3)), 3);
        assert_eq!(code(Err(anyhow::anyhow!("failed"))), FAILED);
        let wrong: Result<i32, Failure> = Err(Failure::wrong_use("--a is above --b"));
        assert_eq!(code(wrong.context("simulate")), WRONG_USE);
        let closed = || io::Error::new(io::ErrorKind::BrokenPipe, output::Closed);
        assert_eq!(code(Err(closed()).context("the report")), 0);
        let server: io::Result<i32> = Err(io::ErrorKind::BrokenPipe.into());
        assert_eq!(code(server.context("the server")), FAILED);
    }
}
