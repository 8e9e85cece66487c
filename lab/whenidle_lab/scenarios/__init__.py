"""The scenarios that come with the lab."""
