"""The rows of the table, in its order. Each has a test of the same name; a row without one says why."""

from __future__ import annotations

from tests.conformance.table import Joint, Row

ROWS = {
    "text": Row("text", is_smoke=True),
    "write_file": Row("a tool call writes a file"),
    "prompt": Row("prompt of 500 KB with quotes, newlines, `$()` and emoji arrives byte for byte"),
    "session_and_usage": Row("session id and usage are read"),
    "system_prompt": Row("`-o system_prompt_path=FILE` and `--bootstrap default` reach the model"),
    "skill": Row("`holdfast skill install`: the model is told of the skill"),
    "session": Row("`--session ID` goes on with a session of the person's own, with its history"),
    "kill_in_tool": Row("SIGKILL in a tool → resumed in the same session, with its history", is_smoke=True),
    "kill_in_stream": Row("SIGKILL in a stream → resumed"),
    "kill_before_session": Row("killed before any session exists → briefing"),
    "stall": Row("stall → hung → stopped → resumed"),
    "rate_limit": Row("429, the plan is used up for an hour → waiting → woken → done", is_smoke=True),
    "retry_after": Row("429 with `Retry-After: 3600` → waiting → woken → done"),
    "unauthorized": Row("401 → interrupted, with the login hint"),
    "sigterm": Row("SIGTERM → not a success, whatever the exit status"),
    "runner_killed": Row("runner SIGKILLed mid-run → adopted → done"),
    "stop": Row("`stop` mid-tool leaves no process", is_smoke=True),
    "takeover": Row("`takeover`: the CLI shows the session in a terminal → ended → the task resumes it"),
    "sandbox": Row("`--sandbox`: a tool writes to the workspace, and neither sees keys nor writes to HOME"),
    "sandbox_hosts": Row(
        "`--sandbox --network HOST`: its service is reached through the proxy, no other host"
    ),
    "sandbox_resume": Row("`--sandbox`: SIGKILL in a tool → resumed in the same session"),
    "two_tasks": Row("two tasks in one directory resume their own sessions"),
    "budget": Row("budget of turns reached mid-run → stopped, and asks"),
    "second_writer": Row("a second attempt on a live session is refused"),
    "read": Row("`--permissions read`: neither an edit nor a command writes a file → exit status 4"),
    "edit": Row(
        "`--permissions edit`: edits and commands write in the workspace, not elsewhere → exit status 4"
    ),
    "mcp_install": Row("`mcp install` and `mcp remove` through the CLI's own command, each twice"),
    "mcp_call": Row("the agent calls tools of `holdfast mcp`: it starts a task, and may not approve its own"),
    "full": Row("`--permissions full`: edits and commands write in the workspace and elsewhere"),
    "sandbox_read": Row(
        "`--sandbox --permissions read`: neither an edit nor a command writes → exit status 4"
    ),
    "sandbox_edit": Row("`--sandbox --permissions edit`: edits and commands write in the workspace only"),
    "sandbox_full": Row("`--sandbox --permissions full`: edits and commands write in the workspace only"),
}

#: Scenarios of several programs in one task.
TOGETHER = {
    "safe_impl": Joint(
        "`safe_impl`: brief, implementation through the CLI's own tool, verification, review; "
        "each passes its gate",
        ("gemini", "codex"),
        is_smoke=True,
    ),
    "review_cross": Joint(
        "`review_cross`: two reviews that do not see each other, and a consolidation that gets both",
        ("gemini", "codex", "copilot"),
    ),
    "post_impl_review": Joint(
        "`post_impl_review`: its six stages, each with the context pack and the implementer's report",
        ("gemini", "codex"),
    ),
    "walkthrough": Joint(
        "the loop: work item → bootstrap → done → archive; the agent asks, the context is kept, "
        "a person answers, the same session goes on",
        ("claude",),
    ),
    "orchestrate": Joint(
        "an agent with the tools of `holdfast mcp` starts 20 tasks, is killed, comes back, answers a "
        "question and collects all results, reading less than 20 KB",
        ("claude",),
    ),
    "failover": Joint(
        "out of quota mid-work → the other takes over in the same workspace, with the briefing",
        ("claude", "codex"),
    ),
}
