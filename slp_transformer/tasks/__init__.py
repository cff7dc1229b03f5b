"""Tasks: what text, pairs of sentences and guitar tabs bring to the one trainer and command line.

Each task is a module with a class of its settings and a `Task`; `registry` names them, `run_config`
reads and writes the configuration of a run. None needs PyTorch before it is used.
"""
