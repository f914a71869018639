"""Names, and places of names, that are here for programs written for TVM's Relay. Nothing else uses them."""
