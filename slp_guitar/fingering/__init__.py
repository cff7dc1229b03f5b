"""From pitches to places on the neck: grips, the cheapest fingering, models that learn it."""
