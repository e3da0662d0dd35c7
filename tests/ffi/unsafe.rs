//! unsafe.rs - must not compile: a scope that is ended on another thread.

fn main() {
    let scope = pk::scope!("mine");
    std::thread::spawn(move || drop(scope));
}
