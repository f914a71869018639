"""The networks of `relay.testing`, a module for each, as functions that make their programs and parameters."""
