//! Tests that run real `ccb` processes. One module per promise.

/// Agents: the types there are, and what is wrong with the others.
mod agent_types;
/// Attacks from an agent's own `.git`, in whole runs.
mod attacked_runs;
/// Bad input: a clear error and nothing changed.
mod bad_input;
/// Bad settings, a bad home, a held lock: the same.
mod bad_luck;
/// Definitions are boundaries, and work outside of the result is found.
mod boundaries;
/// What a check says is true of the commit, whatever an agent hides from git.
mod check_commit;
/// Checks of merges and sessions: what a kill leaves, what a failure says.
mod check_tree;
/// Claims won and refused, `next`, leases.
mod claims;
/// What ccb leaves behind, and taking it away; starts that are refused.
mod clean;
/// The answers and exit codes of the commands.
mod commands;
/// Boards of earlier and later formats.
mod compat;
/// Completing tasks, with and without their checks.
mod completion;
/// Many processes at once: every task claimed once, every id given once.
mod concurrency;
/// What every runtime must do, for those that need no model.
mod contract;
/// The same for our own loop, on a scripted model.
mod contract_native;
/// Sessions that a coordinator leads: its tools, its workers, what lands.
mod coordinator;
/// The worked example: it ends green.
mod coordinator_example;
/// What a coordinator is held to, and workers that go wrong.
mod coordinator_rules;
/// A crash at every write point of every operation.
mod crash;
/// Many tasks at once, all or none.
mod create_from;
/// What a definition asks for: servers, skills, a configuration of its own.
mod definition_keys;
/// Deaths of the engine cost a task nothing.
mod engine_deaths;
/// The agent that does what its script says: every step it knows.
mod fake_agent;
/// `ccb fanout`: plans, their previews, and what bad ones are told.
mod fanout;
/// `ccb fanout`: the examples of the documentation, and the demo.
mod fanout_docs;
/// `ccb fanout`: tasks that fail, what is kept of them and what people read about them.
mod fanout_failures;
/// `ccb fanout`: tasks from what tools found, inside the repository.
mod fanout_findings;
/// `ccb fanout`: killed over and over, the same end.
mod fanout_kill;
/// `ccb fanout`: runs, landings, outcomes, limits.
mod fanout_run;
/// `ccb fanout`: what CI has to be able to trust.
mod fanout_trust;
/// The corpora of the fuzz targets, replayed.
mod fuzz_corpus;
/// Where prompts go: through the gateway that the user names.
mod gateway;
/// What git runs for ccb is what `ccb trust --show` says.
mod git_code;
/// The dependency graph in all its forms, and the stream of changes.
mod graph_watch;
/// Guards and hosts that see to one run after another.
mod guards_stay;
/// Hooks on agents: their start, their end, their idleness.
mod hooks_agents;
/// Hooks: what the documentation says works.
mod hooks_docs;
/// Hooks on tasks: created, completed, and not.
mod hooks_tasks;
/// Hooks that make and remove working trees.
mod hooks_trees;
/// Another tool on the same list: its locks, its crashes, and ours.
mod interop;
/// Edges and ids as another tool writes them.
mod interop_edges;
/// What another tool writes, and what it can read of ours.
mod interop_files;
/// What a live view knows and does: the same as the commands, from files alone.
mod live;
/// A team that goes while somebody watches it.
mod live_gone;
/// Looking at work, landing it, sending it back, undoing it.
mod look_and_decide;
/// Single native agents: what they are offered, and their parents.
mod native_agents;
/// What an agent that wants out of its worktree tries.
mod native_escape;
/// Forks of native agents: what they may not do, who is asked, and what they save.
mod native_fork_rules;
/// Forks of native agents: what they share with their parent.
mod native_forks;
/// Our own loop over HTTPS: certificates, proxies.
mod native_https;
/// Who can come by the key of a model.
mod native_keys;
/// What our own loop does with a model's answers: calls, limits, a full context, kills.
mod native_loop;
/// What a native agent may do without asking.
mod native_modes;
/// Commands without a network.
mod native_network;
/// MCP servers of native agents.
mod native_servers;
/// Teams whose agents are ccb itself, with a key and no other program.
mod native_team;
/// Our own loop and its model: every form of requests, every refusal, every broken answer.
mod native_wire;
/// Nothing stays behind: trees of lost attempts, and what was left half made.
mod nothing_left;
/// Text of others cannot look like lines of ours.
mod output_lines;
/// Agents that agents start.
mod own_agents;
/// Whoever works on a task does not decide when it is done.
mod own_check;
/// Results that a person sends back while a session runs.
mod sent_back;
/// Home, list, identity, output: what a command finds around it.
mod status;
mod surroundings;
/// Tasks: what other tools and hands write into their files.
mod task_files;
/// Teams: bad names, damaged rosters, other repositories, held locks.
mod team_bad_luck;
/// Teams: the answers and exit codes of the commands.
mod team_commands;
/// Teams: many processes at once, nobody lost.
mod team_concurrency;
/// Teams: a crash, and a write error, at every write point of every operation.
mod team_crash;
/// Teams: who is alive, and the end of a team.
mod team_delete;
/// OpenTelemetry: what a collector gets, and that a bad one costs nothing.
mod telemetry;
/// What a person at a terminal sees, and can type.
mod terminal;
mod terminal_session;
/// The live view in a real terminal: a team by keys alone, and the terminal given back.
mod top;
/// `ccb worktree …`: the answers, the exit codes, tasks bound to trees.
mod tree_commands;
/// A crash at every step of making, removing and bringing back a tree.
mod tree_crash;
/// A tree's commits on another branch: landed, refused, checked.
mod tree_merge;
/// Trees that are made before anybody asks.
mod tree_pool;
/// A session enters a tree and leaves it.
mod tree_session;
/// Signals end what ccb has started, too.
mod tree_signals;
/// Many processes make, use and remove trees at once, and are killed.
mod tree_torture;
/// What a repository wants to run, and the user's word on it.
mod trust;
mod tutorial;
/// No check is dropped, and unchecked work says so everywhere.
mod unchecked;
/// What each program is told about its tools.
mod web;
/// The same under load and in bad luck.
mod web_bad_luck;
/// Who comes in, and that no agent does.
mod web_entrance;
/// The same over HTTPS.
mod web_tls;
mod withheld;
/// A write error at every write point of every operation.
mod write_errors;

