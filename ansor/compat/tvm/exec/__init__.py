"""TVM's command-line programs for boards, under their names: `python -m ansor.compat.tvm.exec.rpc_tracker` and others start parts of a farm (docs/scale.md)."""
