"""The deck: an environment with JupyterLab on a verified stack, from one lock."""
