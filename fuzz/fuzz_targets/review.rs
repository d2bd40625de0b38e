//! Any request body: parsed, decided by every webhook with hostile facts, answered, its patch applied. What is parsed is never larger
//! than what was read.

#![no_main]

use allocation_counter::measure;
use gmsa_core::admission::{Review, Webhook, review::most_bytes_to_parse};
use gmsa_test_support::hostile;

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    for webhook in Webhook::ALL {
        let mut review = None;
        let info = measure(|| review = Review::parse(body, webhook).ok());
        assert!(review.is_none() || info.bytes_current <= body.len() as i64, "{webhook:?}: {info:?}");
        assert!(info.bytes_max <= most_bytes_to_parse(body.len()) as u64, "{webhook:?}: {info:?}");
    }
    hostile::review(body);
});
