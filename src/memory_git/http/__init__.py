"""The HTTP faces of Lethe and Charon: parse, call one verb, render. No policy in them."""
