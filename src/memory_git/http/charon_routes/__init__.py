"""The routes of Charon's API (6-charon), by what they speak of; each parses, calls one verb of the gate and renders."""
