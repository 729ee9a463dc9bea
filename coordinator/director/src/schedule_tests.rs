use proptest::prelude::*;

use super::*;

fn id(number: u64) -> TaskId {
    TaskId::new(number).unwrap()
}

fn task(number: u64) -> TaskView {
    TaskView {
        id: id(number),
        status: Status::Pending,
        owner: None,
        blocked_by: Vec::new(),
        priority: 0,
        parked: false,
        paths: Vec::new(),
        has_command: true,
        agent_type: None,
        reported: false,
        needs: Vec::new(),
        expires: false,
        landed: false,
    }
}

fn seat(name: &str) -> SeatView {
    SeatView {
        name: Some(name.into()),
        at: None,
        commands_only: true,
        runtime: None,
        available: true,
    }
}

/// A board and slots that each case changes.
struct Scene {
    tasks: Tasks,
    unreadable: BTreeSet<TaskId>,
    held: Vec<Vec<String>>,
    resting: BTreeSet<TaskId>,
    seats: Vec<SeatView>,
    needs: BTreeMap<String, String>,
    labels: BTreeSet<String>,
    workers: Vec<KnownWorker>,
    spread: Option<u64>,
    limits: Limits,
    closed: Option<&'static str>,
    succeeded: usize,
    failed: usize,
}

impl Scene {
    fn waiting(&self) -> Waiting<'_> {
        Waiting {
            tasks: &self.tasks,
            unreadable: &self.unreadable,
        }
    }

    fn new(tasks: impl IntoIterator<Item = TaskView>, seats: usize) -> Self {
        Self {
            tasks: tasks.into_iter().map(|task| (task.id, task)).collect(),
            unreadable: BTreeSet::new(),
            held: Vec::new(),
            resting: BTreeSet::new(),
            needs: BTreeMap::new(),
            labels: BTreeSet::new(),
            workers: Vec::new(),
            spread: None,
            seats: (1..=seats).map(|n| seat(&format!("mate-{n}"))).collect(),
            limits: Limits {
                at_once: seats,
                ..Limits::default()
            },
            closed: None,
            succeeded: 0,
            failed: 0,
        }
    }

    fn plan(&self) -> Plan {
        schedule(&Snapshot {
            tasks: &self.tasks,
            unreadable: &self.unreadable,
            held: &self.held,
            resting: &self.resting,
            seats: &self.seats,
            limits: self.limits,
            closed: self.closed,
            needs: &self.needs,
            labels: &self.labels,
            workers: &self.workers,
            spread: self.spread,
            succeeded: self.succeeded,
            failed: self.failed,
        })
    }

    fn started(&self) -> Vec<u64> {
        self.plan().start.iter().map(|(id, _)| id.get()).collect()
    }
}

#[test]
fn the_order_is_assigned_then_priority_then_chain_then_age() {
    let urgent = TaskView {
        priority: 5,
        ..task(4)
    };
    let behind = TaskView {
        blocked_by: vec![id(3)],
        ..task(5)
    };
    let assigned = TaskView {
        owner: Some("mate-1".into()),
        ..task(6)
    };
    let mut scene = Scene::new([task(1), task(2), task(3), urgent, behind, assigned], 1);
    assert_eq!(scene.started(), [6]);
    scene.tasks.remove(&id(6));
    assert_eq!(scene.started(), [4]);
    scene.tasks.remove(&id(4));
    assert_eq!(scene.started(), [3], "more waits for it");
    scene.tasks.remove(&id(3));
    scene.tasks.remove(&id(5));
    assert_eq!(scene.started(), [1]);
}

#[test]
fn what_is_assigned_goes_to_nobody_else() {
    let assigned = TaskView {
        owner: Some("mate-2".into()),
        ..task(1)
    };
    let mut scene = Scene::new([assigned], 2);
    assert_eq!(scene.plan().start, [(id(1), 1)]);
    scene.seats[1].available = false;
    let plan = scene.plan();
    assert!(plan.start.is_empty());
    assert!(matches!(plan.stand, Stand::Waiting(_)));
    scene.seats.pop();
    let stuck = vec![(id(1), Why::Owned("mate-2".into()))];
    assert_eq!(scene.plan().stand, Stand::Stuck(stuck));
}