/// What concurrent processes were answered has a sequential explanation, also with kills.
mod history;
/// An agent is who the engine says.
mod identity;
/// The index may be lost, old or wrong; the files decide.
mod index;
/// Thousands of SIGKILLs: what was acknowledged stays.
mod kills;
/// The checker of histories accepts what is right and rejects what is wrong.
mod linearize;
/// Tasks given to a process by another one that dies at it.
mod served;

/// The scripted model provider: scripts, and every kind of trouble.
mod model;
/// The scripted model provider: what its cache holds.
mod model_cache;
/// The scripted model provider: what differs from protocol to protocol.
mod model_wires;

/// Bad input and bad luck with mail: a clear error and nothing changed.
mod mail_bad_input;
/// The answers and exit codes of `ccb mail`.
mod mail_commands;
/// Inboxes of earlier and later formats.
mod mail_compat;
/// A crash at every write point of everything mail does.
mod mail_crash;
/// Who may read the files of mail, and what a crash between two writes leaves in them.
mod mail_files;
/// Many senders, a reader that is killed over and over.
mod mail_kills;
/// A write error at every write point of everything mail does.
mod mail_write_errors;

/// Agents that share one process: they go on when it is killed, and none takes others along.
mod mates;
/// Who hands runs to the process that mates share.
mod mates_guard;
mod mates_sleep;
/// The MCP server: agents that run commands.
mod mcp_agents;
/// The MCP server: bad input, and who calls.
mod mcp_bad_input;
/// The MCP server: crashes, vanished clients, held locks, many at once.
mod mcp_bad_luck;
/// The MCP server: what the documentation says works.
mod mcp_docs;
/// The MCP server: mail comes along, once.
mod mcp_mail;
/// The MCP server: every tool of every role, compared with the commands.
mod mcp_tools;
/// The MCP server: worktrees by those who lead.
mod mcp_worktrees;

/// Files of ours that are damaged: rebuilt, or named and repaired.
mod damage;
/// Everything ccb keeps, to be damaged.
mod damage_scene;
/// README.md and the guides: what they say to type.
mod documents;
/// What git wrote is on the disk before anybody is told.
mod durable;
/// Agents that speak the Agent Client Protocol, from start to end.
mod reports;
mod run_acp;
/// Agents: bad input and bad luck, each with a stated outcome.
mod run_bad_luck;
/// Agents: a crash at every write point of a run's whole life.
mod run_crash;
/// Agents: whatever is killed, nothing is left and somebody is told once.
mod run_kills;
/// Agents: what they may use, alone and together, and a provider that refuses.
mod run_limits;
/// What hides from everything is found by its mark.
mod run_marks;
/// Agents: messages, results, questions.
mod run_messages;
/// Agents: what they may do, changed while they run.
mod run_modes;
/// Agents: hundreds, treated at random.
mod run_torture;
/// Secrets of the starter: nowhere.
mod secrets;
/// Team sessions: worked off, proved, landed, resumed.
mod session;
/// Team sessions: colours, and worktrees nobody needs.
mod session_care;
/// Team sessions: every part killed at random.
mod session_chaos;
/// Team sessions whose lead is an agent.
mod session_lead;
/// Completions and `ccb cd`, as shells ask for them.
mod shells;
/// What people type wrong, and what they are told.
mod wrong_usage;

/// A confined command answers nobody's question.
mod confined_answers;
/// What root may do beyond files, taken from confined programs.
mod confined_root;

/// The binary the tests run.
pub const CCB: &str = env!("CARGO_BIN_EXE_ccb-under-test");
/// Runs a program as the leader of a terminal's session.
pub const ON_TERMINAL: &str = env!("CARGO_BIN_EXE_on-terminal");
/// An agent that speaks the Agent Client Protocol.
pub const FAKE_ACP: &str = env!("CARGO_BIN_EXE_fake-acp");
/// The other tool that shares its files.
pub const FOREIGN_TOOL: &str = env!("CARGO_BIN_EXE_foreign-tool");
/// A process that calls the board at random and writes down the answers.
pub const BOARD_WORKER: &str = env!("CARGO_BIN_EXE_board-worker");
/// A process that claims one task after the other.
pub const CLAIMER: &str = env!("CARGO_BIN_EXE_claimer");
/// A process that uses the mailbox as a host does.
pub const MAIL_WORKER: &str = env!("CARGO_BIN_EXE_mail-worker");
/// An MCP server whose tools say their names.
pub const FAKE_MCP: &str = env!("CARGO_BIN_EXE_fake-mcp");
/// An agent that does what its script says.
pub const FAKE_AGENT: &str = env!("CARGO_BIN_EXE_fake-agent");
/// Somebody at the other end of a connection.
pub const PEER_PROBE: &str = env!("CARGO_BIN_EXE_peer-probe");
