"""The compile caches of Inductor and Triton: where they are, and which builds may share one."""