#[test]
fn nothing_blocked_parked_or_unreadable_below_is_begun() {
    let waits = TaskView {
        blocked_by: vec![id(1)],
        ..task(2)
    };
    let parked = TaskView {
        parked: true,
        ..task(3)
    };
    let broken_below = TaskView {
        blocked_by: vec![id(9)],
        ..task(4)
    };
    let mut scene = Scene::new([task(1), waits, parked, broken_below], 4);
    scene.unreadable.insert(id(9));
    assert_eq!(scene.started(), [1]);
    // A deleted task counts as done.
    scene.unreadable.clear();
    assert_eq!(scene.started(), [1, 4]);
}

#[test]
fn limits_hold_also_with_free_seats() {
    let mut scene = Scene::new((1..=9).map(task), 6);
    scene.limits.at_once = 3;
    assert_eq!(scene.started(), [1, 2, 3]);
    scene.seats[0].at = Some(id(1));
    scene.tasks.get_mut(&id(1)).unwrap().status = Status::InProgress;
    assert_eq!(scene.started(), [2, 3]);
    scene.closed = Some("out of quota");
    let plan = scene.plan();
    assert_eq!((plan.start.len(), plan.stand), (0, Stand::Working));
}

#[test]
fn canaries_go_first_and_a_dead_one_stops_the_rest() {
    let mut scene = Scene::new((1..=9).map(task), 9);
    scene.limits.canary = Some(2);
    assert_eq!(scene.started(), [1, 2]);
    scene.succeeded = 1;
    assert_eq!(scene.started(), [1]);
    scene.failed = 1;
    assert!(matches!(scene.plan().stand, Stand::GivenUp(_)));
    (scene.succeeded, scene.failed) = (2, 1);
    assert_eq!(scene.started().len(), 9);
}

#[test]
fn enough_failures_end_it() {
    let mut scene = Scene::new((1..=3).map(task), 1);
    scene.limits.max_failures = Some(2);
    scene.failed = 1;
    assert_eq!(scene.started(), [1]);
    scene.failed = 2;
    let stand = Stand::GivenUp("2 tasks failed".into());
    assert_eq!(scene.plan().stand, stand);
}

#[test]
fn two_that_may_change_the_same_file_do_not_run_together_and_nobody_overtakes_for_ever() {
    let on = |number, path: &str, priority| TaskView {
        paths: vec![path.into()],
        priority,
        ..task(number)
    };
    let mut scene = Scene::new(
        [
            on(1, "src/a", 0),
            on(2, "src", 9),
            on(3, "src/b", 0),
            on(4, "doc", 0),
        ],
        4,
    );
    assert_eq!(scene.started(), [2, 4]);
    scene.seats[0].at = Some(id(1));
    scene.tasks.get_mut(&id(1)).unwrap().status = Status::InProgress;
    assert_eq!(scene.started(), [4], "3 would keep 2 waiting");
    // A completed task that has still to land also keeps its files.
    scene.held = vec![vec!["doc/page".into()]];
    assert_eq!(scene.started(), [] as [u64; 0]);
    scene.limits.exclusive_paths = false;
    assert_eq!(scene.started(), [2, 3, 4]);
}

#[test]
fn a_task_without_a_command_waits_for_a_model() {
    let hard = TaskView {
        has_command: false,
        ..task(1)
    };
    let mut scene = Scene::new([hard], 2);
    assert_eq!(
        scene.plan().stand,
        Stand::Stuck(vec![(id(1), Why::NeedsModel)])
    );
    scene.seats[1].commands_only = false;
    assert_eq!(scene.plan().start, [(id(1), 1)]);
}

#[test]
fn it_is_over_when_everything_is_completed_and_stuck_when_something_is_left() {
    let mut scene = Scene::new([task(1)], 1);
    scene.tasks.get_mut(&id(1)).unwrap().status = Status::Completed;
    assert_eq!(scene.plan().stand, Stand::AllDone);
    let waits = TaskView {
        blocked_by: vec![id(3)],
        ..task(2)
    };
    let parked = TaskView {
        parked: true,
        ..task(3)
    };
    scene.tasks.insert(id(2), waits);
    scene.tasks.insert(id(3), parked);
    let stuck = vec![(id(2), Why::Blocked(vec![id(3)])), (id(3), Why::Parked)];
    assert_eq!(scene.plan().stand, Stand::Stuck(stuck));
}

