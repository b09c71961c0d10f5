# ruff: noqa: E501
"""What of the lists is no case here: what another test holds, and what does not concern us, with the reason."""

LISTED = {
    "A": 27, "B": 32, "C-": 11, "D": 10, "E-": 22, "F": 3,
    "U": 21, "C": 25, "CS": 6, "X": 35, "E": 6, "P": 17, "O": 5, "T": 19, "K": 12, "V": 10, "S": 8, "L": 5,
}  # fmt: skip
"""How many of each letter there are: miscounts of other tools (the first line), and rules. There is no X19."""
IDS = [f"{letter}{n}" for letter, count in LISTED.items() for n in range(1, count + 1) if f"{letter}{n}" != "X19"]

FOREIGN, WORK, TIMING = "tests/report/test_foreign.py", "tests/report/test_work.py", "tests/test_timing.py"
CODEX, PI, CLAUDE = "tests/recorders/test_codex.py", "tests/recorders/test_pi.py", "tests/recorders/test_claude_code.py"
SPENDING, PRICES, ORDERS = "tests/report/test_spending.py", "tests/test_prices.py", "tests/counting/test_orders.py"
LINKS, TREE, INTERVAL = "tests/lineage/test_links.py", "tests/lineage/test_tree.py", "tests/test_interval.py"
CAPTURE, ARCHIVE, PRINTED = "tests/test_capture.py", "tests/test_archive.py", "tests/recorders/test_printed.py"

