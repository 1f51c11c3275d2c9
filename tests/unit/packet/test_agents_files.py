"""Files of a packet that choose programs or paths count only if they are ours."""

from __future__ import annotations

import json

import pytest

from holdfast.errors import CorruptFile
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import environment, fan_out, load
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.store import atomic
from holdfast.store.layout import Home, Packet


@pytest.fixture
def packet(home: str) -> Packet:
    ensure_home(home)
    stages = (StageSpec(name="command_run", agent="command"),)
    spec = TaskSpec(
        task_id="port", task_name="port", goal="", agent="command", project_dir=home, stages=stages,
        limits=Limits(),
    )  # fmt: skip
    return create(Home(home), spec, prompt=None, env={"env": {"PATH": "/bin"}}, status=Status.SPAWNING)


def test_an_environment_that_an_agent_wrote_is_refused(packet: Packet) -> None:
    expected = load.fold(packet).env_sha256
    assert environment.read_captured(packet, expected) == {"env": {"PATH": "/bin"}}
    with open(packet.env, "w", encoding="utf-8") as file:
        json.dump({"env": {"PATH": "/tmp/evil:/bin"}}, file)
    with pytest.raises(CorruptFile, match="something other than holdfast"):
        environment.read_captured(packet, expected)


@pytest.mark.parametrize(
    ("item", "task"), [("one", "other"), ("one", "../../x"), ("../../x", "port.../../x"), ("one", "port.two")]
)
def test_a_fan_out_has_no_tasks_but_its_own(packet: Packet, item: str, task: str) -> None:
    """The conductor would send them back with an environment, in a request that counts."""
    row = {"id": item, "task": task}
    atomic.write_json(packet.fan_out, {"rows": [{"id": "one", "task": "port.one"}]}, durable=False)
    record = fan_out.read(packet)
    assert record is not None
    assert record.rows[0].task == "port.one"
    atomic.write_json(packet.fan_out, {"rows": [row]}, durable=False)
    with pytest.raises(CorruptFile, match="not one of this fan-out"):
        fan_out.read(packet)
