"""The sixteen steps of acceptance, told over real processes: `charon demo`, and what tests/acceptance asserts.

`world` starts and stops the processes, `actors` are who acts on them (agents over MCP, a reviewer over HTTP, an operator at the command line),
the steps stand in `beginning`, `review`, `disagreement`, `exactness`, `attack` and `leak`, and `tale` runs them in order. Each step
asserts on what came back, never on what was sent.
"""
