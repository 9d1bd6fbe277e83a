"""The jobs, each a transformation of frames and a thin `run`; `schema` is their contract."""
