"""SQL compared with its peers: the workloads of benchmarks.streams as statements."""
