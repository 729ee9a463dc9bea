//! Tests that run real `ccb` processes. One module per promise.

/// Agents: their types, and the broken ones.
mod agent_types;
/// Attacks from an agent's own `.git`, in whole runs.
mod attacked_runs;
/// Bad input: a clear error and nothing changed.
mod bad_input;
/// Bad settings, a bad home, a held lock: the same.
mod bad_luck;
/// Definitions are boundaries, and work outside of the result is found.
mod boundaries;
/// A passed check holds for the commit, whatever an agent hides from git.
mod check_commit;
/// Checks of merges and sessions: the leftovers of a kill, the words of a failure.
mod check_tree;
/// Claims won and refused, `next`, leases.
mod claims;
/// The leftovers of ccb, and removing them; refused starts.
mod clean;
/// The answers and exit codes of the commands.
mod commands;
/// Boards of earlier and later formats.
mod compat;
/// Completing tasks, with and without their checks.
mod completion;
/// Many processes at once: every task claimed once, every id given once.
mod concurrency;
/// The duties of every runtime, for those that need no model.
mod contract;
/// The same for our own loop, on a scripted model.
mod contract_native;
/// Sessions that a coordinator leads: its tools, its workers, its landings.
mod coordinator;
/// The worked example: it ends green.
mod coordinator_example;
/// The rules for a coordinator, and workers that go wrong.
mod coordinator_rules;
/// A crash at every write point of every operation.
mod crash;
/// Many tasks at once, all or none.
mod create_from;
/// The requests of a definition: servers, skills, a configuration of its own.
mod definition_keys;
/// Deaths of the engine cost a task nothing.
mod engine_deaths;
/// The agent that follows a script: every step it knows.
mod fake_agent;
/// `ccb fanout`: plans, their previews, and the errors of bad ones.
mod fanout;
/// `ccb fanout`: the examples of the documentation, and the demo.
mod fanout_docs;
/// `ccb fanout`: failed tasks, their kept files and the messages about them.
mod fanout_failures;
/// `ccb fanout`: tasks from findings of tools, inside the repository.
mod fanout_findings;
/// `ccb fanout`: killed over and over, the same end.
mod fanout_kill;
/// `ccb fanout`: runs, landings, outcomes, limits.
mod fanout_run;
/// `ccb fanout`: the guarantees for CI.
mod fanout_trust;
/// The corpora of the fuzz targets, replayed.
mod fuzz_corpus;
/// The destination of prompts: the gateway that the user names.
mod gateway;
/// `ccb trust --show` lists the programs that git runs for ccb.
mod git_code;
/// The dependency graph in all its forms, and the stream of changes.
mod graph_watch;
/// Guards and hosts that supervise one run after another.
mod guards_stay;
/// Hooks on agents: their start, their end, their idleness.
mod hooks_agents;
/// Hooks: the documentation works.
mod hooks_docs;
/// Hooks on tasks: created, completed, and not.
mod hooks_tasks;
/// Hooks that make and remove worktrees.
mod hooks_trees;
/// Another tool on the same list: its locks, its crashes, and ours.
mod interop;
/// Edges and ids as another tool writes them.
mod interop_edges;
/// Files of another tool, and its view of ccb's.
mod interop_files;
/// The knowledge and the actions of a live view: the same as the commands, from files alone.
mod live;
/// A team that is deleted while a person watches it.
mod live_gone;
/// Looking at work, landing it, sending it back, undoing it.
mod look_and_decide;
/// Single native agents: their tools, and their parents.
mod native_agents;
/// Attempts of an agent to leave its worktree.
mod native_escape;
/// Forks of native agents: their limits, the questions, and the savings.
mod native_fork_rules;
/// Forks of native agents: the shared part of their parent.
mod native_forks;
/// Our own loop over HTTPS: certificates, proxies.
mod native_https;
/// Access to the key of a model.
mod native_keys;
/// ccb's own loop and a model's answers: calls, limits, a full context, kills.
mod native_loop;
/// The permissions of a native agent without a question.
mod native_modes;
/// Commands without a network.
mod native_network;
/// MCP servers of native agents.
mod native_servers;
/// Teams whose agents are ccb itself, with a key and no other program.
mod native_team;
/// Our own loop and its model: every form of requests, every refusal, every broken answer.
mod native_wire;
/// Nothing is left behind: worktrees of lost attempts, and half-made ones.
mod nothing_left;
/// Foreign text cannot look like lines of ccb's.
mod output_lines;
/// Agents that agents start.
mod own_agents;
/// An agent that works on a task does not decide when it is done.
mod own_check;
/// Results that a person sends back while a session runs.
mod sent_back;
/// Home, list, identity, output: the surroundings of a command.
mod status;
mod surroundings;
/// Tasks: contents of their files by other tools and by hand.
mod task_files;
/// Teams: bad names, damaged rosters, other repositories, held locks.
mod team_bad_luck;
/// Teams: the answers and exit codes of the commands.
mod team_commands;
/// Teams: many processes at once, no member lost.
mod team_concurrency;
/// Teams: a crash, and a write error, at every write point of every operation.
mod team_crash;
/// Teams: the living members, and the end of a team.
mod team_delete;
/// OpenTelemetry: the requests to a collector, and that a bad one costs nothing.
mod telemetry;
/// The screen and the keys of a person at a terminal.
mod terminal;
mod terminal_session;
/// The live view in a real terminal: a team by keys alone, and the terminal given back.
mod top;
/// `ccb worktree …`: the answers, the exit codes, tasks bound to worktrees.
mod tree_commands;
/// A crash at every step of making, removing and restoring a worktree.
mod tree_crash;
/// A worktree's commits on another branch: landed, refused, checked.
mod tree_merge;
/// Worktrees that are made in advance.
mod tree_pool;
/// A session enters a worktree and leaves it.
mod tree_session;
/// Signals end the programs that ccb has started, too.
mod tree_signals;
/// Many processes make, use and remove worktrees at once, and are killed.
mod tree_torture;
/// The programs that a repository wants to run, and the user's consent.
mod trust;
mod tutorial;
/// No check is dropped, and unchecked work says so everywhere.
mod unchecked;
/// The description of its tools that each program gets.
mod web;
/// The same under load and in bad luck.
mod web_bad_luck;
/// The entrance of the page, closed to agents.
mod web_entrance;
/// The same over HTTPS.
mod web_tls;
mod withheld;
/// A write error at every write point of every operation.
mod write_errors;

