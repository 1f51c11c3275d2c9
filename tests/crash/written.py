"""How lives with several stages begin, and what must hold at their ends: packets, worktrees, the queue."""

from __future__ import annotations

import json
import os

from holdfast import clock
from holdfast.keeper import loop_state
from holdfast.model import events as ev
from holdfast.model.outcome import SUCCESS
from holdfast.model.spec import QualitySpec, StageSpec
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.queue import schedule
from holdfast.queue.local import LocalQueue
from holdfast.store import journal
from holdfast.testing import Scenario as Script
from holdfast.testing import SessionMemory
from holdfast.workspace import room_places
from tests.crash.drive import Case
from tests.support.packets import PACK, REPORTS, WORK, brief
from tests.support.repos import Repo


def stage(
    case: Case, role: str, script: Script | None = None, *, name: str = "", **fields: object
) -> StageSpec:
    """A stage of the scripted agent: a unique line, the steps of `script`, and the report of its role."""
    name = name or f"scripted_{role}"
    script = (script or Script().fail_if_running()).say(f"here is {name}")
    report = brief(f"test -e {WORK}") if role == "brief" else REPORTS[role]
    path = script.say(report).result("ok").write_to(os.path.join(case.root, f"{name}.json"))
    return StageSpec.from_json(
        {"name": name, "agent": "scripted", "role": role, "options": {"scenario": str(path)}, **fields}
    )


def whole(case: Case) -> None:
    """A brief, an implementation with a scope, and two parallel reviews."""
    Repo(case.project).commit("README.md")
    work = Script().fail_if_running().write(WORK, content="hello\n")
    case.create_written(
        stage(case, "brief"),
        stage(case, "impl", work, writes=True),
        stage(case, "review", _slowly("one"), name="scripted_review", group="reviews"),
        stage(case, "review", _slowly("two"), name="scripted_second", group="reviews"),
        scope_allow=(WORK,),
        acceptance_commands=("test -e README.md",),  # the brief adds one
    )


def _slowly(who: str) -> Script:
    """Lines with a pause between them, so that those of another agent come in between."""
    return Script().fail_if_running().say(f"{who} begins").sleep(0.12).say(f"{who} goes on").sleep(0.12)


def check_whole(case: Case, task: Task) -> None:
    """The work is done, the brief was passed on, and no agent was called twice without reason."""
    with open(os.path.join(case.project, WORK), encoding="utf-8") as file:
        assert file.read() == "hello\n"
    with open(case.packet.context_pack, encoding="utf-8") as file:
        assert file.read() == PACK.strip("\n") + "\n"
    with open(case.packet.commands_override, encoding="utf-8") as file:
        assert file.read() == f"test -e {WORK}\n"
    assert not room_places.rooms_of(case.packet), "a clean room is left"
    ended = [event for _, event in journal.read(case.packet.journal) if isinstance(event, ev.AttemptEnded)]
    in_vain = sum(event.outcome not in SUCCESS for event in ended)
    calls = sum(len(memory.starts()) for memory in SessionMemory.all(case.state))
    assert calls <= 4 + in_vain, f"{calls} calls for four stages, though only {in_vain} came to nothing"


def with_a_mortal_gate(case: Case) -> None:
    """The first time, the acceptance command kills the gate that runs it, and survives."""
    died = os.path.join(case.root, "died")
    command = f"test -e {died} || {{ touch {died}; kill -9 $PPID; sleep 60; }}"
    case.create_written(stage(case, "verify"), acceptance_commands=(command,))


def check_mortal_gate(case: Case, task: Task) -> None:
    """The gate ran again, and the agent did not."""
    events = [event for _, event in journal.read(case.packet.journal)]
    assert [event for event in events if isinstance(event, ev.ChoreFailed)], "no gate died"
    assert len([event for event in events if isinstance(event, ev.GateJudged)]) == 1


def with_a_crash(case: Case) -> None:
    """The agent of a stage is killed once, which is triaged, and the stage is tried again."""
    script = Script().fail_if_running().crash("KILL", tries=1)
    case.create_written(stage(case, "verify", script), acceptance_commands=("true",))


def check_crash(case: Case, task: Task) -> None:
    """The crash was triaged once."""
    events = [event for _, event in journal.read(case.packet.journal)]
    triaged = [event.attempt for event in events if isinstance(event, ev.FailureTriaged)]
    assert len(triaged) == len(set(triaged)) >= 1


def with_a_repair(case: Case) -> None:
    """The acceptance fails once, and the work goes back to the session of the implementation."""
    Repo(case.project).commit("README.md")
    work = Script().fail_if_running().write(WORK, content="bad\n")
    again = Script().fail_if_running().write(WORK, content="good\n").say(REPORTS["impl"]).result("ok")
    case.create_written(
        stage(case, "impl", work.resumed(again), writes=True),
        stage(case, "verify"),
        scope_allow=(WORK,),
        acceptance_commands=(f"grep -q good {WORK}",),
        repair_times=2,
    )