#[test]
fn what_is_only_said_to_be_done_is_checked_before_others_build_on_it() {
    let said = TaskView {
        status: Status::Completed,
        reported: true,
        ..task(1)
    };
    let behind = TaskView {
        blocked_by: vec![id(1)],
        ..task(2)
    };
    let mut scene = Scene::new([said, behind], 2);
    let plan = scene.plan();
    assert_eq!((plan.start, plan.prove), (vec![], vec![id(1)]));
    assert_eq!(plan.stand, Stand::Working);
    scene.tasks.get_mut(&id(1)).unwrap().reported = false;
    assert_eq!(scene.started(), [2]);
}

/// Boards of up to 14 tasks that wait for earlier ones only.
fn boards() -> impl Strategy<Value = Vec<TaskView>> {
    let one = (
        proptest::collection::vec(any::<prop::sample::Index>(), 0..3),
        -2i64..3,
        proptest::option::of(0usize..4),
        proptest::bool::weighted(0.1),
    );
    proptest::collection::vec(one, 1..14).prop_map(|drafts| {
        let mut tasks = Vec::new();
        for (at, (blockers, priority, path, parked)) in drafts.into_iter().enumerate() {
            let blocked_by: BTreeSet<TaskId> = blockers
                .iter()
                .filter(|_| at > 0)
                .map(|index| id(index.index(at) as u64 + 1))
                .collect();
            tasks.push(TaskView {
                blocked_by: blocked_by.into_iter().collect(),
                priority,
                paths: path.map(|n| format!("dir{}", n / 2)).into_iter().collect(),
                parked,
                ..task(at as u64 + 1)
            });
        }
        tasks
    })
}

fn check_plan(scene: &Scene, plan: &Plan) -> Result<(), TestCaseError> {
    let busy = scene.seats.iter().filter(|seat| seat.at.is_some()).count();
    prop_assert!(busy + plan.start.len() <= scene.limits.at_once.max(busy));
    let seats: BTreeSet<usize> = plan.start.iter().map(|(_, seat)| *seat).collect();
    prop_assert_eq!(seats.len(), plan.start.len(), "a seat was given two tasks");
    let mut at_work: Vec<&TaskView> = scene
        .seats
        .iter()
        .filter_map(|seat| seat.at)
        .map(|id| &scene.tasks[&id])
        .collect();
    for (id, seat) in &plan.start {
        let task = &scene.tasks[id];
        prop_assert!(scene.waiting().can_start(task.id, task.status, task.parked));
        prop_assert!(scene.seats[*seat].available && scene.seats[*seat].at.is_none());
        for other in &at_work {
            prop_assert!(
                !overlap(&task.paths, &other.paths),
                "{task:?} beside {other:?}"
            );
        }
        at_work.push(task);
    }
    Ok(())
}

proptest! {
    /// Runs boards step by step with tasks that end in any order: no limit is exceeded, no blocked
    /// task starts, and in the end no task is left that could run.
    #[test]
    fn every_run_keeps_the_limits_and_finishes_what_can_be_finished(
        board in boards(),
        seats in 1usize..5,
        at_once in 1usize..5,
        ends in proptest::collection::vec(any::<prop::sample::Index>(), 64),
    ) {
        let mut scene = Scene::new(board, seats);
        scene.limits.at_once = at_once;
        let mut runs: BTreeMap<TaskId, usize> = BTreeMap::new();
        let mut ends = ends.iter().cycle();
        loop {
            let plan = scene.plan();
            check_plan(&scene, &plan)?;
            for (id, seat) in plan.start {
                *runs.entry(id).or_default() += 1;
                scene.seats[seat].at = Some(id);
                scene.tasks.get_mut(&id).unwrap().status = Status::InProgress;
            }
            let busy: Vec<usize> = (0..seats).filter(|at| scene.seats[*at].at.is_some()).collect();
            if busy.is_empty() {
                break;
            }
            let one = busy[ends.next().unwrap().index(busy.len())];
            let id = scene.seats[one].at.take().unwrap();
            scene.tasks.get_mut(&id).unwrap().status = Status::Completed;
        }
        for task in scene.tasks.values() {
            let possible = scene.waiting().can_start(task.id, Status::Pending, task.parked);
            prop_assert_eq!(task.status == Status::Completed, possible, "{:?}", task);
            prop_assert_eq!(runs.get(&task.id).copied().unwrap_or(0), usize::from(possible));
        }
    }
}