ELSEWHERE: dict[str, tuple[str, str]] = {
    "A11": (FOREIGN, "test_the_campaign_cost_170_hours_and_not_the_sum_of_its_sessions"),
    "A12": (FOREIGN, "test_the_shared_row_says_how_many_share"),
    "A13": (FOREIGN, "test_a_receipt_that_is_declared_and_not_here_is_no_measurement"),
    "A14": (FOREIGN, "test_intervals_that_may_overlap_are_marked_and_not_added"),
    "A15": (FOREIGN, "test_an_interval_of_the_same_root_is_inside_for_certain"),
    "A16": (FOREIGN, "test_the_share_of_an_interval_that_was_timed_is_told"),
    "A18": ("tests/test_oneoff.py", "test_what_only_looks_like_one_off_code_is_not"),
    "A19": ("tests/report/test_sheet.py", "test_hours_are_rounded_once_and_unknown_stays_unknown"),
    "B24": (SPENDING, "test_a_model_without_a_price_stands_beside_those_that_have_one"),
    "C-8": (PRICES, "test_each_kind_of_token_has_its_own_rate"),
    "D8": (PRICES, "test_each_kind_of_token_has_its_own_rate"),
    "E-10": (PI, "test_a_price_of_nothing_is_no_price"),
    "E-11": (ORDERS, "test_importing_again_adds_nothing"),
    "E-14": (PRICES, "test_each_kind_of_token_has_its_own_rate"),
    "U1": (ORDERS, "test_any_order_of_arrival_gives_the_same_answers"),
    "U13": (CLAUDE, "test_lines_that_a_resume_writes_again_are_recorded_once"),
    "U20": ("tests/test_convert.py", "test_a_file_of_nobody_is_said_to_be_so"),
    "C15": (CLAUDE, "test_lines_that_a_resume_writes_again_are_recorded_once"),
    "C23": (CLAUDE, "test_every_line_of_a_capture_is_accounted_for_and_expected"),
    "C24": ("tests/test_public_reports.py", "test_f1_a_transcript_the_harness_deleted_stays_recorded_and_counted"),
    "X4": (CODEX, "test_what_a_version_does_not_write_is_said"),
    "X14": (CODEX, "test_input_leaves_cached_tokens_out"),
    "X20": (CODEX, "test_an_inherited_history_is_a_copy_and_its_turn_is_not_the_childs"),
    "X22": (CODEX, "test_a_fork_refers_to_its_base_and_an_archived_one_too"),
    "X26": (CODEX, "test_a_fork_that_copies_owns_its_last_turn"),
    "X33": (CODEX, "test_what_a_version_does_not_write_is_said"),
    "P4": (PI, "test_a_session_that_was_exported_and_imported_is_one_session"),
    "P6": (PI, "test_usage_nested_in_a_result_does_not_count_and_is_said"),
    "P7": (PI, "test_an_old_file_that_a_later_version_rewrote_is_recorded_once"),
    "P9": (PI, "test_a_price_of_nothing_is_no_price"),
    "O1": ("tests/recorders/test_opencode.py", "test_reasoning_is_added_only_where_it_stands_beside_the_output"),
    "O2": ("tests/recorders/test_gemini.py", "test_a_rewind_is_kept_and_undoes_no_request"),
    "T1": (TIMING, "test_windows_of_one_session_that_overlap_are_its_time_once"),
    "T2": (TIMING, "test_agents_side_by_side_add_and_the_union_does_not"),
    "T3": (TIMING, "test_agents_side_by_side_add_and_the_union_does_not"),
    "T4": (TIMING, "test_agents_side_by_side_add_and_the_union_does_not"),
    "T5": (TIMING, "test_the_envelope_has_the_pauses_in_it"),
    "T6": (TIMING, "test_the_wall_is_the_interval_whatever_was_done_in_it"),
    "T7": (TIMING, "test_union_is_never_more_than_agent_time_envelope_or_wall"),
    "T8": (INTERVAL, "test_receipts_that_meet_chain_and_their_deltas_add_up"),
    "T9": (TIMING, "test_a_turn_is_clipped_where_a_later_record_shows_that_it_went_on"),
    "T11": (INTERVAL, "test_a_receipt_is_the_same_whenever_it_is_made"),
    "T12": (INTERVAL, "test_a_turn_that_is_open_at_the_end_makes_a_lower_bound"),
    "T13": (TIMING, "test_each_instant_in_tools_belongs_to_one_kind_by_priority"),
    "T14": (TIMING, "test_model_time_has_bounds_only"),
    "T16": (TIMING, "test_a_silent_window_has_its_instrumented_share_beside_it"),
    "T17": (TIMING, "test_what_ends_before_it_starts_is_unavailable"),
    "T19": (TIMING, "test_any_fraction_of_a_second_is_read"),
    "K1": (FOREIGN, "test_the_campaign_cost_170_hours_and_not_the_sum_of_its_sessions"),
    "K2": (WORK, "test_what_two_claim_is_in_the_row_of_those_who_share_it"),
    "K3": (WORK, "test_nothing_is_claimed_because_it_happened_at_the_same_time"),
    "K4": (FOREIGN, "test_own_rows_and_the_shared_row_are_what_is_claimed"),
    "K5": (WORK, "test_intervals_that_overlap_are_marked_and_counted_once_together"),
    "K6": (FOREIGN, "test_neighbouring_intervals_of_one_root_follow_each_other"),
    "K7": (FOREIGN, "test_a_superseded_version_never_counts_whatever_the_order"),
    "K8": (WORK, "test_coverage_says_what_is_unmeasured_and_why"),
    "K9": (WORK, "test_figures_that_are_known_to_be_too_low_say_so"),
    "K10": (ARCHIVE, "test_a_session_that_went_on_otherwise_is_kept_and_what_both_have_counts_once"),
    "K11": (WORK, "test_an_interval_is_clipped_and_its_end_is_not_in_it"),
    "K12": (FOREIGN, "test_the_shared_row_says_how_many_share"),
    "V2": (LINKS, "test_an_inherited_variable_is_an_edge_where_a_call_of_the_outer_session_contains_the_start"),
    "V3": (LINKS, "test_an_inherited_variable_without_an_open_call_is_possible"),
    "V4": (TREE, "test_the_nearest_ancestor_wins"),
    "V5": ("tests/test_witness.py", "test_the_call_that_the_environment_names_is_the_call"),
    "V6": (ORDERS, "test_any_order_of_arrival_gives_the_same_answers"),
    "V9": (PRINTED, "test_claude_that_runs_codex_is_linked_as_its_capture_shows"),
    "S3": (CAPTURE, "test_a_replaced_source_is_a_gap_also_after_a_restart"),
    "S4": ("tests/test_tail.py", "test_a_file_that_moved_to_the_archive_goes_on_as_the_same_session"),
    "S6": (CAPTURE, "test_a_line_longer_than_may_be_read_is_a_loss_and_the_next_is_recorded"),
    "L1": (SPENDING, "test_what_a_harness_wrote_down_is_kept_apart_and_not_estimated_again"),
    "L2": (SPENDING, "test_without_a_price_list_everything_is_unpriced_and_nothing_is_0"),
    "L3": (SPENDING, "test_the_list_estimate_is_exact_to_the_last_digit"),
    "L4": (CODEX, "test_equal_limits_are_stated_once"),
    "L5": (CODEX, "test_equal_limits_are_stated_once"),
}
"""Ids by the file and name of the test that holds them."""

