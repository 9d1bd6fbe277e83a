"""Functions that handlers of several APIs share."""
