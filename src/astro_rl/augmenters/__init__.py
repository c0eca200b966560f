"""ASTRO and its rivals behind one protocol (`base`), by name (`registry`)."""
