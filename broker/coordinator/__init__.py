"""Groups, transactions and topics: state machines over storage."""
