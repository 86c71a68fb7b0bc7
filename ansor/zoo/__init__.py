"""Built-in networks and operators: see `ansor.zoo.catalogue`."""