#[test]
fn what_rests_is_left_alone_and_waited_for() {
    let mut scene = Scene::new([task(1), task(2)], 2);
    scene.resting.insert(id(1));
    assert_eq!(scene.started(), [2]);
    scene.tasks.remove(&id(2));
    let plan = scene.plan();
    assert_eq!(plan.start, []);
    assert!(matches!(plan.stand, Stand::Waiting(_)), "{:?}", plan.stand);
}

/// Commands leave models free if there is a shell; a task of a type goes to the type's runtime.
#[test]
fn tasks_go_to_seats_that_can_do_them() {
    let mut scene = Scene::new([task(1), task(2), task(3)], 3);
    for (seat, runtime) in scene.seats.iter_mut().zip(["claude", "codex", "shell"]) {
        seat.runtime = Some(runtime.into());
        seat.commands_only = runtime == "shell";
    }
    scene.needs.insert("checker".into(), "codex".into());
    for (number, kind) in [(2, Some("checker")), (3, None)] {
        let view = scene.tasks.get_mut(&id(number)).unwrap();
        view.has_command = false;
        view.agent_type = kind.map(str::to_owned);
    }
    assert_eq!(scene.plan().start, [(id(1), 2), (id(2), 1), (id(3), 0)]);
    // If no slot has that runtime, any slot with a model can start the task.
    scene.needs.insert("checker".into(), "gemini".into());
    assert_eq!(scene.plan().start, [(id(1), 2), (id(2), 0), (id(3), 1)]);
}

#[test]
fn what_needs_a_label_waits_for_a_machine_that_has_it() {
    let mut scene = Scene::new([task(1), task(2)], 2);
    scene.tasks.get_mut(&id(1)).unwrap().needs = vec!["gpu".into(), "os=linux".into()];
    scene.labels = BTreeSet::from(["os=linux".to_owned()]);
    assert_eq!(scene.started(), [2]);
    scene.tasks.remove(&id(2));
    let stuck = vec![(id(1), Why::Needs(vec!["gpu".into()]))];
    assert_eq!(scene.plan().stand, Stand::Stuck(stuck.clone()));
    // A worker that has only a part of it is no help.
    scene.workers = vec![KnownWorker {
        name: "far".into(),
        labels: BTreeSet::from(["gpu".to_owned()]),
    }];
    assert_eq!(scene.plan().stand, Stand::Stuck(stuck));
    scene.workers[0].labels.insert("os=linux".into());
    assert_eq!(scene.plan().stand, Stand::Elsewhere);
    scene.labels.insert("gpu".into());
    assert_eq!(scene.started(), [1]);
}

#[test]
fn machines_that_choose_at_once_begin_with_different_tasks_of_one_rank() {
    let mut scene = Scene::new((1..=40).map(task), 4);
    scene.tasks.get_mut(&id(17)).unwrap().priority = 1;
    let mut first = Vec::new();
    for seed in 0..4 {
        scene.spread = Some(seed);
        let started = scene.started();
        assert_eq!(started[0], 17, "rank comes first");
        assert_eq!(started, scene.started(), "the same each time");
        first.push(started);
    }
    first.sort();
    first.dedup();
    assert_eq!(first.len(), 4);
}

#[test]
fn what_another_machine_has_is_waited_for_and_what_a_person_has_is_not() {
    let mut scene = Scene::new([task(1)], 1);
    let one = scene.tasks.get_mut(&id(1)).unwrap();
    (one.status, one.owner) = (Status::InProgress, Some("ann".into()));
    let stuck = Stand::Stuck(vec![(id(1), Why::Owned("ann".into()))]);
    assert_eq!(scene.plan().stand, stuck);
    scene.tasks.get_mut(&id(1)).unwrap().expires = true;
    assert_eq!(scene.plan().stand, Stand::Elsewhere);
}
