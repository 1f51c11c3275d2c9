"""`holdfast share`: the page of a task as one file, which needs no server and no network.

`gather` collects the answers that the page would ask the server for, redacted again and within the limits.
`bundle` puts the modules of the page into one script, in which `static/api.js` stands for the server. `page`
writes both into one HTML file.
"""
