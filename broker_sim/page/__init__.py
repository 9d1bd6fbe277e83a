"""The page: a picture of a cluster in a browser, live at the control port or recorded in one file.

From the cluster to the screen:

1. the verb `picture` returns the current state as small named parts (`cluster.status.picture`)
2. `changes.changes` leaves out the unchanged parts
3. live, `control.page` sends the rest as a server-sent event, at a pace that costs little; a run in virtual time
   keeps it in a `recording.Recording` instead, which becomes one HTML file; so does a trace
4. in the browser `static/world.js` puts the parts together again, and the panels of `static/` draw them: the same code
   for both

There is no build step and no framework: a panel is a function of the parts, a module has a hundred lines or two, and
`static/dom.js` is all that they share. Kafka has no counterpart.
"""
