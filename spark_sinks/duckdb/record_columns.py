"""The columns that a source adds to its records, for those who read them."""

PARTITION = "mv_partition"  # what has a watermark of its own, as text
SEGMENT = "mv_segment"  # a partition or a file, as text
RANK = "mv_rank"  # of the segment, among all of the source
PLACE = "mv_place"  # of the record in its segment
PROGRAM = "mv_program"  # of the live lane: which of its programs has made the row
DELETED = "mv_deleted"  # of a log of changes: the row of the key is gone
