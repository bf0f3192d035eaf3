"""What tells that files are as they were."""

from __future__ import annotations

from rye.fs.stamps import Basis


def test_what_comes_behind_a_link_that_led_nowhere_is_noticed(tmp_path):
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "link").symlink_to(elsewhere)
    basis = Basis()
    for path in (folder, folder / "absent", folder / "link"):
        basis.rest_on(str(path))
    assert basis.holds
    elsewhere.write_text("x")
    assert not basis.holds


def test_what_comes_into_a_folder_is_noticed(tmp_path):
    basis = Basis()
    basis.rest_on_way(str(tmp_path), ["a", "b"])
    basis.rest_on(str(tmp_path / "x"))
    assert basis.holds
    (tmp_path / "a").mkdir()
    assert not basis.holds
