"""One deck: what is asked for, the plan that makes it, its state on disk, JupyterLab in it."""
