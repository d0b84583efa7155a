"""Testing SQL: cases of statements, input records and the output records that must follow."""
