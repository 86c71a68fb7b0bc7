"""Devices of many machines behind one scheduler: a farm on `dask.distributed`. Needs the extra `farm` of the package."""
