"""Where claims are kept, and in which forms reports are printed."""

from pathlib import Path

import pytest

from asrd.commands._sheets import claims_file, claims_of, print_sheet, text_of
from asrd.errors import SettingsError
from asrd.paths import folders
from asrd.report.sheet import Sheet, Table


def test_the_claims_file_is_at_the_top_of_the_working_tree(tmp_path: Path) -> None:
    deep = tmp_path / "tree" / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "tree" / ".git").mkdir()
    where = folders({"HOME": str(tmp_path), "ASRD_HOME": str(tmp_path / "store")})

    found = claims_file(None, deep, where)

    assert found == tmp_path / "tree" / ".asrd-claims.toml"


def test_a_claims_file_that_is_there_is_taken_without_a_working_tree(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / ".asrd-claims.toml").write_text("")
    where = folders({"HOME": str(tmp_path), "ASRD_HOME": str(tmp_path / "store")})

    found = claims_file(None, tmp_path / "a", where)

    assert found == tmp_path / ".asrd-claims.toml"


def test_a_named_file_is_the_claims_file(tmp_path: Path) -> None:
    where = folders({"HOME": str(tmp_path), "ASRD_HOME": str(tmp_path / "store")})

    found = claims_file("x.toml", tmp_path, where)

    assert found == Path("x.toml")


def test_no_file_holds_no_claims_and_a_byte_order_mark_is_none(tmp_path: Path) -> None:
    (tmp_path / "bom.toml").write_bytes(b"\xef\xbb\xbf[claim.a]\n")

    found = text_of(tmp_path / "missing"), list(claims_of(tmp_path / "bom.toml"))

    assert found == ("", ["a"])


@pytest.mark.parametrize("data", [b"\xff", b"[claim", b"x = 1"])
def test_a_file_that_is_no_claims_file_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "c.toml"
    path.write_bytes(data)

    with pytest.raises(SettingsError) as refused:
        claims_of(path)

    assert str(path) in str(refused.value)


def test_text_obeys_nothing_that_a_report_holds(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "\x1b]0;x\x07\u202e\nsecond"
    sheet = Sheet(
        title=hostile, lead=[hostile], tables=[Table(title=hostile, heads=["a"], rows=[[hostile]], notes=[hostile])]
    )

    print_sheet(sheet, "text")

    out = capsys.readouterr().out
    assert "\x1b" not in out and "\u202e" not in out and "\x07" not in out
    assert out.count("second") == 5 and "\nsecond" not in out
