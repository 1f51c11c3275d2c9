"""`holdfast serve`: tasks in a browser. A server on the loopback interface, and pages without a build step.

It reads `views.facts`, and sends requests through a process of its own per action (`worker`). `security` says
what a request must have; docs/decisions/0076-web-view.md says why.
"""
