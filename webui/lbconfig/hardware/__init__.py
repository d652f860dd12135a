"""The hardware below the configuration: what it is (facts), how it is best set (plan), what is wrong (findings)."""
