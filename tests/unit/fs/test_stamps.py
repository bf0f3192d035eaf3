"""What tells that files are as they were."""

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
