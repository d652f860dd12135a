"""Figures of what a box can forward, and plans for measuring it."""
