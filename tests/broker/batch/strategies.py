"""Records and batches for property tests."""

from hypothesis import strategies as st

from broker.batch.compression import CODEC_NAMES
from broker.batch.records import Row

TIMESTAMPS = st.integers(min_value=-1, max_value=(1 << 62) - 1)
DATA = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3)
ROWS: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(DATA, DATA, HEADERS.map(tuple), TIMESTAMPS), min_size=1, max_size=40
)
COMPRESSIONS = st.sampled_from(CODEC_NAMES)
