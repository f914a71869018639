"""Checks which rows tools/prove.py writes into docs/proofs.md: new results, and what the page said of the others."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import prove


class Page(unittest.TestCase):
    def test_rows_of_earlier_commits_stay_until_the_property_is_run_again(self) -> None:
        proofs = [prove.Proof("a_test", f"A.{name}", 5) for name in ("Again", "Before", "Never")]
        row = {"cases": 5, "seed": 0, "minutes": 0.1, "passed": True, "date": "2026-01-01", "machine": "m"}
        with tempfile.TemporaryDirectory() as folder:
            prove.PAGE = Path(folder) / "proofs.md"
            ledger = prove.Ledger(Path(folder) / "proofs.json")
            for proof in proofs[:2]:
                ledger.add(proof, {**row, "commit": "first"})
            prove.write_page(ledger, proofs)
            (Path(folder) / "proofs.json").unlink()
            ledger = prove.Ledger(Path(folder) / "proofs.json")
            ledger.add(proofs[0], {**row, "passed": False, "commit": "second"})
            prove.write_page(ledger, proofs)
            lines = [line for line in prove.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| A.")]
        self.assertEqual(
            lines,
            [
                "| A.Again | a_test | 5 | 0 | 0.1 | FAILED | second | 2026-01-01 | m |",
                "| A.Before | a_test | 5 | 0 | 0.1 | passed | first | 2026-01-01 | m |",
                "| A.Never | a_test | 5 | - | - | not run | - | - | - |",
            ],
        )


if __name__ == "__main__":
    unittest.main()
