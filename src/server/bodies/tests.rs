//! What is counted, what makes room, and who keeps a place.

use super::*;

const KIB: usize = 1024;

fn bodies(small: usize, large: usize) -> Bodies {
    Bodies::new(small * KIB, large * KIB)
}

fn taken(bodies: &Bodies) -> [usize; 2] {
    let state = bodies.0.lock();
    [state.small.taken / KIB, state.large.taken / KIB]
}

fn arriving(bodies: &Bodies, kib: usize) -> Arriving {
    let mut body = bodies.begin(None).unwrap();
    for _ in 0..kib {
        body.add(&[b' '; KIB]).unwrap();
    }
    body
}

#[test]
fn what_is_counted_is_what_has_arrived() {
    let bodies = bodies(1024, 1024);
    let mut body = bodies.begin(Some(8 * KIB * KIB)).unwrap();
    assert_eq!(taken(&bodies), [4, 0]);
    body.add(&vec![b' '; 64 * KIB]).unwrap();
    assert_eq!(taken(&bodies), [4 + 128, 0]);
    body.add(&[b' '; KIB]).unwrap();
    assert_eq!(taken(&bodies), [0, 4 + 130]);
    let complete = body.complete().unwrap();
    assert_eq!(complete.as_ref().len(), 65 * KIB);
    assert_eq!(taken(&bodies), [0, 4 + 130]);
    let read = complete.read(KIB).unwrap();
    assert_eq!(taken(&bodies), [0, 4 + 4 + 1]);
    let answer = read.answer(vec![b' '; 10 * KIB]).unwrap();
    assert_eq!(taken(&bodies), [0, 14]);
    let written = answer.clone();
    drop(answer);
    assert_eq!(taken(&bodies), [0, 14]);
    drop(written);
    assert_eq!(taken(&bodies), [0, 0]);
    drop(arriving(&bodies, 100));
    assert_eq!(taken(&bodies), [0, 0]);
}

#[test]
fn a_body_that_arrives_is_dropped_for_one_that_began_later() {
    let bodies = bodies(1024, 1024);
    let mut stalled = [arriving(&bodies, 200), arriving(&bodies, 200)];
    let third = arriving(&bodies, 200);
    assert_eq!(stalled[0].add(b"x"), Err(Full));
    assert_eq!(stalled[1].add(b"x"), Ok(()));
    let complete = third.complete().unwrap();
    assert_eq!(complete.as_ref().len(), 200 * KIB);
    let [_, second] = stalled;
    assert_eq!(second.complete().unwrap().as_ref().len(), 200 * KIB + 1);
}

#[test]
fn complete_reviews_keep_their_place_and_large_ones_leave_the_small_share_alone() {
    let bodies = bodies(132, 500);
    let large = arriving(&bodies, 100).complete().unwrap();
    let other = arriving(&bodies, 100).complete().unwrap();
    let mut third = arriving(&bodies, 40);
    assert_eq!(third.add(&vec![b' '; 100 * KIB]), Err(Full));
    let small = [0; 4].map(|_| arriving(&bodies, 14).complete().unwrap());
    assert_eq!(bodies.begin(None).map(drop), Ok(()));
    let fourth = arriving(&bodies, 0).complete().unwrap();
    assert_eq!(taken(&bodies), [132, 408]);
    assert_eq!(bodies.begin(None).map(drop), Err(Full));
    drop((small, fourth, other, large));
    assert_eq!(taken(&bodies), [0, 0]);
}

#[test]
fn bodies_are_dropped_only_where_that_is_enough() {
    let bodies = bodies(100, 0);
    let complete = arriving(&bodies, 30).complete().unwrap();
    let mut waiting = arriving(&bodies, 10);
    let mut refused = bodies.begin(None).unwrap();
    assert_eq!(taken(&bodies), [64 + 24 + 4, 0]);
    assert_eq!(refused.add(&vec![b' '; 20 * KIB]), Err(Full));
    assert_eq!(waiting.add(b" "), Ok(()));
    drop(complete);
    assert_eq!(bodies.begin(None).unwrap().add(&vec![b' '; 40 * KIB]), Ok(()));
    assert_eq!(waiting.add(b" "), Err(Full));
}

#[test]
fn a_review_that_is_read_keeps_its_place_and_an_answer_exceeds_a_share_that_is_not_full() {
    let bodies = bodies(20, 20);
    let read = arriving(&bodies, 2).complete().unwrap().read(0).unwrap();
    assert_eq!(taken(&bodies), [8, 0]);
    let other = arriving(&bodies, 4).complete().unwrap();
    assert_eq!(taken(&bodies), [20, 0]);
    assert_eq!(bodies.begin(None).map(drop), Err(Full));
    // No more than before: never refused.
    let answer = read.answer(vec![b' '; 4 * KIB]).unwrap();
    assert_eq!(taken(&bodies), [20, 0]);
    let other = other.read(4 * KIB).unwrap();
    // More than before, in a share with room: beyond its end, and in the large share where it is long.
    let long = other.answer(vec![b' '; 100 * KIB]).unwrap();
    assert_eq!(taken(&bodies), [8, 104]);
    let next = arriving(&bodies, 1).complete().unwrap().read(0).unwrap();
    assert_eq!(next.answer(vec![b' '; 100 * KIB]).map(drop), Err(Full));
    assert_eq!(taken(&bodies), [8, 104]);
    drop((answer, long));
    assert_eq!(taken(&bodies), [0, 0]);
}

#[test]
fn reviews_that_wait_leave_the_small_share_to_others() {
    let bodies = bodies(16 * KIB, 0);
    let mut waiting = Vec::new();
    for _ in 0..1024 {
        waiting.push(arriving(&bodies, 64).complete().unwrap().read(4 * KIB).unwrap());
    }
    assert_eq!(taken(&bodies), [1024 * 12, 0]);
}
