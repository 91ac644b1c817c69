"""`python -m crash`: run the campaign, a sample of it, or one case. Exit code 1 if anything failed."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: its threads do not survive a fork


def main() -> int:
    """Perform what the arguments say, and print a table of counts."""
    from crash import campaign

    parser = argparse.ArgumentParser(
        prog="python -m crash", description="Break runs in every way, and see them mend."
    )
    parser.add_argument("--scenario", choices=campaign.SCENARIOS, nargs="+", default=list(campaign.SCENARIOS))
    parser.add_argument("--only", metavar="CASE", help="one case, such as kill/dqn-probe/17-amid")
    parser.add_argument("--sample", action="store_true", help="a bounded sample of every scenario")
    parser.add_argument("--jobs", type=int, default=2, help="processes that share the cases")
    parser.add_argument(
        "--log", type=Path, help="append each verdict to this file; passed cases in it are not repeated"
    )
    parser.add_argument("--out", type=Path, help="write the counts into this folder")
    wanted = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background job would ignore
    started = time.monotonic()
    with campaign.prepared():
        cases = (
            [campaign.find(wanted.only)]
            if wanted.only
            else campaign.select(wanted.scenario, sample=wanted.sample)
        )
        print(f"{len(cases):,} cases; prepared in {time.monotonic() - started:.0f} s", flush=True)
        verdicts = campaign.perform_all(cases, wanted.jobs, lambda line: print(line, flush=True), wanted.log)
    seconds = time.monotonic() - started
    print(f"\n{campaign.table(campaign.counts(verdicts))}\n\n{seconds:.0f} s")
    if wanted.out is not None:
        campaign.write(wanted.out, verdicts, len(cases), seconds, "make crash")
    return int(any(verdict.wrong for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
