"""Reports: tables over what was recorded, made pure and then set as text, Markdown, HTML or JSON.

- `sheet`    a report as tables, and how they are set; whatever a session holds is inert in each form
- `work`     sessions by the pieces of work that claim them, and the intervals that are claimed
- `foreign`  the receipts of another campaign, in its own units
- `spending` tokens and money by day, week, month, session, model, harness, project, branch, tree
"""
