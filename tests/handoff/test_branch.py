"""What a person went back from is left out, and nothing else."""

from asrd.handoff import (
    live,
)
from asrd.records import (
    Message,
    Native,
    Text,
    ToolResult,
)
from tests.handoff.build import SHA, Story, markdown, section


def test_a_branch_that_was_left_is_counted_and_not_shown() -> None:
    story = Story()
    story.asks("Make a parser.")
    answer = story.says("Made.")
    story.asks("Write it in Java.")
    story.changes("Parser.java", "create", SHA)
    story.says("Java it is.")
    story.asks("Write it in Python.", parent=answer)
    story.changes("parser.py", "create", SHA)
    story.says("Python it is.")

    text = markdown(story)

    assert "Java" not in text
    assert "> Write it in Python." in text and "`parser.py` created" in text
    left = "4 records stand on branches that were left (the user went back); they are not in this brief. [r3, r6]"
    assert left in text


def test_going_back_into_a_left_branch_makes_it_live_again() -> None:
    story = Story()
    root = story.asks("Start.")
    first = story.says("one")
    story.asks("dead end", parent=root)
    story.says("dead answer")
    story.asks("back", parent=first)

    records, left = live(story.records)

    assert [r.id for r in records] == ["h", root, first, "r5"]
    assert left == 2


def test_results_of_calls_side_by_side_stay_live() -> None:
    story = Story()
    story.asks("Read both.")
    one = story.calls("Read", {"file_path": "a"})
    story.calls("Read", {"file_path": "b"})
    story.add(ToolResult(call_id="c2", linkage="exact", status="completed"))
    last = story.add(ToolResult(call_id="c1", linkage="exact", status="completed", parent=one))
    story.says("Read.", parent=last)

    records, left = live(story.records)

    assert len(records) == len(story.records) and left == 0


def test_a_parent_that_shares_its_native_record_with_what_follows_starts_no_branch() -> None:
    story = Story()
    first = story.says("I will read.")
    call = story.calls("Read", {"file_path": "a"})
    for record in story.records[1:3]:
        record.native_id = "n1"
    story.says("Read.", parent=first)

    records, left = live(story.records)

    assert call == "c1" and len(records) == 4 and left == 0


def test_a_branch_is_seen_where_injected_context_comes_before_its_prompt() -> None:
    story = Story()
    story.asks("Make a parser.")
    answer = story.says("Made.")
    story.asks("Write it in Java.")
    story.says("Java it is.")
    story.is_told("<reminder>")
    story.records[-1].parent = answer
    story.asks("Write it in Python.")

    records, left = live(story.records)

    assert [r.id for r in records] == ["h", "r1", answer, "r5", "r6"] and left == 2


def test_calls_of_one_response_side_by_side_are_no_branch() -> None:
    story = Story()
    story.asks("Read both.")
    story.calls("Read", {"file_path": "a"})
    story.add(ToolResult(call_id="c1", linkage="exact", status="completed"))
    story.calls("Read", {"file_path": "b"})
    story.add(ToolResult(call_id="c2", linkage="exact", status="completed", parent="r4"))
    for record in (story.records[2], story.records[4]):
        record.inference_id = "i1"  # type: ignore[union-attr]
    story.says("Read.", parent="r3")

    records, left = live(story.records)

    assert len(records) == len(story.records) and left == 0


def test_a_prompt_that_starts_anew_leaves_all_before_it() -> None:
    story = Story()
    story.asks("First try.")
    story.says("No.")
    story.asks("Second try.")
    story.records[-1].meta = {"dev.asrd.root": True}  # type: ignore[union-attr]

    text = markdown(story)

    assert section(text, "Goal") == "- [r3]\n> Second try.\n" and "First try" not in text
    assert "2 records stand on branches that were left" in text


def test_turns_that_were_taken_back_are_left() -> None:
    story = Story()
    story.asks("one")
    story.says("1")
    story.asks("two")
    story.says("2")
    story.add(Native(native_type="event_msg/thread_rolled_back", data={"type": "thread_rolled_back", "num_turns": 1}))
    story.asks("three")
    story.asks("four")
    story.add(Native(native_type="event_msg/thread_rolled_back", data={"num_turns": 2}))
    story.asks("five")

    records, left = live(story.records)

    said = [b.text for r in records if isinstance(r, Message) for b in r.content if isinstance(b, Text)]
    assert said == ["one", "1", "five"]
    assert left == 4


def test_a_conversation_that_was_rewound_goes_on_before_the_message() -> None:
    story = Story()
    story.asks("one")
    story.asks("two")
    story.records[-1].native_id = "m2"
    story.says("2")
    story.add(Native(native_type="$rewindTo", data={"$rewindTo": "m2"}))
    story.asks("three")

    records, left = live(story.records)

    assert [r.id for r in records] == ["h", "r1", "r4", "r5"] and left == 2


def test_a_summary_is_no_answer() -> None:
    story = Story()
    story.asks("Go.")
    story.says("Gone.")
    story.add(Message(role="assistant", origin="summary", content=[Text(text="It went.")]))

    assert "> Gone." in section(markdown(story), "Last exchange") and "It went." not in markdown(story)


def test_what_a_later_record_supersedes_is_not_shown() -> None:
    story = Story()
    story.asks("Go.")
    draft = story.says("half an ans")
    story.add(Message(role="assistant", content=[Text(text="The whole answer.")], supersedes=draft))

    text = markdown(story)

    assert "The whole answer." in text and "half an ans" not in text
