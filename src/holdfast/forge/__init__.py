"""Pull requests of tasks.

gh          the program `gh`
text        title and text of a pull request
publish     push a task's work, and open or update its pull request
ci          the gate `ci`: one look at the checks, as a chore of the runner
"""
