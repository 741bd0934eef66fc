"""The pages of docs/papers, docs/today.md and docs/workloads.md, written from full runs."""
