"""One attempt: open, observe, stop, sweep.

open.py         make its directory, journal it, fork its recorder
private_home.py, sandboxed.py    what an agent may see and write
observers.py    the observers of all open executions; observer.py is one of them, subject.py what it observes
starting.py, alive.py, dying.py, ended.py    its four states
judging.py      when to judge a live agent; evidence.py collects what a verdict needs
reading.py      what the files of an attempt say, whichever runner started it
stop.py         the signals of a stop, one after another
outcome.py      how it ended; record_wait.py waits for a record that the recorder owes
sweep.py        end all processes that it left; kinship.py tells whose a process is
end_agents.py   end all agents of a packet that was removed
"""
