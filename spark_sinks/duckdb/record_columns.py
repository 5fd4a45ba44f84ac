"""The columns by which a collected batch tells the order of its records."""

PARTITION = "mv_partition"  # what has a watermark of its own, as text
SEGMENT = "mv_segment"  # a partition or a file, as text
RANK = "mv_rank"  # of the segment, among all of the source
PLACE = "mv_place"  # of the record in its segment
