"""`python -m holdfast.testing.models SCRIPT.json [--port N] [--log FILE]`."""

from __future__ import annotations

import argparse
import json
import signal
import sys

from holdfast.testing.models.script_file import load
from holdfast.testing.models.server import ModelServer
from holdfast.testing.models.settings import AGENTS
from holdfast.testing.models.turns import ScriptError


def main(argv: list[str]) -> int:
    """Serve a script until a signal arrives."""
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.testing.models",
        description="Serve scripted answers to Anthropic, OpenAI and Gemini clients, until SIGTERM.",
    )
    parser.add_argument("script", metavar="SCRIPT.json")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="default: a free port")
    parser.add_argument("--log", metavar="FILE", help="append every request to this file")
    options = parser.parse_args(argv)
    # Blocked before the threads start, so that only sigwait receives them.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        server = ModelServer(load(options.script), port=options.port, log=options.log)
    except ScriptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (OSError, OverflowError) as error:
        print(f"error: cannot serve on port {options.port}, or write {options.log}: {error}", file=sys.stderr)
        return 1
    with server:
        setups = {agent: server.setup(agent) for agent in AGENTS}
        known = {
            agent: {"env": setup.env, "files": setup.files, "arguments": setup.arguments}
            for agent, setup in setups.items()
        }
        print(json.dumps({"url": server.url, "port": server.port, "agents": known}), flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
