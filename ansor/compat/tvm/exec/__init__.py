"""TVM's programs for boards, by their names: `python -m ansor.compat.tvm.exec.rpc_tracker` and the like start parts of a farm (docs/scale.md)."""
