"""Lab sheets for a course: what a lab is, and how answers to it are checked against runs.

A lab is a folder with `lab.toml` (questions, and what their answers are measured as), `sheet.md` and
scenarios. No file holds a right answer: `perhop course check` runs the lab's scenarios and compares.
"""
