//! What a proxy does to bytes, and the generator that decides on faults.

use std::time::Duration;

/// Latency, bandwidth and the chances of faults; without any, bytes pass as they come.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Round-trip time.
    pub rtt: Duration,
    /// Downstream bandwidth of each connection; 0: no limit.
    pub connection_bytes_per_s: u64,
    /// Downstream bandwidth of all connections together; 0: no limit.
    pub shared_bytes_per_s: u64,
    /// Upstream bandwidth of all connections together; 0: no limit.
    pub upload_bytes_per_s: u64,
    /// Downstream TCP window of each connection: the most bytes sent in a round trip; 0: 16 MiB.
    pub window_bytes: u64,
    /// How much of it goes out at once: what is sent in this time. Longer turns take less of the
    /// processor, from what is measured beside.
    pub turn: Duration,
    /// Of the generator of faults.
    pub seed: u64,
    /// Chance that a connection is reset in the middle of a body.
    pub reset: f64,
    /// Chance that a connection is closed in the middle of a body.
    pub truncate: f64,
    /// Chance that a body stops in its middle for `stall_time`, and is then cut.
    pub stall: f64,
    /// How long a stall lasts.
    pub stall_time: Duration,
    /// Chance that a request is never answered.
    pub hang: f64,
    /// Chance of a 503.
    pub unavailable: f64,
    /// Chance of a 429.
    pub slow_down: f64,
    /// What `Retry-After` of both says.
    pub retry_after_s: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rtt: Duration::ZERO,
            connection_bytes_per_s: 0,
            shared_bytes_per_s: 0,
            upload_bytes_per_s: 0,
            window_bytes: 0,
            turn: Duration::from_micros(250),
            seed: 0,
            reset: 0.0,
            truncate: 0.0,
            stall: 0.0,
            stall_time: Duration::from_secs(30),
            hang: 0.0,
            unavailable: 0.0,
            slow_down: 0.0,
            retry_after_s: 1,
        }
    }
}

impl Settings {
    /// Sets one by its name on the command line, without the dashes.
    ///
    /// # Errors
    /// A sentence, when there is no such setting or it does not take the value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let wrong = || format!("{name} cannot be `{value}`");
        let number = || value.parse::<u64>().map_err(|_| wrong());
        let real = |most: f64| match value.parse::<f64>() {
            Ok(number) if (0.0..=most).contains(&number) => Ok(number),
            _ => Err(wrong()),
        };
        match name {
            "rtt-ms" => self.rtt = Duration::from_secs_f64(real(1e6)? / 1e3),
            "connection-bytes-per-s" => self.connection_bytes_per_s = number()?,
            "shared-bytes-per-s" => self.shared_bytes_per_s = number()?,
            "upload-bytes-per-s" => self.upload_bytes_per_s = number()?,
            "window-bytes" => self.window_bytes = number()?,
            "turn-ms" => self.turn = Duration::from_secs_f64(real(1e3)? / 1e3),
            "seed" => self.seed = number()?,
            "reset" => self.reset = real(1.0)?,
            "truncate" => self.truncate = real(1.0)?,
            "stall" => self.stall = real(1.0)?,
            "stall-s" => self.stall_time = Duration::from_secs_f64(real(1e6)?),
            "hang" => self.hang = real(1.0)?,
            "unavailable" => self.unavailable = real(1.0)?,
            "slow-down" => self.slow_down = real(1.0)?,
            "retry-after" => self.retry_after_s = number()?,
            _ => return Err(format!("no setting is called `{name}`")),
        }
        Ok(())
    }
}

/// What happens to a request. A fraction is the place in the body of its answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    Pass,
    Reset(f64),
    Truncate(f64),
    Stall(f64),
    Hang,
    Unavailable,
    SlowDown,
}

/// SplitMix64 (Steele, Lea, Flood 2014). Every request takes two numbers, whatever its fate.
pub(crate) struct Generator(u64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Uniform in [0, 1).
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The fate of the next request.
    pub(crate) fn fate(&mut self, settings: &Settings) -> Fate {
        let (mut draw, place) = (self.next(), self.next());
        let fates = [
            (settings.unavailable, Fate::Unavailable),
            (settings.slow_down, Fate::SlowDown),
            (settings.hang, Fate::Hang),
            (settings.reset, Fate::Reset(place)),
            (settings.truncate, Fate::Truncate(place)),
            (settings.stall, Fate::Stall(place)),
        ];
        for (chance, fate) in fates {
            if draw < chance {
                return fate;
            }
            draw -= chance;
        }
        Fate::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_repeat_and_are_as_frequent_as_asked() {
        let settings = Settings { reset: 0.25, unavailable: 0.5, ..Settings::default() };
        let draw = |seed| {
            let mut generator = Generator::new(seed);
            (0..4000).map(|_| generator.fate(&settings)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let share = |test: fn(&Fate) -> bool| draw(7).iter().filter(|f| test(f)).count() as f64;
        assert!((share(|fate| *fate == Fate::Unavailable) / 4000.0 - 0.5).abs() < 0.05);
        assert!((share(|fate| matches!(fate, Fate::Reset(_))) / 4000.0 - 0.25).abs() < 0.05);
    }

    #[test]
    fn wrong_settings_are_refused() {
        let mut settings = Settings::default();
        for (name, value) in [("reset", "1.5"), ("rtt-ms", "-1"), ("seed", "x"), ("rtt", "1")] {
            assert!(settings.set(name, value).is_err(), "{name} {value}");
        }
        settings.set("rtt-ms", "0.5").unwrap();
        assert_eq!(settings.rtt, Duration::from_micros(500));
    }
}
