"""The configuration model of a Fairlead box: pure, standard library only.

Nothing in this package reads a file, runs a command, asks the time or imports Django, so the web
process and the root applier can run the same code on the same snapshot and compare the results.
"""
