"""The keeper, one per home: starts and restarts runners.

It has no state in memory that counts; everything is read from files.

main.py          the process: takes the lock, and calls the parts below in a loop
live_tasks.py    every live task has a runner; runner_needs.py tells which tasks need one, runner_watches.py
                 notices that a runner died
restart_seed.py  the home has a seed
dispatch.py      starts tasks of the queue; loop_state.py (settings and counters), capacity.py (slots, memory,
                 disk), allowance.py (hours, money per day), ended_tasks.py (counts ends, asks a person)
schedules.py     tasks that start at a time; sources.py imports work items; archiver.py archives old tasks
delivery.py      delivers notices; replies.py has the replies to them read
faults.py        errors that no chore expects: noted, and the keeper goes on
upkeep.py        removes what killed commands left, updates the task index
settings.py      the last readable settings; inhibitor.py: no sleep while tasks run; descriptors.py, log.py
"""
