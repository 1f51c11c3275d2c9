"""Planted bugs, each with the test that must fail because of it.

`make mutants` plants them one at a time in a copy of the tree, and runs only the test that is named. A test that passes
with its bug in place protects nothing: that is a survivor, and the run fails. So does a bug whose place is gone, because
the code has changed: move it, or replace it by another one.

Each file in `bugs/` is a list for one package of src/holdfast:

    [name-of-the-bug]
    says = "What goes wrong, in a sentence."
    file = "store/lock.py"                        # below src/holdfast
    old = '''text that is in the file exactly once'''
    new = '''what it becomes'''
    test = "tests/unit/store/test_lock.py::test_…"  # or a list of such
"""
