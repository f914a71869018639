#!/usr/bin/env python3
"""Plans of least cost of networks over backends, as `headrace explain` shows them.

    tests/models/plan_costs.py --program headrace --write-zoo write_zoo --folder FOLDER [--full]

By its own cost no plan is worse than native code, than each backend alone, or than the order of the list; its lower
bound is below all of them. The backend onednn says what its calls cost: an activation on the result of a convolution
costs nothing there, and one alone does. The networks are those of verify_models.py. Four have their own resolution, and
the others a low one; with --full all have their own. Trained ones that cannot be fetched are skipped.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import unittest
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent))
import verify_models

NETWORKS = ("resnet50", "mobilenet_v2", "squeezenet1_1", "mlp")
OTHERS = tuple(name for name in verify_models.EVERYTHING if name not in (*NETWORKS, "page"))  # a page is an input
LISTS = ("onednn", "onednn,ccompiler", "ccompiler,onednn")
ACTIVATIONS = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 64, 56, 56), float32], %w: Tensor[(64, 64, 3, 3), float32]) {
  %0 = nn.relu(nn.conv2d(%x, %w, padding=[1, 1], channels=64, kernel_size=[3, 3]));
  nn.relu(nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]))
}
"""


# Products with second operands of 8 MB that are no constants, which no L2 cache holds.
PRODUCTS = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 2048), float32], %w: Tensor[(1024, 2048), float32],
          %a: Tensor[(8, 1, 512), float32], %b: Tensor[(8, 512, 512), float32]) {
  (nn.dense(%x, %w), nn.batch_matmul(%a, %b, transpose_b=False))
}
"""
MEMORY_RATE = 33e9  # one thread's, from the host's table


class PlanCosts(unittest.TestCase):
    """Run the programs of one build."""

    options: ClassVar[argparse.Namespace]

    def explain(self, backends: str, *model: str | Path) -> dict:
        """Explain a plan of least cost for one processor, and return the report; `model` are its file and options."""
        command = [self.options.program, "explain", *model, "--backends", backends, "--placement", "cost"]
        command += ["--target-cpu", "znver4", "--json", "--quiet"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_no_other_plan_costs_less(self) -> None:
        for folder, names, is_full in (("own", NETWORKS, True), ("others", OTHERS, self.options.full)):
            options = argparse.Namespace(write_zoo=self.options.write_zoo, folder=self.options.folder / folder)
            found = verify_models.networks([*names], is_full, options)
            for network, backends in itertools.product(found, LISTS):
                with self.subTest(network=network.name, backends=backends):
                    if network.missing:
                        self.skipTest(network.missing)
                    self.check_cost(self.explain(backends, *network.arguments())["cost"], backends)
            for network in found:
                if network.path.is_relative_to(options.folder):  # some have hundreds of megabytes
                    network.path.unlink()

    def check_cost(self, cost: dict, backends: str) -> None:
        """Compare a plan with the others that the report names, and with its bound."""
        self.assertEqual(set(cost["others"]), {"native", "list order", *backends.split(",")})
        for other, seconds in cost["others"].items():
            self.assertLessEqual(cost["seconds"], seconds, other)
        self.assertLessEqual(cost["lower_bound"], cost["seconds"])
        self.assertGreater(cost["lower_bound"], 0)
        self.assertIn("estimated", cost["source"])

    def test_an_activation_on_a_convolution_is_free(self) -> None:
        self.options.folder.mkdir(parents=True, exist_ok=True)
        model = self.options.folder / "activations.relay"
        model.write_text(ACTIVATIONS)
        rows = self.explain("onednn", model, "--place", "*=native")["placement"]
        alone = [row["costs"]["onednn"] for row in rows if row["kind"] == "nn.relu"]
        self.assertGreater(min(alone), 1e-6)
        for row in rows:
            self.assertNotEqual(row["costs"]["onednn"], row["costs"]["native"], "onednn states costs of its own")
        joined, other = self.relus_by_onednn(model)
        self.assertEqual(joined, 0)
        self.assertGreater(other, 1e-6)

    def test_products_read_their_second_operand(self) -> None:
        self.options.folder.mkdir(parents=True, exist_ok=True)
        model = self.options.folder / "products.relay"
        model.write_text(PRODUCTS)
        rows = self.explain("onednn", model, "--place", "*=native")["placement"]
        costs = {row["kind"]: row["costs"]["onednn"] for row in rows}
        self.assertEqual(set(costs), {"nn.dense", "nn.batch_matmul"})
        for kind, seconds in costs.items():
            self.assertGreater(seconds, 4 * 8 * 512 * 512 / MEMORY_RATE, kind)

    def relus_by_onednn(self, model: Path) -> list[float]:
        """Return the seconds of the two activations where native code is dear, so that all is by onednn."""
        table = self.options.folder / "dear.json"
        command = [
            self.options.program,
            "profile",
            model,
            "--backends",
            "onednn",
            "-o",
            table,
            "--rounds",
            "1",
            "--quiet",
        ]
        subprocess.run([str(word) for word in command], check=True, capture_output=True)
        costs = json.loads(table.read_text())
        costs["costs"] = [one | {"seconds": 1 if one["backend"] == "native" else 1e-4} for one in costs["costs"]]
        costs["cpu"] = "znver4"
        costs["plans"] = []  # the costs of one op say what they say, unscaled
        table.write_text(json.dumps(costs))
        rows = self.explain("onednn", model, "--costs", table)["placement"]
        self.assertEqual({row["backend"] for row in rows}, {"onednn"})
        return [row["costs"]["onednn"] for row in rows if row["kind"] == "nn.relu"]


def main() -> None:
    """Read the options and run the tests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--write-zoo", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--full", action="store_true")
    PlanCosts.options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
