"""Guitar tablature: the fretboard, tabs, files, tokens and corpora that the models are trained on."""
