"""The one engine of groups whose coordinator assigns: consumer, share and streams groups."""
