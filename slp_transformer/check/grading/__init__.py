"""Files of a class: each run in a bounded process of its own, and judged in the teacher's."""
