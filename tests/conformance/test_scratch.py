from __future__ import annotations

import json
import time

from holdfast.testing.models import rate_limit
from tests.conformance.rig import Rig, summary
from tests.conformance.test_deaths import ASKED


def test_rate_limit(rig: Rig) -> None:
    server = rig.serve([rate_limit(3600).forever()])
    task = rig.start(server, ASKED, "--base-interval", "30s")
    end = time.monotonic() + 45
    while time.monotonic() < end and task.status() not in ("waiting", "interrupted", "failed"):
        time.sleep(0.5)
    m = task.manifest()
    lines = [
        f"AGENT {rig.agent} status={m['status']} reason={m['status_reason'][:150]} wake={m['wake_at']} {summary(task)} requests={len(server.conversations())}"
    ]
    lines += [json.dumps(e)[:300] for e in task.events("agent.")]
    open("/tmp/scratch-rl.log", "a").write("\n".join(lines) + "\n\n")
    task.ask("stop")
    task.wait_for("killed", within_s=60)
