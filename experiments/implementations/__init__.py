"""Run ports, assignors of client libraries, and custom assignors.

A client library runs unmodified in a process of its own, the *driver*. To add a library:

1. Write its driver in ``drivers/RUNTIME``, with the protocol of `client_libraries`.
2. Add the library with its versions to ``libraries.yaml``.
3. For a new runtime, add it to the start of ``libraries.yaml``.
"""
