"""Testing SQL: cases with statements, input records and the expected output records."""
