"""A farm: the devices of many machines behind one scheduler, built on `dask.distributed`. Requires the package's extra `farm`."""
