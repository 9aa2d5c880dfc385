//! `/metrics`, in the text format of Prometheus.

use crate::disk::Disk;
use crate::disks::Disks;
use crate::request_record::{METHODS, RequestCounts, RequestRecord};
use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use swathe_store_api::Space;

/// Name, kind, help and value of a metric of each disk.
type DiskMetric = (&'static str, &'static str, &'static str, fn(&Disk) -> u64);

/// All metrics of a server.
pub(crate) async fn metrics(
    server: &Disks,
    counts: &RequestCounts,
    record: &RequestRecord,
) -> String {
    let space = server.space(record).await;
    let mut page = Page::default();
    page.add_requests(counts);
    let name = "swathe_server_names_consistent";
    page.describe(name, "gauge", "0 while names on disks that came back are compared.");
    page.add(name, "", u8::from(server.is_consistent()));
    page.add_work(server);
    page.add_space(server, &space);
    page.0
}

fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn seconds(ns: &AtomicU64) -> f64 {
    load(ns) as f64 / 1e9
}

fn label(disk: &Disk) -> String {
    let name = disk.name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("disk=\"{name}\"")
}

#[derive(Default)]
struct Page(String);

impl Page {
    /// Add the counts and times of requests.
    fn add_requests(&mut self, counts: &RequestCounts) {
        self.describe("swathe_server_requests_total", "counter", "Requests by method and status.");
        for (method, by_class) in METHODS.iter().zip(&counts.by_class) {
            for (class, count) in (1..).zip(by_class) {
                let labels = format!("method=\"{method}\",status=\"{class}xx\"");
                self.add_if("swathe_server_requests_total", &labels, load(count));
            }
        }
        for (name, help, count) in [
            (
                "swathe_server_received_bytes_total",
                "Bytes of bodies of requests.",
                &counts.body_bytes,
            ),
            ("swathe_server_sent_bytes_total", "Bytes of bodies of answers.", &counts.answer_bytes),
            (
                "swathe_server_broken_answers_total",
                "Answers that were cut short.",
                &counts.broken_answers,
            ),
        ] {
            self.describe(name, "counter", help);
            self.add(name, "", load(count));
        }
        for (name, help, count) in [
            ("request", "Time of all requests, from head to last byte.", &counts.request_ns),
            ("disk_wait", "Of this, waiting for disks.", &counts.wait_ns),
            ("send_wait", "Of this, waiting until clients take more.", &counts.send_ns),
            ("late", "Time by which the server came late to its work.", &counts.late_ns),
        ] {
            let name = format!("swathe_server_{name}_seconds_total");
            self.describe(&name, "counter", help);
            self.add(&name, "", seconds(count));
        }
        self.describe(
            "swathe_server_requests_in_flight",
            "gauge",
            "Requests that are being answered.",
        );
        let in_flight = counts.in_flight.load(Ordering::Relaxed) as u64;
        self.add("swathe_server_requests_in_flight", "", in_flight);
    }

    /// Add the work of each disk, and what is reserved on it.
    fn add_work(&mut self, server: &Disks) {
        let disks = &server.all;
        let disk_metrics: [DiskMetric; 6] = [
            ("queue_length", "gauge", "Work that waits for the disk or runs there.", |disk| {
                disk.queue_length() as u64
            }),
            ("read_bytes_total", "counter", "Bytes of objects read.", |d| {
                load(&d.counts.read_bytes)
            }),
            ("write_bytes_total", "counter", "Bytes of objects written.", |d| {
                load(&d.counts.write_bytes)
            }),
            ("errors_total", "counter", "Work that failed.", |d| load(&d.counts.errors)),
            ("damages_total", "counter", "Reads of damaged blocks or checksums.", |d| {
                load(&d.counts.damages)
            }),
            (
                "aside_objects_total",
                "counter",
                "Objects that were older than one on another disk.",
                |d| load(&d.counts.aside_objects),
            ),
        ];
        for (name, kind, help, value) in disk_metrics {
            let name = format!("swathe_disk_{name}");
            self.describe(&name, kind, help);
            for disk in disks {
                self.add(&name, &label(disk), value(disk));
            }
        }
        let name = "swathe_disk_reserved_bytes";
        self.describe(name, "gauge", "Bytes reserved for objects that are not written yet.");
        for disk in disks {
            self.add(name, &label(disk), server.rooms.bytes_on(disk));
        }
        self.describe(
            "swathe_disk_work_seconds_total",
            "counter",
            "Time of all work of its threads.",
        );
        for disk in disks {
            self.add("swathe_disk_work_seconds_total", &label(disk), seconds(&disk.counts.work_ns));
        }
    }

    /// Add which disks are there, and their room.
    fn add_space(&mut self, server: &Disks, space: &Space) {
        let disks = &server.all;
        self.describe("swathe_disk_up", "gauge", "1 if the disk is there, 0 if it is missing.");
        for (disk, space) in disks.iter().zip(&space.disks) {
            self.add("swathe_disk_up", &label(disk), u8::from(space.is_up));
        }
        for (name, help, first) in [
            ("swathe_disk_free_bytes", "Bytes that are free for objects.", true),
            ("swathe_disk_size_bytes", "Bytes of the disk, or its limit.", false),
        ] {
            self.describe(name, "gauge", help);
            for (disk, space) in disks.iter().zip(&space.disks).filter(|(_, space)| space.is_up) {
                let value = if first { space.free_bytes } else { space.total_bytes };
                self.add(name, &label(disk), value);
            }
        }
    }

    fn describe(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a text does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn add(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn add_if(&mut self, name: &str, labels: &str, value: u64) {
        if value > 0 {
            self.add(name, labels, value);
        }
    }
}
