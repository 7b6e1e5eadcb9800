"""The gate: who may do what, proposals and their reviews, the only signer of protected merges, and the audit."""