SAME: dict[str, str] = {
    "B30": "X23", "D10": "B14",   "U2": "D6", "U3": "C-3", "U6": "E-5", "U14": "B5", "U15": "U16", "U18": "B6",
    "C1": "A1", "C2": "F1", "C3": "B8", "C4": "C-3", "C5": "B2", "C6": "C-5", "C8": "B4", "C10": "A24", "C14": "C-6", "C16": "C-1",
    "C18": "B21", "C19": "E-16", "C20": "D9", "C21": "A25", "X1": "A4", "X7": "A2", "X8": "A2", "X9": "A3", "X10": "B11", "X11": "B10",
    "X12": "B9", "X24": "A7", "X25": "E-18", "X28": "A6", "E6": "E-18", "P1": "B19", "P8": "B20", "P11": "U10", "P12": "U10", "P16": "B19",
    "S1": "C-10", "S2": "B1", "S5": "X32", "S8": "E-7",
}  # fmt: skip
"""Ids by the case that decides them too."""

PRINT = (
    "what a program printed, saved by somebody, is no file it keeps: asrd records the run from the program's own file"
)
NOT_OURS: dict[str, str] = {
    "A26": "another tool's receipt is shown as it says; which event its nameless response was cannot be proven from it",
    "A27": "no estimate that an agent makes of its own time is read anywhere",
    "B18": PRINT,
    "B32": "another tool's benchmark; ours (bench/gen_corpus.py) has split blocks, resets and totals that differ from the last",
    "E-9": "no memory of processes is recorded",
    "E-22": "nothing is matched by its place in a list: responses and calls are joined by native ids or by the order of one file",
    "F3": "nothing is taken out of a stream; what leaves the store goes through asrd/redact.py",
    "C25": "a harness that writes late is recorded late: figures say what is in the files, with when each session's last record was made",
    "CS1": PRINT, "CS2": PRINT, "CS3": PRINT, "CS4": PRINT, "CS5": PRINT, "CS6": PRINT,
    "X18": "the totals in Codex's own database are not read",
    "E1": PRINT, "E2": PRINT, "E3": PRINT, "E4": PRINT, "E5": PRINT,
    "P10": PRINT,
    "P14": "a session without a file leaves nothing to record",
    "P17": "no length of a response is inferred from two times: it is unknown where the program does not say it",
    "O3": "captures of another tool",
    "O4": "what is in no file is in no stream; a run over ACP is recorded by `asrd acp`",
    "O5": "the model is the one that the session file states; command lines are not read for it",
    "V1": "asrd has no notion of the session that asks: a session is named, or `last` or `.` is asked for",
    "V7": "no hooks are installed; files are read",
    "V8": "asrd has no notion of the session that asks: a session is named, or `last` or `.` is asked for",
    "V10": "a matter of when a program writes its file",
}  # fmt: skip
"""Ids that do not concern asrd, with the reason."""
