//! The output of the example.

#[path = "../../examples/land.rs"]
#[expect(dead_code, reason = "only its `main` is not called")]
mod land;

#[test]
fn the_example_lands_its_work() {
    let happened = land::walk_through().unwrap();
    assert_eq!(
        happened,
        [
            "created greeting on branch worktree/greeting",
            "worked in it: 1 untracked file",
            "landed 1 commit on main",
            "removed it; undo can bring it back",
            "the main worktree says hello",
        ]
    );
}
