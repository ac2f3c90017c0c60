//! Times for people and programs, without a time zone database.

/// Returns a number of seconds since 1970 as `YYYY-MM-DDTHH:MM:SSZ` (RFC 3339).
pub fn rfc3339(seconds: u64) -> String {
    const DAY: u64 = 86_400;
    let (year, month, day) = date(seconds / DAY);
    let second = seconds % DAY;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns the date of a day, counted from 1970-01-01.
fn date(mut day: u64) -> (u64, u64, u64) {
    // Every 400 years the calendar repeats.
    const CYCLE: u64 = 146_097;
    let mut year = 1970 + day / CYCLE * 400;
    day %= CYCLE;
    while day >= days_of(year) {
        day -= days_of(year);
        year += 1;
    }
    let february = days_of(year) - 337;
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for days in months {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    (year, month, day + 1)
}

fn days_of(year: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    if is_leap { 366 } else { 365 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        // As `date -u -d @SECONDS +%FT%TZ` prints them.
        let known = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_796_096_859, "2026-12-01T03:47:39Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
            (12_622_780_800, "2370-01-01T00:00:00Z"),
        ];
        for (seconds, text) in known {
            assert_eq!(rfc3339(seconds), text);
        }
    }
}
