"""The pipeline executor with the names and the behaviour that users of TVM know."""
