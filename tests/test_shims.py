"""Programs that stand for others."""

from pathlib import Path

from tournaments.bots.toolchains import behind_shim


def test_behind_a_link_to_rustup(tmp_path: Path) -> None:
    real = tmp_path / "toolchain" / "rustc"
    real.parent.mkdir()
    (tmp_path / "rustup").write_text(f"#!/bin/sh\n[ $1 = which ] && echo {real.parent}/$2\n")
    for path in (real, tmp_path / "other"):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (tmp_path / "rustup").chmod(0o755)
    (tmp_path / "rustc").symlink_to("rustup")
    (tmp_path / "cargo").symlink_to("rustup")
    assert behind_shim(str(tmp_path / "rustc")) == str(real)
    assert behind_shim(str(tmp_path / "cargo")) == str(tmp_path / "cargo")  # it names what is not there
    for name in ("rustup", "other"):
        assert behind_shim(str(tmp_path / name)) == str(tmp_path / name)
