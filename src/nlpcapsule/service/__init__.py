"""Serve a model over HTTP, with a page to review labels; `nlpcapsule serve`.

A request passes `guards` (size, token, number at a time), is validated by `schemas`, waits in `batching`
until the model is free, and is answered by the model that `served_model` holds at that moment.
`app` joins them.
"""
