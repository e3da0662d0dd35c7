#[no_mangle]
pub extern "C" fn ffi_pairs(n: u64) {
    let region = pk::region!("Rust");
    for _ in 0..n {
        let _scope = region.enter();
    }
}
