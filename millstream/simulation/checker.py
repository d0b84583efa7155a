"""Checker: reads all topics after the work, and compares them with the acknowledgements."""

from broker.client import consumer, producer
from broker.model import TopicPartition
from millstream.simulation.actors.actor import Actor
from millstream.simulation.actors.producers import LEDGER, PARTITIONS, PLAIN
from millstream.simulation.application_outputs import await_outputs
from millstream.simulation.observations import (
    Stored,
    Violation,
    check_acknowledged,
    check_delivered,
    check_offsets,
    check_order,
    check_transactions,
    check_visible,
)
from millstream.simulation.reading import read_partitions

OUTPUT_SECONDS_MAX = 540  # for servers, whose scripts may take longer than the work


class Checker(Actor):
    """Runs in its own process after the faults."""

    has_finished = False

    def run(self) -> None:
        """Read all topics and check them."""
        plain = self._read(PLAIN, isolation="read_uncommitted")
        ledger = self._read(LEDGER, isolation="read_committed")
        observations = self.platform.observations
        try:
            check_acknowledged(observations, plain)
            check_offsets(plain)
            check_order(plain)
            check_transactions(observations, ledger)
            check_visible(observations, ledger)
            check_order(ledger)
            check_delivered(observations, plain)
            self._check_committed()
            if any("application" in name for name in self.platform.actors):
                await_outputs(self, plain)
            self._await_others()
            self._probe()
        except Violation as violation:
            self.platform.report(violation)
        self.has_finished = True

    def _check_committed(self) -> None:
        """Check that the committed offsets of groups still exist."""
        for group in dict.fromkeys(group for group, _ in self.platform.observations.committed):
            expected = {
                tp: end
                for (g, tp), end in self.platform.observations.committed.items()
                if g == group
            }
            with consumer(self.target, group_id=group) as reader:
                committed = reader.committed(expected)
            for tp, end in expected.items():
                offset = committed[tp]
                if offset is None or offset.offset < end:
                    raise Violation(
                        "no committed offset is lost",
                        f"{group} has committed {end} for {tp}, and {offset} is there",
                    )

    def _await_others(self) -> None:
        """Wait for the servers, which check their own results."""
        for _ in range(OUTPUT_SECONDS_MAX):
            waiting = {each.name: each.unfinished_work() for each in self.platform.actors.values()}
            if not any(waiting.values()) or not self.sleep(1_000, 1_000):
                return
        unfinished = "; ".join(f"{name}: {each}" for name, each in waiting.items() if each)
        raise Violation("everything works again", unfinished)

    def _probe(self) -> None:
        """Write to every partition: none may refuse records without faults."""
        partitions = [
            TopicPartition(topic, number)
            for topic in (PLAIN, LEDGER)
            for number in range(PARTITIONS)
        ]
        with producer(self.target, delivery_timeout_ms=30_000, request_timeout_ms=5_000) as out:
            sent = [
                (tp, out.send(tp.topic, b"probe 0", partition=tp.partition)) for tp in partitions
            ]
            for tp, delivery in sent:
                error = delivery.exception(timeout_ms=60_000)
                if error is not None:
                    raise Violation("everything works again", f"{tp} accepts no records: {error}")

    def _read(self, topic: str, *, isolation: str) -> Stored:
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return read_partitions(self, partitions, isolation=isolation)
