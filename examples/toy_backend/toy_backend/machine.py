"""The toy machine: `python -m toy_backend.machine` answers each JSON line with one. It runs a reference and a program on the same inputs, and compares them."""

import json
import sys

import numpy as np

LINES, LINE, MISS = 16, 8, 20  # cache lines, numbers per line, cycles per miss
OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum}


class Machine:
    """One run of a program: memory, cache, and a count of cycles."""

    def __init__(self, path, inputs, kind):
        with open(path) as file:
            program = json.load(file)
        self.cycles, self.cache, self.values = 0, {}, {}
        self.memory = []
        for name, scope, dtype, size in program["buffers"]:
            kept = np.dtype(kind) if dtype.startswith("float") else np.dtype(dtype)
            self.memory.append(inputs[name].astype(kept) if name in inputs and scope in ("input", "constant") else np.full(size, np.nan, kept))
        self.outputs = [place for place, (_, scope, _, _) in enumerate(program["buffers"]) if scope == "output"]
        for node in program["body"]:
            self.run(node)

    def run(self, node):
        if node[0] == "store":
            return self.store(*node[1:])
        _, name, extent, fresh, body = node
        for step in range(extent):
            self.cycles += 1
            self.values[name] = step
            for place in fresh:
                self.memory[place][:] = np.nan
            for inner in body:
                self.run(inner)

    def store(self, place, index, combiner, identity, first, guards, value):
        for at, low, high in guards:
            found = self.index(at)
            if low is not None and found < low or high is not None and found >= high:
                return
        at, new = self.index(index), self.value(value)
        if combiner is not None:
            old = self.memory[place].dtype.type(identity) if all(self.values[name] == 0 for name in first) else self.touch(place, at)
            new = OPERATIONS[{"sum": "add", "prod": "mul"}.get(combiner, combiner)](old, new)
        self.touch(place, at)
        self.memory[place][at] = new

    def index(self, terms):
        return terms[0] + sum(self.values[name] * factor for name, factor in terms[1:])

    def value(self, node):
        if node[0] == "number":
            return node[1]
        if node[0] == "load":
            return self.touch(node[1], self.index(node[2]))
        self.cycles += 1
        return OPERATIONS[node[0]](self.value(node[1]), self.value(node[2]))

    def touch(self, place, at):
        if not 0 <= at < len(self.memory[place]):
            raise IndexError(f"access to element {at} of buffer {place}, which has {len(self.memory[place])} elements")
        line = (place, at // LINE)
        self.cycles += 1 if line in self.cache else MISS
        self.cache.pop(line, None)
        self.cache[line] = None
        if len(self.cache) > LINES:
            del self.cache[next(iter(self.cache))]
        return self.memory[place][at]


def answer(job):
    inputs = {name: np.array(values) for name, values in job["inputs"].items()}
    wide = Machine(job["reference"], inputs, "float64") if job["reference"] else None
    try:
        tried = Machine(job["program"], inputs, "float32")
    except IndexError as error:
        return {"failure": ["out_of_bounds", str(error)]}
    for right, found in zip(wide.outputs, tried.outputs, strict=True) if wide else ():
        if not np.allclose(tried.memory[found], wide.memory[right], rtol=1e-4, atol=1e-4):
            return {"failure": ["wrong_answer", f"output {found} differs by up to {np.nanmax(abs(tried.memory[found] - wide.memory[right])):g}"]}
    return {"cycles": tried.cycles}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
