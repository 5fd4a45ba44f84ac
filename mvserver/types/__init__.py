"""PostgreSQL's types: their oids, and the text and binary forms of values by family; ``registry`` chooses."""
