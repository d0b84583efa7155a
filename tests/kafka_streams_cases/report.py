"""Says how the cases went: by file and in total, as text or JSON."""

import json
from collections import Counter
from collections.abc import Sequence

from tests.kafka_streams_cases.run import Outcome


def as_text(outcomes: Sequence[Outcome]) -> str:
    """What failed and why, then a table by file."""
    lines: list[str] = []
    for outcome in outcomes:
        if not outcome.passed:
            lines.append(f"FAILED {outcome.id}{' (quirk)' if outcome.quirk else ''}")
            lines += ["  " + line for line in outcome.reason.splitlines()]
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for outcome in outcomes:
        (passed if outcome.passed else failed)[outcome.id.partition("/")[0]] += 1
    width = max((len(name) for name in {*passed, *failed}), default=0)
    for name in sorted({*passed, *failed}):
        lines.append(f"{name:<{width}}  passed {passed[name]:>3}  failed {failed[name]:>3}")
    total = len(outcomes)
    share = 100 * passed.total() / total if total else 100
    lines.append(
        f"{total} cases: {passed.total()} passed, {failed.total()} failed ({share:.1f} % passed)"
    )
    return "\n".join(lines)


def as_json(outcomes: Sequence[Outcome]) -> str:
    """One object: passed, failed, total and the cases."""
    passed = sum(outcome.passed for outcome in outcomes)
    return json.dumps(
        {
            "passed": passed,
            "failed": len(outcomes) - passed,
            "total": len(outcomes),
            "cases": [
                {"id": outcome.id, "status": outcome.status, "reason": outcome.reason}
                for outcome in outcomes
            ],
        }
    )
