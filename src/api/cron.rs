//! Cron schedules as a Kubernetes CronJob reads them: the standard grammar of robfig/cron v3.
//!
//! Guarantees: what is read here, the API server takes as `spec.schedule` of a CronJob and means the same by it;
//! what it would refuse is refused with the reason. Beyond that, `@every` and dates that never occur are refused:
//! the first drifts with each restart of the process that counts, the second is a mistake.
//! Never: reads a clock; what depends on time and zone is left to the caller.

mod past;

/// The pattern of a field whose numbers or names match the one given.
macro_rules! field {
    ($value:literal) => {
        concat!(
            ",*([*?](-[^-/, \\t]*)*|",
            $value,
            "(-",
            $value,
            ")?)(/[+]?0*[1-9][0-9]*)?",
            "(,+([*?](-[^-/, \\t]*)*|",
            $value,
            "(-",
            $value,
            ")?)(/[+]?0*[1-9][0-9]*)?)*,*"
        )
    };
}
/// The CEL rule for a field that holds a schedule: all of the grammar but the order of ranges and the calendar.
pub const CEL_RULE: &str = concat!(
    "self.matches(r'^@(annually|yearly|monthly|weekly|daily|midnight|hourly)$|^[ \\t]*",
    field!("[+]?0*[0-5]?[0-9]"),
    "[ \\t]+",
    field!("[+]?0*(1?[0-9]|2[0-3])"),
    "[ \\t]+",
    field!("[+]?0*([1-9]|[12][0-9]|3[01])"),
    "[ \\t]+",
    field!("([+]?0*([1-9]|1[0-2])|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))"),
    "[ \\t]+",
    field!("([+]?0*[0-6]|(?i:sun|mon|tue|wed|thu|fri|sat))"),
    "[ \\t]*$')"
);
/// What that rule says.
pub const CEL_MESSAGE: &str = "must be a cron schedule of five fields (minute 0-59, hour 0-23, day of month 1-31, month 1-12, day of week 0-6) or a macro such as @daily; a time zone has a field of its own";

/// A schedule: which minutes, hours and days match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    minute: Set,
    hour: Set,
    day: Set,
    month: Set,
    weekday: Set,
}

