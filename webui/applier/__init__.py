"""The root daemon: it alone changes the kernel, and only to what a validated snapshot says.

It imports the standard library and `lbconfig`. Django reaches it through `applier.wire.client`.
"""
