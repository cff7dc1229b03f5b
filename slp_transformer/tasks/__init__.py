"""Tasks: what text, pairs of sentences and others bring to the one trainer and command line.

Each task is a module with a class of its settings and a `Task`. `registry` names them,
`config_files` and `run_config` read and write configurations, and `saved_runs` opens runs.
None needs PyTorch before it is used.
"""
