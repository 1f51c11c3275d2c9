"""holdfast service: the unit's text, and errors without systemd."""

from __future__ import annotations

import json
import os
import plistlib
import subprocess
import sys

import jsonschema
import pytest

from contracts import schema
from tests.support.tasks import holdfast
from tests.support.tools import need


@pytest.mark.usefixtures("home")
class TestPrint:
    @pytest.mark.parametrize(
        "name", ["home", "with space", 'q"uote', "per%cent", "dol$lar", "ümlaut", "back\\slash"]
    )
    def test_systemd_accepts_the_unit_of_any_home(
        self, home: str, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        need("systemd-analyze")
        root = os.path.dirname(home)
        monkeypatch.setenv("HOLDFAST_HOME", os.path.join(root, name))
        done = holdfast("service", "install", "--print")
        assert done.returncode == 0, done.stderr
        path = os.path.join(root, "holdfast-test.service")
        with open(path, "w", encoding="utf-8") as file:
            file.write(done.stdout)
        verified = subprocess.run(
            ["systemd-analyze", "--user", "verify", path],
            env={**os.environ, "XDG_RUNTIME_DIR": root},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert verified.returncode == 0, verified.stderr
        assert "holdfast-test.service" not in verified.stderr  # not even a warning

    def test_the_unit_kills_the_keeper_only_and_brings_it_back(self, home: str) -> None:
        lines = holdfast("service", "install", "--print").stdout.splitlines()
        assert "KillMode=process" in lines
        assert "Restart=on-failure" in lines
        assert "OOMPolicy=continue" in lines
        assert f"ExecStart={sys.executable} -P -E -m holdfast.keeper" in lines
        assert f"Environment=HOLDFAST_HOME={home}" in lines
        assert not os.path.exists(os.path.join(home, "service.json"))

    def test_the_keeper_gets_the_users_settings(self, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """The records of the home are there: a keeper with others would run none of its tasks."""
        monkeypatch.setenv("XDG_CONFIG_HOME", "/some where/else")
        unit = holdfast("service", "install", "--print", "--kind", "systemd").stdout
        assert 'Environment="XDG_CONFIG_HOME=/some where/else"' in unit.splitlines()
        text = holdfast("service", "install", "--print", "--kind", "launchd").stdout
        properties = plistlib.loads(text.encode())
        assert properties["EnvironmentVariables"]["XDG_CONFIG_HOME"] == "/some where/else"

    @pytest.mark.parametrize("kind", ["systemd", "launchd"])
    def test_json_has_the_unit_and_where_it_would_be(self, kind: str) -> None:
        words = ["service", "install", "--print", "--kind", kind]
        printed = json.loads(holdfast(*words, "--json").stdout)
        jsonschema.validate(printed, schema.schemas()["service-unit"])
        assert printed["kind"] == kind
        assert printed["text"] == holdfast(*words).stdout
        assert not os.path.exists(printed["path"])

    def test_launchd_gets_a_property_list(self, home: str) -> None:
        done = holdfast("service", "install", "--print", "--kind", "launchd")
        wanted = plistlib.loads(done.stdout.encode())
        assert wanted["AbandonProcessGroup"] is True
        assert wanted["KeepAlive"] == {"SuccessfulExit": False}
        assert wanted["ProgramArguments"] == [sys.executable, "-P", "-E", "-m", "holdfast.keeper"]
        assert wanted["EnvironmentVariables"]["HOLDFAST_HOME"] == home

    def test_the_default_home_has_the_plain_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def label() -> str:
            text = holdfast("service", "install", "--print", "--kind", "launchd").stdout
            return plistlib.loads(text.encode())["Label"]

        assert label().startswith("holdfast.keeper-")
        monkeypatch.delenv("HOLDFAST_HOME")
        assert label() == "holdfast.keeper"


@pytest.mark.usefixtures("home")
class TestErrors:
    def test_without_systemd_nothing_is_changed_and_a_way_out_is_named(
        self, home: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
        monkeypatch.setenv("XDG_RUNTIME_DIR", "/nonexistent")
        done = holdfast("service", "install")
        assert done.returncode == 3
        assert "error: systemd is not available for this user" in done.stderr
        assert "hint: 'holdfast up' works without it" in done.stderr
        assert not os.path.exists(os.path.join(os.environ["HOME"], ".config"))
        assert not os.path.exists(os.path.join(home, "service.json"))

    def test_status_and_remove_without_a_service(self) -> None:
        done = holdfast("service", "status")
        assert (done.returncode, done.stdout) == (3, "not installed\n")
        facts = json.loads(holdfast("service", "status", "--json").stdout)
        assert facts == {"schema": "holdfast.service-status/1", "is_installed": False}
        done = holdfast("service", "remove")
        assert done.returncode == 3
        assert "no service is installed" in done.stderr

    def test_wrong_words_are_2(self) -> None:
        assert holdfast("service").returncode == 2
        assert holdfast("service", "instal").returncode == 2
        assert holdfast("service", "install", "--kind", "launchd").returncode == 2

    def test_help_has_examples(self) -> None:
        done = holdfast("service", "--help")
        assert done.returncode == 0
        assert "holdfast service install" in done.stdout
