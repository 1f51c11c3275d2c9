"""Planted bugs, each with the test that must fail because of it.

`make mutants` plants one bug at a time in a copy of the tree and runs only the test named with it. A test
that passes although its bug is there protects nothing: the bug survived, and the run fails. The run also
fails if the code that a bug changes is gone: update the bug, or replace it by another one.

Each file in `bugs/` lists the bugs of one package:

    [name-of-the-bug]
    effect = "What goes wrong, in one sentence."
    file = "store/lock.py"                          # below src/holdfast
    old = '''text that is in the file exactly once'''
    new = '''what replaces it'''
    test = "tests/unit/store/test_lock.py::test_…"  # or a list of tests
"""
