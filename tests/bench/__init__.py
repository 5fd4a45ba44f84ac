"""Measurements of the running product, over the wire only: ``make bench`` or ``make bench PARTS="freshness pull"``.

Every part starts a real Apache Kafka and a child ``mvserver serve``, feeds it as a producer would and asks it as a
client would; nothing here imports the server's rooms. ``workload`` makes events in bulk, ``viewsets`` the statements,
``load`` sends events, ``bench`` owns the processes, ``parts/`` has one file a measurement, ``results`` keeps what was
measured with the machine it was measured on, and ``render`` writes it into docs/performance.md or, beside it,
performance-details.md.
"""
