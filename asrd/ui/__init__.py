"""The viewer: a page served on the loopback alone, and the same page as one file.

    view    what the page asks, answered from the index and the streams
    page    the page's files, its rules for the browser (CSP), one session as one file
    server  HTTP for the files, WebSocket for questions and for what is new

Promises
    - It reads. Nothing is recorded, changed, or run again; a replay only shows records one after the other.
    - What a session holds is text to the page: no markup, link or escape sequence of it is obeyed.
    - Nothing outside this machine is asked for anything.
"""
