//! example.rs - a pipeline under perfkit: threads that work on batches, scopes, a counter, steps.
//!
//!     rustc -O --edition 2021 --crate-type rlib --crate-name pk pk.rs
//!     rustc -O --edition 2021 example.rs --extern pk=libpk.rlib $(pkg-config --libs-only-L pk) && ./example

use pk::{Kind, Region};
use std::sync::mpsc;
use std::thread;

static FORWARD: &Region = pk::region!("forward", Kind::Compute);
static BACKWARD: &Region = pk::region!("backward", Kind::Compute);

const STEPS: usize = 50;
const BATCH: usize = 1 << 14;

fn load(batches: mpsc::SyncSender<Vec<f32>>) {
    pk::thread_name("loader");
    for step in 0..STEPS {
        let batch = {
            let scope = pk::scope!("load", Kind::Data);
            scope.add(4 * BATCH as u64, 0);
            (0..BATCH).map(|i| (i * step) as f32).collect()
        };
        if batches.send(batch).is_err() {
            return;
        }
    }
}

fn train(batch: &[f32]) -> f64 {
    let mut scope = FORWARD.enter();
    let loss = batch.iter().map(|x| f64::from(x * x)).sum::<f64>();
    scope.next(BACKWARD);
    let gradient = batch.iter().map(|x| f64::from(*x) * loss).fold(0.0, f64::max);
    gradient / (1.0 + gradient)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = pk::Options::new().trace_path("example.json").report_path("-").start()?;
    let (sender, batches) = mpsc::sync_channel(4);
    let loader = thread::spawn(move || load(sender));
    loop {
        let received = {
            let _scope = pk::scope!("wait for batch", Kind::Wait);
            batches.recv()
        };
        let batch = match received {
            Ok(batch) => batch,
            Err(_) => break, // the loader has gone
        };
        pk::counter!("loss").set(train(&batch));
        pk::step(batch.len() as u64);
    }
    loader.join().map_err(|_| "the loader panicked")?;
    let stats = FORWARD.stats()?;
    println!("forward: {} calls, p99 {:.1} us", stats.count, stats.quantile(0.99) as f64 / 1e3);
    session.stop()?;
    Ok(())
}
