use std::io::{self, BufRead};

use super::bins::Bins;
use super::line::{ReadLine, next};
use super::times::RequestTimes;

impl RequestTimes {
    /// Reads a record of requests line by line: of hundreds of thousands it has gigabytes.
    pub fn read(mut lines: impl BufRead) -> io::Result<Self> {
        let (mut bins, mut unread, mut line) = (Bins::default(), 0, Vec::new());
        loop {
            match next(&mut lines, &mut line)? {
                ReadLine::Measured(request) => bins.add(&request),
                ReadLine::PassedOver => {}
                ReadLine::NotUnderstood => unread += 1,
                ReadLine::End => {
                    let all = bins.finish();
                    return Ok(Self { unread, ..all });
                }
            }
        }
    }
}
