//! Tests with programs that are not part of this repository: agents on the scripted model, clients
//! of the MCP server, validators. Environment variables name the programs; `install.sh` and the
//! scripts in `tests/clients` and `tests/reports` set them. Without its program a test is ignored.

use libtest_mimic::{Arguments, Completion, Trial};

/// Agents that speak the Agent Client Protocol.
mod acp;
/// Claude Code.
mod claude;
/// Claude Code with others around it.
mod claude_loops;
/// Claude Code through the command line.
mod claude_runs;
/// Codex.
mod codex;
/// The contract of runtimes.
mod contract;
/// Claude Code as a coordinator: its tools are those of the column.
mod coordinator;
/// A plan that agent programs carry out.
mod fanout;
/// Mail for clients that their users run.
mod mail;
/// The MCP server and foreign clients.
mod mcp_clients;
/// Clients set up as docs/mcp.md says.
mod mcp_set_up;
/// Reports of `ccb fanout` beside the published schemas.
mod report_schemas;
/// Programs that are confined to their worktree.
mod sandbox;
/// Each program follows the scripted model.
mod scripts;
/// A team session of agent programs.
mod session;
/// The tools in the requests of the programs, and the limits of read-only ones.
mod tools;

/// The binary the tests run.
const CCB: &str = env!("CARGO_BIN_EXE_ccb-under-test");
/// An MCP server whose tools answer with their names.
const FAKE_MCP: &str = env!("CARGO_BIN_EXE_fake-mcp");
/// An agent that follows its script.
const FAKE_AGENT: &str = env!("CARGO_BIN_EXE_fake-agent");

fn main() {
    libtest_mimic::run(&Arguments::from_args(), trials()).exit();
}

/// A test of a program that `variable` names.
fn trial(name: &str, variable: &'static str, test: fn()) -> Trial {
    Trial::ignorable_test(name, move || {
        if harness::find_real_program(variable).is_none() {
            return Ok(Completion::ignored_with(format!(
                "{variable} names no program"
            )));
        }
        test();
        Ok(Completion::Completed)
    })
}

macro_rules! trials {
    ($($variable:literal { $($module:ident: $($name:ident),+;)+ })+) => {
        vec![$($($(
            trial(concat!(stringify!($module), "::", stringify!($name)), $variable, $module::$name)
        ),+),+),+]
    };
}

/// Every test, under the variable that names its program. One that is missing here is dead code,
/// which the compiler reports.
fn trials() -> Vec<Trial> {
    trials! {
        "CCB_TEST_OPENCODE" {
            acp: opencode_works, opencode_takes_in_a_message_while_busy, opencode_without_a_login,
                opencode_goes_on_and_copies, opencode_uses_the_model_it_is_told;
            contract: opencode;
            mail: a_message_reaches_the_model_of_opencode;
            mcp_set_up: opencode_as_the_document_says;
            scripts: opencode_follows_a_script;
            tools: the_tools_of_opencode, a_lead_and_a_coordinator_on_opencode,
                opencode_cannot_write_where_it_only_reads;
        }
        "CCB_TEST_GEMINI" {
            acp: gemini_works, gemini_is_not_cancelled_by_a_message, gemini_without_a_login,
                gemini_cannot_go_on;
            contract: gemini;
            mail: a_message_reaches_the_model_of_gemini;
            mcp_set_up: gemini_as_the_document_says;
            scripts: gemini_follows_a_script;
            tools: the_tools_of_gemini, a_lead_and_a_coordinator_on_gemini,
                gemini_cannot_write_where_it_only_reads;
        }
        "CCB_TEST_QWEN" {
            acp: qwen_works, qwen_is_not_cancelled_by_a_message, qwen_without_a_login,
                qwen_goes_on;
            tools: the_tools_of_qwen, a_lead_and_a_coordinator_on_qwen,
                qwen_cannot_write_where_it_only_reads;
        }
        "CCB_TEST_CLAUDE" {
            claude: a_turn_with_questions_and_answers,
                a_message_arrives_at_the_next_tool_boundary,
                a_message_to_an_idle_agent_is_its_next_turn, an_urgent_message_interrupts,
                an_interrupted_tool_dies_and_the_agent_lives,
                stopping_ends_it_in_the_middle_of_a_tool, a_session_goes_on_and_can_be_copied,
                a_session_that_is_not_there_says_so, our_tools_are_there_and_its_own_are_not,
                a_refused_login_fails_soon_and_says_what_to_do,
                a_provider_that_refuses_for_now_is_a_quota, limits_on_turns_and_money,
                a_repositorys_hooks_run_only_where_it_is_trusted,
                its_prompt_and_its_tools_are_as_ordered, a_killed_program_ends_without_a_turn;
            claude_loops: a_child_outlives_the_turn_that_started_it,
                a_lead_answers_its_agents_questions,
                a_question_that_nobody_can_answer_is_denied_at_once,
                a_teammate_agrees_to_end_and_does, servers_of_the_user_and_of_a_trusted_repository;
            claude_runs: a_whole_life_from_a_task_to_a_copy, whoever_is_killed_nothing_is_left,
                twelve_at_once_take_each_task_once, a_refusal_is_waited_for_and_the_work_goes_on,
                limits_end_it_by_whoever_sees_it_first, copies_share_every_byte_up_to_their_order;
            contract: claude;
            coordinator: the_tools_in_its_request_are_those_of_the_column,
                a_coordinator_hands_out_hears_follows_up_and_the_result_is_on_the_branch;
            fanout: twelve_defects_go_from_red_to_green_with_claude;
            mail: a_message_reaches_the_model_of_claude;
            mcp_set_up: claude_as_the_document_says;
            scripts: claude_follows_a_script, claude_tries_again,
                an_answer_that_hangs_is_left_when_claude_is_killed;
            sandbox: a_confined_claude_stays_in_its_worktree,
                a_confined_claude_works_with_its_usual_configuration,
                a_confined_claude_uses_our_tools;
            session: a_lead_and_its_mates_take_a_board_to_green;
            tools: the_tools_of_claude, a_lead_and_a_coordinator_on_claude,
                claude_cannot_write_where_it_only_reads;
        }
        "CCB_TEST_CODEX" {
            codex: a_turn_with_questions_and_answers, a_message_arrives_at_the_next_tool_boundary,
                it_is_interrupted_by_order_and_by_an_urgent_message,
                stopping_ends_it_in_the_middle_of_a_tool, finishing_lets_the_turn_end,
                a_session_goes_on_and_can_be_copied,
                our_tools_are_there_and_its_own_agents_are_not,
                what_the_provider_refuses_is_told_apart;
            contract: codex;
            mail: a_message_reaches_the_model_of_codex;
            mcp_set_up: codex_as_the_document_says;
            sandbox: a_confined_codex_stays_in_its_worktree;
            scripts: codex_follows_a_script;
            tools: the_tools_of_codex, a_lead_and_a_coordinator_on_codex,
                codex_cannot_write_where_it_only_reads;
        }
        "CCB_TEST_MCP_INSPECTOR" {
            mcp_clients: the_inspector_calls_every_tool;
        }
        "CCB_TEST_MCP_PYTHON" {
            mcp_clients: pythons_client_calls_every_tool;
        }
        "CCB_TEST_REPORT_PYTHON" {
            report_schemas: reports_are_what_the_published_schemas_say;
        }
    }
}
