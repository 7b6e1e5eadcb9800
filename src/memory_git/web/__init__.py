"""The web pages for the person who reviews: server-rendered, no script, no policy of their own (6-charon, web page)."""