/// Why a schedule is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// Not five fields.
    #[error(
        "has {0} fields and needs five: minute, hour, day of month, month, day of week; as in \"0 2 * * *\""
    )]
    Fields(usize),
    /// A time zone stands before the fields.
    #[error("must not begin with a time zone: it has a field of its own")]
    Zone,
    /// An `@` word that is no macro.
    #[error("is no macro: supported are @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly")]
    Macro,
    /// `@every`.
    #[error(
        "must not use @every: it counts from whenever the scheduler starts; use fields, as in \"*/30 * * * *\""
    )]
    Every,
    /// A part of a field does not read.
    #[error("{field} {part:?} is neither a number nor a known name")]
    Number {
        /// The field's name.
        field: &'static str,
        /// The offending part.
        part: String,
    },
    /// A number is out of its range.
    #[error("{field} {value} is out of range: {low} to {high}")]
    Range {
        /// The field's name.
        field: &'static str,
        /// The number.
        value: u32,
        /// The least allowed.
        low: u32,
        /// The greatest allowed.
        high: u32,
    },
    /// A range ends before it begins.
    #[error("{field} range {part:?} ends before it begins")]
    Reversed {
        /// The field's name.
        field: &'static str,
        /// The range.
        part: String,
    },
    /// More than one `-` or `/` in a part.
    #[error("{field} {part:?} has more than one {sign:?}")]
    Signs {
        /// The field's name.
        field: &'static str,
        /// The part.
        part: String,
        /// The sign.
        sign: char,
    },
    /// A step of nothing.
    #[error("{field} step must be at least 1")]
    Step {
        /// The field's name.
        field: &'static str,
    },
    /// No date matches.
    #[error("never occurs: no month named has such a day")]
    Never,
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// Says the first thing that is wrong.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
            return Err(CronError::Zone);
        }
        let schedule = if text.starts_with('@') {
            Self::fields(macro_fields(text)?)?
        } else {
            let fields: Vec<&str> = text.split_whitespace().collect();
            Self::fields(<[&str; 5]>::try_from(fields).map_err(|fields| CronError::Fields(fields.len()))?)?
        };
        if schedule.occurs() { Ok(schedule) } else { Err(CronError::Never) }
    }

    fn fields([minute, hour, day, month, weekday]: [&str; 5]) -> Result<Self, CronError> {
        Ok(Self {
            minute: MINUTE.read(minute)?,
            hour: HOUR.read(hour)?,
            day: DAY.read(day)?,
            month: MONTH.read(month)?,
            weekday: WEEKDAY.read(weekday)?,
        })
    }

    /// Whether the schedule may run on a date. Where both the day of the month and the weekday are restricted, either
    /// is enough, as in every cron.
    #[must_use]
    pub fn matches_date(&self, month: u32, day: u32, weekday: u32) -> bool {
        let (by_day, by_weekday) = (self.day.has(day), self.weekday.has(weekday));
        self.month.has(month)
            && if self.day.star || self.weekday.star { by_day && by_weekday } else { by_day || by_weekday }
    }

    /// Whether the schedule runs at a time of a date that matches.
    #[must_use]
    pub const fn matches_time(&self, hour: u32, minute: u32) -> bool {
        self.hour.has(hour) && self.minute.has(minute)
    }

    /// The least number of minutes between two runs, clock changes aside.
    #[must_use]
    pub fn shortest_interval(&self) -> u32 {
        let (minutes, hours) = (self.minute.numbers(), self.hour.numbers());
        let (Some(first), Some(last)) = (minutes.first(), minutes.last()) else { return MINUTES_OF_DAY };
        let within = minutes.windows(2).map(|pair| pair[1] - pair[0]);
        let between = hours.windows(2).map(|pair| (pair[1] - pair[0]) * 60 + first - last);
        let across = hours
            .first()
            .zip(hours.last())
            .filter(|_| self.has_neighbours())
            .map(|(morning, evening)| MINUTES_OF_DAY + morning * 60 + first - evening * 60 - last);
        within.chain(between).chain(across).min().unwrap_or(MINUTES_OF_DAY)
    }

    /// Whether any date matches.
    fn occurs(&self) -> bool {
        let whole = [self.minute, self.hour, self.month, self.weekday, self.day];
        !whole.iter().any(|set| set.bits == 0)
            && (!self.weekday.star && !self.day.star
                || dates().any(|(month, day)| self.month.has(month) && self.day.has(day)))
    }

    /// Whether two days in a row can match.
    fn has_neighbours(&self) -> bool {
        if !self.day.star && !self.weekday.star {
            return true;
        }
        let by_weekday = (0..7).any(|day| self.weekday.has(day) && self.weekday.has((day + 1) % 7));
        let by_date = dates().zip(dates().cycle().skip(1)).any(|((month, day), (next_month, next_day))| {
            self.month.has(month) && self.day.has(day) && self.month.has(next_month) && self.day.has(next_day)
        });
        by_weekday && by_date
    }
}

const MINUTES_OF_DAY: u32 = 24 * 60;

/// Every date of a leap year.
fn dates() -> impl Iterator<Item = (u32, u32)> + Clone {
    const DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    (1_u32..).zip(DAYS).flat_map(|(month, days)| (1..=days).map(move |day| (month, day)))
}

fn macro_fields(text: &str) -> Result<[&'static str; 5], CronError> {
    Ok(match text {
        "@yearly" | "@annually" => ["0", "0", "1", "1", "*"],
        "@monthly" => ["0", "0", "1", "*", "*"],
        "@weekly" => ["0", "0", "*", "*", "0"],
        "@daily" | "@midnight" => ["0", "0", "*", "*", "*"],
        "@hourly" => ["0", "*", "*", "*", "*"],
        _ if text.starts_with("@every ") => return Err(CronError::Every),
        _ => return Err(CronError::Macro),
    })
}