def check_repair(case: Case, task: Task) -> None:
    """It was sent back once, and what is done was done after that."""
    with open(os.path.join(case.project, WORK), encoding="utf-8") as file:
        assert file.read() == "good\n"
    events = [event for _, event in journal.read(case.packet.journal)]
    planned = [at for at, event in enumerate(events) if isinstance(event, ev.RepairPlanned)]
    # An agent that was killed continues in its session, which then does the right work.
    assert len(planned) == 1 or (not planned and task.stage_state("scripted_impl").times_ran > 1)
    done = {event.stage: at for at, event in enumerate(events) if isinstance(event, ev.StageDone)}
    assert all(at > max(planned, default=0) for at in done.values()), "a void marker was believed"
    assert not room_places.rooms_of(case.packet)


def best_of_n(case: Case) -> None:
    """Three candidates: two pass their gates, and the judge chooses the last."""
    Repo(case.project).commit("README.md")
    contents = ("good one", "bad", "good three")
    case.create_written(
        *(
            stage(
                case,
                "impl",
                Script().fail_if_running().write(WORK, content=f"{content}\n"),
                name=f"scripted_impl-{number}",
                writes=True,
                group="attempts",
                contest="scripted_impl",
                candidate=number,
            )
            for number, content in enumerate(contents, start=1)
        ),
        stage(case, "judge", contest="scripted_impl"),
        stage(case, "verify"),
        workspace="worktree",
        scope_allow=(WORK,),
        acceptance_commands=(f"grep -q good {WORK}",),
    )


def check_best_of_n(case: Case, task: Task) -> None:
    """One was chosen once, its work is in the task's worktree, and no file of it came to the project."""
    events = [event for _, event in journal.read(case.packet.journal)]
    (chosen,) = [event for event in events if isinstance(event, ev.CandidateChosen)]
    assert (chosen.candidate, chosen.by) == (3, "judge")
    out = [event.candidate for event in events if isinstance(event, ev.CandidateEliminated)]
    assert out == [2]
    assert sorted(os.listdir(case.home.worktrees)) == ["task", "task.c1", "task.c2", "task.c3"]
    for name, content in (("task", "good three\n"), ("task.c1", "good one\n"), ("task.c2", "bad\n")):
        with open(os.path.join(case.home.worktrees, name, WORK), encoding="utf-8") as file:
            assert file.read() == content, name
    assert not os.path.exists(os.path.join(case.project, WORK))
    with open(case.packet.changes, encoding="utf-8") as file:
        assert "+good three" in file.read()
    listed = Repo(case.project, with_git=False).git("worktree", "list", "--porcelain")
    assert listed.count("worktree ") == 5, listed
    ended = [event for event in events if isinstance(event, ev.AttemptEnded)]
    in_vain = sum(event.outcome not in SUCCESS for event in ended)
    calls = sum(len(memory.starts()) for memory in SessionMemory.all(case.state))
    assert calls <= 5 + in_vain, f"{calls} calls for five stages, though only {in_vain} came to nothing"


def with_approval(case: Case) -> None:
    """The second stage needs approval."""
    case.create_written(stage(case, "test_design"), stage(case, "verify", approval=True))


def awaits_approval(case: Case) -> bool:
    """Whether the task is parked and waits for approval."""
    asked = case.manifest.get("interrupt")
    return case.runner is None and isinstance(asked, dict) and asked.get("approval") == "scripted_verify"


def check_approval(case: Case, task: Task) -> None:
    """Nothing of the second stage came before it."""
    events = [event for _, event in journal.read(case.packet.journal)]
    given = [at for at, event in enumerate(events) if isinstance(event, ev.ApprovalGiven)]
    assert len(given) == 1
    opened = [at for at, event in enumerate(events) if _is_of(event, "scripted_verify")]
    assert opened[0] > given[0], "the stage was begun without approval"
    assert not os.path.exists(case.packet.interrupt_request), (
        "the interrupt file of the answered question still exists"
    )


def _is_of(event: ev.Event, name: str) -> bool:
    return isinstance(event, ev.AttemptOpened) and event.stage == name


def in_worktree(case: Case) -> None:
    """A plain command in a worktree."""
    Repo(case.project).commit("README.md")
    script = f"for i in 1 2 3 4 5; do echo line $i; done; echo hello > {WORK}"
    case.create(command=["sh", "-c", script], workspace="worktree")