/// The answers of concurrent processes have a sequential explanation, also with kills.
mod history;
/// The engine decides who an agent is.
mod identity;
/// The index may be lost, old or wrong; the files decide.
mod index;
/// Thousands of SIGKILLs: acknowledged changes hold.
mod kills;
/// The checker of histories accepts right ones and rejects wrong ones.
mod linearize;
/// Tasks given to a process by another one that dies meanwhile.
mod served;

/// The scripted model provider: scripts, and every kind of trouble.
mod model;
/// The scripted model provider: the content of its cache.
mod model_cache;
/// The scripted model provider: the differences between protocols.
mod model_wires;

/// Bad input and bad luck with mail: a clear error and nothing changed.
mod mail_bad_input;
/// The answers and exit codes of `ccb mail`.
mod mail_commands;
/// Inboxes of earlier and later formats.
mod mail_compat;
/// A crash at every write point of every mail operation.
mod mail_crash;
/// The rights on the files of mail, and the effects of a crash between two writes.
mod mail_files;
/// Many senders, a reader that is killed over and over.
mod mail_kills;
/// A write error at every write point of every mail operation.
mod mail_write_errors;

/// Agents that share one process: they continue when it is killed, and one that fails harms no
/// other.
mod mates;
/// The senders of runs to the process that teammates share.
mod mates_guard;
mod mates_sleep;
/// The MCP server: agents that run commands.
mod mcp_agents;
/// The MCP server: bad input, and the callers.
mod mcp_bad_input;
/// The MCP server: crashes, vanished clients, held locks, many at once.
mod mcp_bad_luck;
/// The MCP server: the documentation works.
mod mcp_docs;
/// The MCP server: mail is delivered with results, once.
mod mcp_mail;
/// The MCP server: every tool of every role, compared with the commands.
mod mcp_tools;
/// The MCP server: worktrees by leads.
mod mcp_worktrees;

/// Damaged files of ccb's: rebuilt, or named and repaired.
mod damage;
/// Every kind of file ccb keeps, to be damaged.
mod damage_scene;
/// README.md and the guides: their commands.
mod documents;
/// git's writes are on the disk before ccb reports them.
mod durable;
/// Agents that speak the Agent Client Protocol, from start to end.
mod reports;
mod run_acp;
/// Agents: bad input and bad luck, each with a stated outcome.
mod run_bad_luck;
/// Agents: a crash at every write point of a run's whole life.
mod run_crash;
/// Agents: after any kill nothing is left and the lead is notified once.
mod run_kills;
/// Agents: their limits, alone and together, and a provider that refuses.
mod run_limits;
/// Processes that hide are found by their marker.
mod run_marks;
/// Agents: messages, results, questions.
mod run_messages;
/// Agents: their permissions, changed while they run.
mod run_modes;
/// Agents: hundreds, treated at random.
mod run_torture;
/// Secrets of the starter: nowhere.
mod secrets;
/// Team sessions: worked through, proved, landed, resumed.
mod session;
/// Team sessions: colours, and worktrees that are not needed any more.
mod session_care;
/// Team sessions: every part killed at random.
mod session_chaos;
/// Team sessions whose lead is an agent.
mod session_lead;
/// Completions and `ccb cd`, as shells ask for them.
mod shells;
/// Typing mistakes of people, and the errors.
mod wrong_usage;

/// A confined command answers no question of another agent.
mod confined_answers;
/// Root's powers beyond files, taken from confined programs.
mod confined_root;

/// The binary the tests run.
pub const CCB: &str = env!("CARGO_BIN_EXE_ccb-under-test");
/// Runs a program as the leader of a terminal's session.
pub const ON_TERMINAL: &str = env!("CARGO_BIN_EXE_on-terminal");
/// An agent that speaks the Agent Client Protocol.
pub const FAKE_ACP: &str = env!("CARGO_BIN_EXE_fake-acp");
/// The other tool that shares its files.
pub const FOREIGN_TOOL: &str = env!("CARGO_BIN_EXE_foreign-tool");
/// A process that calls the board at random and prints the answers.
pub const BOARD_WORKER: &str = env!("CARGO_BIN_EXE_board-worker");
/// A process that claims one task after the other.
pub const CLAIMER: &str = env!("CARGO_BIN_EXE_claimer");
/// A process that uses the mailbox as a host does.
pub const MAIL_WORKER: &str = env!("CARGO_BIN_EXE_mail-worker");
/// An MCP server whose tools answer with their names.
pub const FAKE_MCP: &str = env!("CARGO_BIN_EXE_fake-mcp");
/// An agent that follows its script.
pub const FAKE_AGENT: &str = env!("CARGO_BIN_EXE_fake-agent");
/// The other end of a connection.
pub const PEER_PROBE: &str = env!("CARGO_BIN_EXE_peer-probe");
