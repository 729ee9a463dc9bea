//! The examples do what they say.

#[path = "../examples/board.rs"]
mod board;

#[test]
fn three_tasks_are_done_in_the_order_of_their_edges_and_priorities() {
    board::main().unwrap();
    assert_eq!(
        board::work().unwrap(),
        [
            "created 3 tasks",
            "ann did #3 Write the notes",
            "ann did #1 Fix the build; #2 is ready now",
            "ann did #2 Tag the release",
        ]
    );
}
