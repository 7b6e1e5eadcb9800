"""The store: changesets, refs, states, conflicts, manifests, protected merges. Integrity, no users."""
