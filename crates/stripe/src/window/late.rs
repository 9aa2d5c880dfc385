//! Waiting for the parts of a window: those that are late are read around, those that are gone given up.

use super::Window;
use crate::liveness::Living;
use crate::question::ask_all;
use crate::read_events::record_hedge;
use crate::server::Server;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use swathe_store_api::{Interrupt, StoreError};

/// A wait is checked for an interrupt after this time.
const STEP: Duration = Duration::from_millis(100);
/// A server that is needed and sent nothing for this time is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(5);

impl Window {
    /// Wait for the next message, or until a fetch is late.
    pub(super) fn wait(&mut self) -> Result<(), StoreError> {
        if Interrupt::current().is_set() {
            return Err(StoreError::Interrupted { url: self.object.url.clone() });
        }
        let until = Instant::now() + STEP;
        let until = self.next_deadline().map_or(until, |deadline| deadline.min(until));
        match self.receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok((number, message)) => {
                let hedges = self.is_short.then_some(&*self.object.hedges);
                if self.fetches[number].is_running
                    && let Some(result) = self.fetches[number].take(message, hedges)
                {
                    self.settle(number, result)?;
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                self.act_on_late();
                self.act_on_silent()?;
            }
            Err(RecvTimeoutError::Disconnected) => {}
        }
        Ok(())
    }

    /// By how much parts may be later than their prediction says: those of short ranges take what a
    /// request takes at this time, and long ones the line.
    fn patience(&self) -> f64 {
        if self.is_short { self.object.hedges.patience() } else { 1.0 }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let patience = self.patience();
        let running = self.fetches.iter().filter(|fetch| fetch.is_running);
        running
            .map(|fetch| if fetch.has_hedge { fetch.timeout_at() } else { fetch.late_at(patience) })
            .filter(|&at| at > Instant::now())
            .min()
    }

    /// Give up fetches that are gone, and read around those that are late.
    fn act_on_late(&mut self) {
        let now = Instant::now();
        if self.object.layout().parity == 0 {
            return;
        }
        for number in 0..self.fetches.len() {
            let fetch = &self.fetches[number];
            if !fetch.is_running {
                continue;
            }
            let part = fetch.part;
            let is_unreachable = || self.object.parts[part as usize].is_unreachable();
            if fetch.timeout_at() <= now || is_unreachable() {
                let mut without = self.timed_out.clone();
                without.insert(part);
                // Else it is waited for, as long as its server is there.
                if self.needs(&without).is_some() && self.timed_out.insert(part) {
                    self.object.parts[part as usize].note_failure();
                    self.slow.insert(part);
                    self.fetches[number].abandon();
                    self.keep(number);
                }
            }
        }
        let patience = self.patience();
        let late: HashSet<u32> = self
            .fetches
            .iter()
            .filter(|fetch| fetch.is_running && !fetch.is_hedge && fetch.late_at(patience) <= now)
            .map(|fetch| fetch.part)
            .collect();
        let is_only_late =
            self.fetches.iter().all(|fetch| !fetch.is_running || late.contains(&fetch.part));
        let is_new = self.fetches.iter().any(|fetch| fetch.is_running && !fetch.has_hedge);
        if late.is_empty() || !is_only_late || !is_new {
            return;
        }
        // What did come of them is not needed twice.
        (0..self.fetches.len()).for_each(|number| self.keep(number));
        let Some(needs) = self.needs(&late).filter(|needs| !needs.is_empty()) else { return };
        for fetch in self.fetches.iter_mut().filter(|fetch| fetch.is_running) {
            fetch.has_hedge = true;
        }
        if !self.object.hedges.take(needs.bytes()) {
            return;
        }
        for &part in &late {
            record_hedge("STRIPE_HEDGE", &self.object, part, needs.bytes());
        }
        for number in self.ask(&needs) {
            self.fetches[number].is_hedge = true;
        }
    }

    /// Give up fetches whose servers sent nothing for a while, and do not answer a question.
    fn act_on_silent(&mut self) -> Result<(), StoreError> {
        let now = Instant::now();
        let fetches = self.fetches.iter_mut().enumerate();
        let silent: Vec<usize> = fetches
            .filter_map(|(number, fetch)| fetch.is_silent(now, SILENCE).then_some(number))
            .collect();
        if silent.is_empty() {
            return Ok(());
        }
        let parts = silent.iter().map(|&number| self.fetches[number].part as usize);
        let places = parts.map(|part| self.object.parts[part].places()).collect::<Vec<_>>();
        // Of a part that may be on several servers each has limits of its own.
        let is_one = |servers: &Vec<Arc<Server>>| matches!(&servers[..], [one] if one.is_watched());
        let one_each = silent.iter().zip(&places).filter(|(_, servers)| is_one(servers));
        let (numbers, servers): (Vec<usize>, Vec<Arc<Server>>) =
            one_each.map(|(&number, servers)| (number, servers[0].clone())).unzip();
        let alive = ask_all(&servers, |_, server| server.is_alive());
        if Interrupt::current().is_set() {
            return Err(StoreError::Interrupted { url: self.object.url.clone() });
        }
        for ((number, server), is_alive) in numbers.into_iter().zip(servers).zip(alive) {
            // It may have sent the rest meanwhile.
            if !is_alive && self.fetches[number].is_running {
                self.fetches[number].abandon();
                self.settle(number, Err(server.silence_error()))?;
            }
        }
        Ok(())
    }
}
