"""The routes of Lethe's API (5-lethe, HTTP API), by what they speak of; each parses, calls one verb and renders."""
