"""A million damaged frames and batches: refused with an error of ours, or read; nothing else."""

import time
from collections.abc import Callable
from random import Random

import pytest

from broker.batch.codec import check_batches, decode_columns, decode_records, encode_batch
from broker.errors import BrokerError, ErrorCode
from broker.protocol.frame import decode_request, decode_response
from tests.broker.fuzz.corpus import batches, requests, responses
from tests.broker.fuzz.mutation import Mutator
from tests.support.seeds import seed_of

BATCH_BYTES_MAX = 1_048_588
# Of the processor: one case takes some 50 µs.
CASE_SECONDS_MAX = 2.0


def run_cases(count: int, case: Callable[[], None]) -> None:
    """Run cases; each ends soon, with or without a BrokerError, and both happen often."""
    refused = 0
    for _ in range(count):
        start = time.thread_time()
        try:
            case()
        except BrokerError:
            refused += 1
        assert time.thread_time() - start < CASE_SECONDS_MAX
    assert count * 0.1 < refused < count * 0.99


def fuzz_requests(seed: int, count: int) -> None:
    random = Random(seed)
    frames = requests(random)
    mutator = Mutator(random)

    def case() -> None:
        decode_request(memoryview(mutator.damaged_frame(random.choice(frames), frames)))

    run_cases(count, case)


def fuzz_responses(seed: int, count: int) -> None:
    random = Random(seed)
    known = list(responses(random))
    mutator = Mutator(random)

    def case() -> None:
        cls, version, frame = random.choice(known)
        decode_response(cls, version, memoryview(mutator.damaged(frame)))

    run_cases(count, case)


def fuzz_batches(seed: int, count: int) -> None:
    random = Random(seed)
    known = batches()
    mutator = Mutator(random)

    def case() -> None:
        view = memoryview(mutator.damaged_batch(random.choice(known), known))
        check_batches(view, batch_bytes_max=BATCH_BYTES_MAX)
        records = decode_records(view, bytes_max=BATCH_BYTES_MAX)
        columns = decode_columns(view, bytes_max=BATCH_BYTES_MAX)
        assert len(records) == len(columns)

    run_cases(count, case)


@pytest.mark.slow
def test_damaged_requests_are_refused_or_read() -> None:
    fuzz_requests(seed=seed_of("requests"), count=50_000)


@pytest.mark.slow
def test_damaged_responses_are_refused_or_read() -> None:
    fuzz_responses(seed=seed_of("responses"), count=10_000)


@pytest.mark.slow
def test_damaged_batches_are_refused_or_read() -> None:
    fuzz_batches(seed=seed_of("batches"), count=20_000)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_million_damaged_frames_and_batches_are_refused_or_read(seed: int) -> None:
    fuzz_requests(seed, count=60_000)
    fuzz_responses(seed, count=10_000)
    fuzz_batches(seed, count=30_000)


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_a_decompression_bomb_is_refused_before_it_is_unpacked(compression: str) -> None:
    bomb = encode_batch([(None, bytes(64 << 20), (), 0)], compression=compression)
    assert len(bomb) < 4 << 20
    for read in (decode_records, decode_columns):
        start = time.thread_time()
        with pytest.raises(BrokerError) as caught:
            read(memoryview(bomb), bytes_max=1 << 20)
        assert caught.value.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)
        assert time.thread_time() - start < CASE_SECONDS_MAX