def with_clean_git(case: Case) -> None:
    """A plain command that must leave nothing uncommitted, and tries to hide a file."""
    repo = Repo(case.project)
    repo.commit("README.md")
    hide = f"echo {WORK} >> .git/info/exclude; echo hello > {WORK}"
    command = ["sh", "-c", f"for i in 1 2 3 4 5; do echo line $i; done; {hide}"]
    case.create(command=command, quality=QualitySpec(clean_git=True, action="warn"))


def check_clean_git(case: Case, task: Task) -> None:
    """The excludes from before the work counted, whichever process was killed."""
    with open(case.packet.gate_result("command_run"), encoding="utf-8") as file:
        assert json.load(file)["reasons"] == [f"not committed: {WORK}"]


def check_worktree(case: Case, task: Task) -> None:
    """It worked only there, and there is one worktree."""
    prepared = task.stage_state("command_run").workspace
    assert prepared is not None
    assert os.path.exists(os.path.join(prepared.path, WORK))
    assert not os.path.exists(os.path.join(case.project, WORK))
    assert len(os.listdir(case.home.worktrees)) == 1
    listed = Repo(case.project, with_git=False).git("worktree", "list", "--porcelain")
    assert listed.count("worktree ") == 2, listed
    assert not [line for line in listed.splitlines() if line.startswith(("prunable", "locked"))], listed


def submitted(case: Case) -> None:
    """Into the queue by the command line; a keeper finds it there."""
    os.unlink(case.home.down)
    with open(case.home.up, "w", encoding="utf-8") as file:
        json.dump({"loop": {"min_free_memory_bytes": 0, "min_free_disk_bytes": 0}}, file)
    argv = ["submit", "--id", "task", "--project", case.project, "--base-interval", "0.3s", "--stale", "none"]
    argv += ["--", "sh", "-c", "for i in 1 2 3 4 5; do echo line $i; done"]
    if case.holdfast(*argv) != 0 and not os.path.isdir(case.packet.path):
        # Nothing was created, so the command is typed again.
        assert case.holdfast(*argv) == 0


def scheduled(case: Case) -> None:
    """A schedule of which a run is due; a keeper finds it."""
    os.unlink(case.home.down)
    with open(case.home.up, "w", encoding="utf-8") as file:
        json.dump({"loop": {"min_free_memory_bytes": 0, "min_free_disk_bytes": 0}}, file)
    argv = ["submit", "--every", "1h", "--id", "plan", "--project", case.project, "--base-interval", "0.3s"]
    argv += ["--stale", "none", "--", "sh", "-c", "for i in 1 2 3 4 5; do echo line $i; done"]
    if case.holdfast(*argv) != 0 and schedule.read(case.home, "plan") is None:
        assert case.holdfast(*argv) == 0
    made = schedule.read(case.home, "plan")
    assert made is not None
    made = made.evolve(created_at=clock.iso(clock.now() - 3660.0))
    due = schedule.missed_at(made, clock.now())
    assert due is not None
    case.packet = case.home.packet(schedule.run_id(made, due))
    schedule.write(case.home, made)


def check_scheduled(case: Case, task: Task) -> None:
    """One run, started once; the next one is due later."""
    check_queued(case, task)
    assert [name for name in os.listdir(case.home.tasks) if name[0] != "."] == [case.packet.task_id]
    made = schedule.read(case.home, "plan")
    assert made is not None
    assert schedule.next_at(made) > clock.now()


def has_left_the_queue(case: Case) -> bool:
    """Whether the keeper has noticed the end."""
    if not os.path.exists(case.packet.task_done) or not os.path.exists(case.home.queue):
        return False
    with LocalQueue(case.home) as queue:
        return not queue.items()


def check_queued(case: Case, task: Task) -> None:
    """Started once and counted once.

    After a kill between an event and its count, the count may be off by one: a requested start is not
    counted, or an end whose row is still in the queue is counted twice, but never zero times.
    """
    events = [event for _, event in journal.read(case.packet.journal)]
    starts = [event for event in events if isinstance(event, ev.TaskMoved) and event.old == Status.QUEUED]
    assert [event.new for event in starts] == [Status.SPAWNING], f"it was started {len(starts)} times"
    asked = [event for event in events if isinstance(event, ev.RequestApplied) and event.verb == "start"]
    assert len(asked) == 1
    state = loop_state.read_state(case.home)
    point = (case.failpoint or "").partition("=")[0] if case.fired else ""
    fewer_starts = point == "dispatch.asked" or point.startswith(("inbox.", "atomic."))
    more_ends = point == "dispatch.counted" or point.startswith("atomic.")
    assert 1 - fewer_starts <= state.iteration <= 1, f"{state.iteration} starts were counted"
    assert task.iteration == 1
    assert list(state.ended) == ["completed"], f"counted were {state.ended}"
    assert 1 <= state.ended["completed"] <= 1 + more_ends, f"counted were {state.ended}"
    assert state.failures == 0
