"""What views show, as data: tasks, status, events, reports. The values behind every `--json`.

Every view takes its data from here: it reads the files of a home and writes none. Formatting is the view's
own. Importing it loads no library of a view.
"""
