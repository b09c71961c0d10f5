"""config.toml: what it means, and the sentence a mistake in it becomes."""

from datetime import timedelta
from pathlib import Path

import pytest

from asrd.errors import SettingsError
from asrd.retention import Rule
from asrd.settings import Log, Seal, Search, Settings, age, read, size

HOME = Path("/home/dev")


def given(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "config.toml"
    path.write_text(text, "utf-8")
    return read(path, HOME)


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    assert read(tmp_path / "config.toml", HOME) == Settings()
    assert Settings().retain == ()
    assert Settings().seal.after == timedelta(days=30)


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    found = given(
        tmp_path,
        """
[seal]
after = "2w"
[[retain]]
age = "180d"
project = "~/scratch/"
[[retain]]
size = "1.5GB"
harness = "codex"
[search]
index = false
[log]
format = "json"
file = "~/asrd.log"
size = "1MiB"
keep = 0
""",
    )

    assert found == Settings(
        seal=Seal(timedelta(days=14)),
        retain=(
            Rule(age=timedelta(days=180), project="/home/dev/scratch"),
            Rule(size=1_500_000_000, harness="codex"),
        ),
        search=Search(index=False),
        log=Log("json", "/home/dev/asrd.log", 1 << 20, 0),
    )


def test_never_leaves_streams_as_they_are(tmp_path: Path) -> None:
    assert given(tmp_path, '[seal]\nafter = "never"').seal.after is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[[retain]]\nage = "soon"', "retain[0].age should be a time such as 12h, 90d, 6w, 2y, not 'soon'"),
        ("[[retain]]\nage = 90", "retain[0].age should be a time"),
        ('[[retain]]\nage = "0d"', "retain[0].age should be a time"),
        ('[[retain]]\nsize = "big"', "retain[0].size should be a size"),
        ('[[retain]]\nharness = "codex"', "retain[0] should be a rule with age or size"),
        ('[[retain]]\nage = "1d"\nagent = "codex"', "retain[0] should be something asrd knows, not Object contains"),
        ('[retain]\nage = "1d"', "retain should be `array`, not `object`"),
        ("retain = 3", "retain should be `array`, not `int`"),
        ('[log]\nformat = "xml"', "log.format should be something asrd knows, not Invalid enum value 'xml'"),
        ("[log]\nkeep = -1", "log.size and log.keep"),
        ("[reatin]\n", "unknown field `reatin`"),
        ("[seal", "the file should be TOML"),
        ("[seal]\nafter = 3", "seal.after should be a time"),
    ],
)
def test_a_mistake_is_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        given(tmp_path, text)

    assert sentence in str(caught.value)
    assert str(tmp_path / "config.toml") in str(caught.value)


def test_a_file_that_is_no_text_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")

    with pytest.raises(SettingsError, match="the file should be"):
        read(tmp_path / "config.toml", HOME)


def test_ages_and_sizes() -> None:
    assert (age("12h"), age("2y")) == (timedelta(hours=12), timedelta(days=730))
    assert (size("500MB"), size("1GiB"), size(7), size("12")) == (500_000_000, 1 << 30, 7, 12)
    for wrong in ("", "d", "-1d", "1.5d", None, True):
        with pytest.raises(ValueError, match="a time"):
            age(wrong)
    for wrong in ("", "1PB", "-1", True, None, 1.5):
        with pytest.raises(ValueError, match="a size"):
            size(wrong)
