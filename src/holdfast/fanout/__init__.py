"""The conductor of a fan-out: it turns the items of a plan into queued tasks and merges their work.

It is the command of the parent task, so it is supervised, logged, stopped and started again like any agent.
Everything it knows is on disk: the plan in the journal of the parent (its spec), what it decided in
`state/fan-out.json`, the items' work in their tasks, and what is merged on the parent's branch.

    loop        look at the children, decide, do one step, wait
    decide      what to do next; pure
    children    create a task for an item, look at it, send it back
    merge       judge an item's work together with the rest, and move the branch
"""