/// The numbers that a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Set {
    bits: u64,
    /// Whether it was written as `*` or `?`: it then leaves the choice of the day to the other field.
    star: bool,
}

impl Set {
    const fn has(self, number: u32) -> bool {
        number < u64::BITS && self.bits & (1 << number) != 0
    }

    /// In ascending order.
    fn numbers(self) -> Vec<u32> {
        (0..u64::BITS).filter(|number| self.has(*number)).collect()
    }
}

/// What a field may hold.
struct Field {
    name: &'static str,
    low: u32,
    high: u32,
    /// Names for the numbers from `low` on.
    names: &'static [&'static str],
}

const MINUTE: Field = Field { name: "minute", low: 0, high: 59, names: &[] };
const HOUR: Field = Field { name: "hour", low: 0, high: 23, names: &[] };
const DAY: Field = Field { name: "day of month", low: 1, high: 31, names: &[] };
const MONTH: Field = Field {
    name: "month",
    low: 1,
    high: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAY: Field =
    Field { name: "day of week", low: 0, high: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

impl Field {
    fn read(&self, text: &str) -> Result<Set, CronError> {
        let mut set = Set { bits: 0, star: false };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let one = self.part(part)?;
            set.bits |= one.bits;
            set.star |= one.star;
        }
        Ok(set)
    }

    /// `*`, `5`, `1-5`, each with an optional `/step`. As robfig has it, `5/15` means `5-max/15`, and what follows
    /// `*-` is not looked at.
    fn part(&self, part: &str) -> Result<Set, CronError> {
        let field = self.name;
        let signs = |sign| CronError::Signs { field, part: part.to_owned(), sign };
        let mut halves = part.split('/');
        let range = halves.next().unwrap_or_default();
        let step = halves.next();
        if halves.next().is_some() {
            return Err(signs('/'));
        }
        let mut ends = range.split('-');
        let first = ends.next().unwrap_or_default();
        let star = first == "*" || first == "?";
        let (low, high) = if star {
            (self.low, self.high)
        } else {
            let low = self.number(first)?;
            let last = ends.next();
            if ends.next().is_some() {
                return Err(signs('-'));
            }
            let high = match last {
                Some(last) => self.number(last)?,
                None if step.is_some() => self.high,
                None => low,
            };
            (low, high)
        };
        let step = step.map_or(Ok(1), |step| number(step).ok_or_else(|| self.unknown(step)))?;
        if low > high {
            return Err(CronError::Reversed { field, part: range.to_owned() });
        }
        if step == 0 {
            return Err(CronError::Step { field });
        }
        let bits = (low..=high)
            .step_by(usize::try_from(step).unwrap_or(usize::MAX))
            .fold(0, |bits, number| bits | 1 << number);
        Ok(Set { bits, star: star && step == 1 })
    }

    /// A number or a name, within the field's range.
    fn number(&self, text: &str) -> Result<u32, CronError> {
        let lower = text.to_ascii_lowercase();
        let named = (self.low..).zip(self.names).find(|(_, name)| **name == lower);
        let value = match named {
            Some((value, _)) => value,
            None => number(text).ok_or_else(|| self.unknown(text))?,
        };
        if (self.low..=self.high).contains(&value) {
            return Ok(value);
        }
        Err(CronError::Range { field: self.name, value, low: self.low, high: self.high })
    }

    fn unknown(&self, part: &str) -> CronError {
        CronError::Number { field: self.name, part: part.to_owned() }
    }
}

/// A number as Go's `strconv.Atoi` reads it, without a minus; huge ones saturate.
fn number(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let sound = !digits.is_empty() && digits.bytes().all(|one| one.is_ascii_digit());
    sound.then(|| digits.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
