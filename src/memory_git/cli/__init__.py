"""The command line of both programs: reads arguments and environment, calls one verb, renders.

How to add a command:

1. Write `lethe_commands/<name>.py` or `charon_commands/<name>.py` with one attribute `command`: a
   `click.Command`, or a `program.LazyGroup` with a table of its own for a command with subcommands.
   Import what is heavy (storage, pydantic, httpx, mcp) inside the function that needs it.
2. Add one line to the table in `lethe.py` or `charon.py`: the name, its one-line help, its module.
3. `make docs` writes docs/CLI.md anew; the docs tests fail until that is done.

What a command gets from here: `program` (lazy groups, exit status), `render` (tables, `--json`),
`exits` (refusals as exit codes), `settings` (one model over file, environment and flags).
A command returns None, or an `exits.Exit` for a finding; it raises what the verbs raise.
"""
