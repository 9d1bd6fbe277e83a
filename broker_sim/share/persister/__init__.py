"""The persister: how the state of a share partition gets to its share coordinator and back."""
