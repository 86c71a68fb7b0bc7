"""Networks and operators that come with the package: see `ansor.zoo.catalogue`."""
